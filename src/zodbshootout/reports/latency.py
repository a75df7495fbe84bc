"""How latencies are distributed: percentiles in tables, and charts of all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from zodbshootout.reports.chart import Chart, Kind, Point
from zodbshootout.reports.figures import UNITS
from zodbshootout.reports.headings import Heading, description, extent, heading_of, title_of
from zodbshootout.results.result import CellResult

STEPS_OF_AN_OCTAVE = 2
"""Points of a curve for each halving of the part of the iterations that took longer."""
_SECONDS = UNITS["p50"]


def distributions(
    placed: Sequence[tuple[str, CellResult]],
    columns: Sequence[str],
    headings: Mapping[str, Heading],
) -> Iterator[Chart]:
    """Return a chart for each row of the tables whose latencies were recorded."""
    rows: dict[object, list[tuple[str, CellResult]]] = {}
    for column, result in placed:
        if result.latencies is not None and result.latencies.get_total_count():
            key = (result.cell.benchmark, replace(result.cell.parameters, owner=""))
            rows.setdefault(key, []).append((column, result))
    for group in sorted(rows.values(), key=lambda row: extent(row[0][1])):
        result = group[0][1]
        yield Chart(
            Kind.PERCENTILES,
            title_of(result, headings),
            subtitle=description(result, heading_of(headings, result)),
            x_title="percentile of the iterations",
            y_title="latency of an iteration (less is better)",
            points=[point for column, each in group for point in _points(column, each)],
            columns=columns,
            in_seconds=True,
            x_logarithmic=True,
        )


def _points(column: str, result: CellResult) -> Iterator[Point]:
    """Return the median, and percentiles up to the longest latency.

    Their x is one of how many iterations took longer: 2 for the median, 100 for the 99th
    percentile.
    """
    iterations = result.latencies.get_total_count()
    steps = math.ceil(STEPS_OF_AN_OCTAVE * math.log2(iterations))
    parts = [2 ** (step / STEPS_OF_AN_OCTAVE) for step in range(STEPS_OF_AN_OCTAVE, steps)]
    found = result.latencies_at([100.0, *(100 * (1 - 1 / part) for part in parts)])
    longest = result.longest_latency or found[100.0]
    for part in parts:
        # A bucket of the histogram may reach beyond what is in it.
        seconds = min(found[100 * (1 - 1 / part)], longest)
        yield Point(column, part, seconds, _SECONDS.text(result, seconds))
    yield Point(column, max(2.0, iterations), longest, _SECONDS.text(result, longest))
