"""Times at a distance to the server, and distances at which two contenders are equally fast.

If requests do not overlap, each round trip makes an iteration longer by the round-trip time.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import CACHE_TRIPS, THROUGHPUT, TIME, TRIPS
from zodbshootout.model.specification import Parameters, duration
from zodbshootout.model.units import significant
from zodbshootout.network.calibration import is_within
from zodbshootout.reports.cells import Cells, Curves
from zodbshootout.reports.elements import (
    MISSING,
    Chart,
    ChartKind,
    Entry,
    Labels,
    Mark,
    Note,
    Point,
    Report,
    Row,
    Scale,
    Style,
    Table,
)
from zodbshootout.reports.footnotes import places
from zodbshootout.results.axes import RTT, at_distance
from zodbshootout.results.cell import Cell
from zodbshootout.results.figures import IMPRECISE, TILDE, time_of
from zodbshootout.results.result import CellResult
from zodbshootout.results.series import Line, Series, crossings

DISTANCES = (0.0, 0.2e-3, 1e-3, 5e-3)
"""Round-trip times for estimates, in seconds: local, data centre, city, country."""
OVERLAP = 1.2
"""If iterations differ in round trips by more than this factor, their requests may overlap."""
IN_PARENTHESES = (
    "in parentheses: the estimate, which is the time at 0 and, for each round trip, the round-trip "
    "time; up to: requests overlap, and it may be less"
)


def tables_of_times(cells: Cells) -> Iterator[Table]:
    """Yield tables of the time of an iteration at a distance, measured and estimated.

    If no distance was measured, the times at :data:`DISTANCES` are estimated.
    """
    measured = _are_measured(cells)
    near = {(column, *_key(result)): result for column, result in cells if _is_near(result)}
    there = [
        (column, far)
        for column, result in cells
        if _has_time(result) and (measured or _is_near(result))
        for far in ([result] if measured else [at_distance(result, rtt) for rtt in DISTANCES[1:]])
    ]
    for group in replace(cells, columned=there).groups:
        columns, rows = group.columns, []
        for title, row in group.rows.items():
            bases = {column: near.get((column, *_key(result))) for column, result in row.items()}
            if any(base and trips_of(base) for base in bases.values()):
                entries = [_entry(row.get(c), bases.get(c), measured=measured) for c in columns]
                rows.append(Row(title, entries))
        if rows:
            how = "measured and (estimated)" if measured else "estimated from the round trips"
            caption = f"Milliseconds per iteration, {how}, less is better: {group.description}"
            yield Table(caption, columns, rows)


def distance_section(cells: Cells) -> Report:
    """Return a page's section on distance; it is empty if no storage makes round trips."""
    tables = list(tables_of_times(cells))
    charts = list(distance_charts(cells))
    notes = list(map(Note, distance_notes(cells))) if tables else []
    return Report(tables, notes, title="At a distance", charts=charts)


def distance_notes(cells: Cells) -> Iterator[str]:
    """Yield the crossings and, if times were measured, the meaning of parentheses."""
    yield from crossing_lines(cells)
    if _are_measured(cells) and any(map(trips_of, filter(_is_near, cells.results))):
        yield IN_PARENTHESES


def undelivered(cells: Cells) -> Iterator[str]:
    """Yield a line for each requested round-trip time that some cells missed by too much."""
    missed: dict[float, dict[tuple[str, Cell], float]] = {}
    for column, result in cells:
        for rtt, mean in _delivered(result):
            if not is_within(mean, rtt):
                missed.setdefault(rtt, {})[column, result.cell] = mean
    for rtt, means in sorted(missed.items()):
        ends = (f"{1e3 * end:.3g}" for end in (min(means.values()), max(means.values())))
        asked = duration(rtt, " ")
        yield (
            f"{places(list(means), cells.benchmarks)}: round trips of {asked} took "
            f"{' to '.join(dict.fromkeys(ends))} ms: the machine was too slow or too busy to "
            "deliver them"
        )


