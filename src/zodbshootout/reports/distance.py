"""The effect of the distance to a server: measured, estimated from round trips, and the crossings.

Without overlap, an iteration at a distance takes what it takes here and, for each of its round
trips, the round-trip time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from zodbshootout.model.costs import BY_NAME
from zodbshootout.model.specification import RTT, duration, variant_name
from zodbshootout.reports.elements import DASH, Entry, Row, Style, Table
from zodbshootout.reports.headings import Columned, data_axis, description, group_of, rows_of
from zodbshootout.reports.metrics import three_digits
from zodbshootout.results.estimate import Estimate
from zodbshootout.results.result import CellResult

DISTANCES = (0.2e-3, 1e-3, 5e-3)
"""The round-trip times in seconds for which times are estimated: within a data centre, between
two of one city, between two of one country."""
_TRIPS = BY_NAME["trips"], BY_NAME["cache_trips"]


@dataclass(frozen=True)
class Crossing:
    """The round-trip time at which two contenders are equally fast, in seconds."""

    rtt: float
    low: float
    high: float
    """The ends of its 95 % confidence interval, of which the lower one is not below 0."""
    near: str
    """The contender that is faster below it."""
    far: str

    def __str__(self) -> str:
        low, high = (_milliseconds(end) for end in (self.low, self.high))
        return (
            f"{self.near} is faster below {_milliseconds(self.rtt)} ms ({low} to {high}), "
            f"{self.far} above"
        )


def estimate_tables(cells: Sequence[Columned]) -> Iterator[Table]:
    """Yield tables of the times that iterations would take at :data:`DISTANCES`, by estimate."""
    groups: dict[tuple[object, ...], list[Columned]] = {}
    for column, result in cells:
        if _is_near(result):
            groups.setdefault(group_of(result), []).append((column, result))
    for group in groups.values():
        results = [result for _, result in group]
        columns = list(dict.fromkeys(column for column, _ in group))
        rows = [
            Row(f"{title} at {duration(rtt)}", [_estimated(row.get(c), rtt) for c in columns])
            for title, row in rows_of(group).items()
            if any(map(trips_of, row.values()))
            for rtt in DISTANCES
        ]
        if rows:
            about = description(results[0], data_axis(results))
            caption = f"Estimate: time of an iteration at a distance (less is better): {about}"
            yield Table(caption, columns, rows)


def crossings(cells: Sequence[Columned]) -> Iterator[str]:
    """Yield a line for each pair of contenders that change places at some distance.

    With ``--rtt`` of several times it is measured, else estimated.
    """
    rows: dict[tuple[object, ...], dict[str, list[CellResult]]] = {}
    for column, result in cells:
        if result.timed and not result.paced:
            parameters = result.cell.parameters
            section = variant_name(column.partition(" [")[0], _others(result))
            row = rows.setdefault((result.cell.benchmark, parameters), {})
            row.setdefault(section, []).append(result)
    for (benchmark, _), row in rows.items():
        for (one, ones), (other, others) in combinations(row.items(), 2):
            measured = len(ones) > 1 and len(others) > 1
            points = _measured(ones, others) if measured else _extrapolated(ones[0], others[0])
            for crossing in _found(points, one, other):
                how = "" if measured else "estimate: "
                yield f"{how}{benchmark}: {crossing}"


def measured_crossings(cells: Sequence[Columned]) -> Iterator[str]:
    """Yield :func:`crossings` if contenders were measured at several round-trip times."""
    if any(RTT in result.definitions for _, result in cells):
        yield from crossings(cells)


def trips_of(result: CellResult) -> float | None:
    """Return the round trips of an iteration, 0 without servers, ``None`` if they are not known.

    Those to the servers of a cache are included, as if these were as far away as the database.
    """
    counted = [figure.mean for figure in map(result.with_cost, _TRIPS) if figure is not None]
    if counted:
        return sum(counted)
    return None if result.metadata.get("server_place") else 0.0


def _is_near(result: CellResult) -> bool:
    is_far = any(name.startswith("rtt_") for name in result.metadata)
    return result.timed and not result.paced and not is_far


def _estimated(result: CellResult | None, rtt: float) -> Entry:
    trips = None if result is None else trips_of(result)
    if result is None or trips is None:
        return Entry(DASH, style=Style.DIM)
    seconds = result.mean + trips * rtt
    bound = "up to " if trips and result.cell.parameters.crew.size > 1 else ""
    return Entry(f"{bound}{three_digits(1e3 * seconds)} ms", seconds)


def _others(result: CellResult) -> Mapping[str, str]:
    return {name: value for name, value in result.definitions.items() if name != RTT}


_Points = Sequence[tuple[float, Estimate]]
"""Round-trip times in seconds, and by how many seconds one contender is slower than another."""


def _measured(ones: Iterable[CellResult], others: Iterable[CellResult]) -> _Points:
    by_rtt = [
        {float(result.metadata.get("rtt_s", 0.0)): result for result in results}
        for results in (ones, others)
    ]
    common = sorted(by_rtt[0].keys() & by_rtt[1].keys())
    return [(rtt, by_rtt[0][rtt].estimate - by_rtt[1][rtt].estimate) for rtt in common]


def _extrapolated(one: CellResult, other: CellResult) -> _Points:
    trips = trips_of(one), trips_of(other)
    if None in trips or trips[0] == trips[1] or not (_is_near(one) and _is_near(other)):
        return []
    here = one.estimate - other.estimate
    more = float(trips[0] or 0) - float(trips[1] or 0)
    far = max(DISTANCES)
    return [(0.0, here), (far, replace(here, mean=here.mean + more * far))]


def _found(points: _Points, one: str, other: str) -> Iterator[Crossing]:
    for (near, first), (far, second) in pairwise(points):
        if first.mean * second.mean >= 0 or first.df <= 0 or second.df <= 0:
            continue
        slope = (second.mean - first.mean) / (far - near)
        rtt = near - first.mean / slope
        # The error of the difference at the crossing, between those at both ends.
        part = (rtt - near) / (far - near)
        width = math.hypot((1 - part) * first.half_width, part * second.half_width) / abs(slope)
        faster, slower = (one, other) if first.mean < 0 else (other, one)
        yield Crossing(rtt, max(0.0, rtt - width), rtt + width, faster, slower)


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.2g}"