def _delivered(result: CellResult) -> Iterator[tuple[float, float]]:
    """Yield each requested round-trip time, with the mean time that the machine delivered."""
    times = grouped(
        ((server, rtt), mean)
        for facts in result.facts
        for server, (rtt, mean) in _distances(facts).items()
    )
    for (_, rtt), means in times.items():
        yield rtt, statistics.fmean(means)


def _distances(facts: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return the requested and the delivered time of ``--rtt``, and of servers by their names."""
    times: dict[str, tuple[float, float]] = json.loads(facts.get("server_rtts_s", "{}"))
    has_both = "rtt_s" in facts and "rtt_delivered_s" in facts
    return {**({"": (facts["rtt_s"], facts["rtt_delivered_s"])} if has_both else {}), **times}


def crossing_lines(cells: Cells) -> Iterator[str]:
    """Yield a line for each crossing: a distance at which two contenders change places.

    Crossings are measured if ``--rtt`` had several values, else estimated.
    """
    measured = _are_measured(cells)
    how = "" if measured else "estimate: "
    for curves in _curves(cells):
        benchmark = curves.group.first.cell.benchmark
        for crossing in _crossings_of(curves, measured=measured):
            yield f"{how}{benchmark}: {crossing.sentence}"


def measured_crossings(cells: Cells) -> list[str]:
    """Return the crossings, unless they are estimated."""
    return list(crossing_lines(cells)) if _are_measured(cells) else []


def distance_charts(cells: Cells) -> Iterator[Chart]:
    """Yield a chart for each benchmark: the time of an iteration over the round-trip time.

    A benchmark without round trips has a chart only if ``--rtt`` had several values.
    """
    measured = _are_measured(cells)
    for curves in _curves(cells):
        crossings_there = list(_crossings_of(curves, measured=measured))
        # Estimated lines end somewhat beyond all crossings.
        beyond = 1.5e-3 * max((crossing.x for crossing in crossings_there), default=math.inf)
        far = next((rtt for rtt in DISTANCES if rtt >= beyond), DISTANCES[-1])
        points = [
            point
            for column, curve in curves.by_column.items()
            for point in (
                _measured_points(column, curve)
                if measured
                else _estimated_points(column, curve, far)
            )
        ]
        served = any(map(trips_of, curves.group.results))
        if not points or not (served or measured):
            continue
        how = "" if measured else ", an estimate from the round trips"
        yield Chart(
            ChartKind.LINES,
            curves.group.title,
            curves.group.description,
            Scale("round-trip time (ms)"),
            # Over distances, times are straight lines on a scale that is not logarithmic.
            Scale(f"time of an iteration (less is better){how}", Labels.SECONDS),
            points,
            cells.columns,
            estimated=not measured,
            marks=crossings_there,
        )


def trips_of(result: CellResult) -> float | None:
    """Return the round trips of an iteration, 0 without servers, ``None`` if unknown.

    Round trips to cache servers count like those to the database.  The result is the mean of the
    iterations, or their maximum if requests may overlap.
    """
    counted = _counted(result)
    if not counted:
        return None if result.metadata.get("server_place") else 0.0
    return max(counted) if _overlaps(result) else statistics.fmean(counted)


def _counted(result: CellResult) -> list[float]:
    """Return the round trips of every iteration whose traffic was counted; empty if none was."""
    counts = (result.figures[one] for one in (TRIPS, CACHE_TRIPS))
    figures = [figure.amounts for figure in counts if figure is not None]
    return [math.fsum(trips) for trips in zip(*figures, strict=True)]


def _overlaps(result: CellResult) -> bool:
    """Return whether requests may be sent while others are under way."""
    counted = _counted(result)
    varies = bool(counted) and max(counted) > OVERLAP * min(counted)
    return varies or result.cell.parameters.crew.size > 1


def _are_measured(cells: Cells) -> bool:
    return len({result.cell.parameters.rtt for result in cells.results} - {None}) > 1


def _has_time(result: CellResult) -> bool:
    return result.figures[THROUGHPUT] is not None


def _is_near(result: CellResult) -> bool:
    is_far = "server_rtts_s" in result.metadata
    return _has_time(result) and not _rtt(result) and not is_far


def _rtt(result: CellResult) -> float:
    return result.cell.parameters.rtt or float(result.metadata.get("rtt_s", 0.0))


def _key(result: CellResult) -> tuple[str, Parameters]:
    """Return the key that the results of a benchmark have in common at all distances."""
    return result.cell.benchmark, replace(result.cell.parameters, rtt=None)


def _curves(cells: Cells) -> list[Curves]:
    """Return the times of an iteration over the round-trip time, by column, for each benchmark."""
    placed = [(c, at_distance(r, _rtt(r))) for c, r in cells if _has_time(r)]
    return replace(cells, columned=placed).curves(RTT, TIME)


def _entry(result: CellResult | None, near: CellResult | None, *, measured: bool) -> Entry:
    rtt = None if result is None else result.cell.parameters.rtt
    seconds = _estimated(near, rtt) if near and rtt else None
    estimate = "" if near is None or seconds is None else f"{_up_to(near)}{_text(seconds)}"
    if not measured:
        return Entry(estimate, seconds) if estimate else MISSING
    if result is None:
        return Entry()
    figure = time_of(result)
    mean, mark = figure.value, ""
    if figure.half_width is None or figure.half_width > IMPRECISE:
        mean, mark = float(f"{mean:.2g}"), TILDE
    estimated = Entry(f"({estimate})", seconds, Style.DIM) if near and trips_of(near) else None
    return Entry(f"{mark}{_text(mean)}", figure.value, ratio=estimated if estimate else None)


def _up_to(near: CellResult) -> str:
    """Return the prefix of an estimate; empty unless the estimate is an upper bound."""
    return "up to " if trips_of(near) and _overlaps(near) else ""


def _text(seconds: float) -> str:
    return significant(1e3 * seconds)


def _estimated(near: CellResult, rtt: float) -> float | None:
    trips = trips_of(near)
    return None if trips is None else time_of(near).value + trips * rtt


def _measured_points(column: str, curve: Series) -> Iterator[Point]:
    for figure in curve.figures:
        low, high = figure.interval or (None, None)
        low = None if low is None else max(0.0, low)
        yield Point(
            column, 1e3 * _rtt(figure.result), figure.value, f"{_text(figure.value)} ms", low, high
        )


def _estimated_points(column: str, curve: Series, far: float) -> Iterator[Point]:
    near = curve.results[0]
    for rtt in DISTANCES:
        if not _rtt(near) and rtt <= far and (seconds := _estimated(near, rtt)) is not None:
            bound = _up_to(near) if rtt else ""
            yield Point(column, 1e3 * rtt, seconds, f"{bound}{_text(seconds)} ms")


def _crossings_of(curves: Curves, *, measured: bool) -> Iterator[Mark]:
    """Yield the round-trip times at which two contenders are equally fast."""
    for (one, first), (other, second) in combinations(curves.by_column.items(), 2):
        lines = (first.line, second.line) if measured else (_line(first), _line(second))
        for crossing in crossings(*lines, open_ended=not measured):
            faster, slower = (one, other) if crossing.first_is_less else (other, one)
            low, at, high = (1e3 * rtt for rtt in (crossing.low, crossing.at, crossing.high))
            label = f"{at:.2g} ms"
            sentence = f"{faster} is faster below {label} ({low:.2g} to {high:.2g}), {slower} above"
            yield Mark(at, crossing.figure, label, sentence, low, high, (faster, slower))


def _line(curve: Series) -> Line:
    """Return the times of an iteration by round-trip time; those beyond 0 are estimates."""
    line = curve.line
    trips = trips_of(curve.results[0]) if list(line) == [0.0] else None
    if trips is None:
        return line
    far = max(DISTANCES)
    return {**line, far: replace(line[0.0], mean=line[0.0].mean + trips * far)}
