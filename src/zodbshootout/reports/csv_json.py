"""Records of everything that is known about each cell, and the formats CSV and JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from rich.console import Console

from zodbshootout.model.parameters import PARAMETERS, Scope
from zodbshootout.model.quantities import QUANTITIES, THROUGHPUT, TIME
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.elements import Report
from zodbshootout.results.axes import Axis, Family
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult
from zodbshootout.results.series import Step

_COLUMNS = [
    one for one in PARAMETERS if one.scope not in {Scope.REPLAY, Scope.COPY, Scope.DISTANCE}
]


def write_csv(report: Report, console: Console) -> None:
    """Write a line of comma-separated values for each record."""
    records = report.records
    writer = csv.DictWriter(console.file, list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)


def write_csv_table(report: Report, console: Console) -> None:
    """Write the tables as comma-separated values, with texts for entries without a number."""
    writer = csv.writer(console.file, lineterminator="\n")
    for number, table in enumerate(report.tables):
        if number:
            writer.writerow([])
        writer.writerow([table.caption])
        writer.writerow(["Transaction", *table.columns])
        for row in table.rows:
            entries = (entry.shown if entry.value is None else entry.value for entry in row.entries)
            writer.writerow([row.long_title or row.title, *entries])


def write_json(report: Report, console: Console) -> None:
    """Write a list with an object for each record."""
    json.dump(list(report.records), console.file, indent=1)
    console.file.write("\n")


class Records(Sequence[dict[str, Any]]):
    """Records of cells: the parameters, the figures, the state, and the reason for the state.

    The first access computes all records.  Times are in seconds, sizes in bytes; a cell's missing
    values are ``None``.
    """

    def __init__(self, result_sets: Sequence[ResultSet]) -> None:
        self._result_sets = result_sets

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        return [
            {"file": results.label or None, **_record(result), **_step(result, families, steps)}
            for results in self._result_sets
            for families in [_families(results)]
            for steps in [_steps(results)]
            for result in results.results
        ]

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: Any) -> Any:
        return self._records[index]


def _families(results: ResultSet) -> dict[str, Family]:
    """Return, for each column, the first family of releases to which the column belongs."""
    return {column: one for one in reversed(results.families) for column in one.values}


def _steps(results: ResultSet) -> dict[tuple[Cell, Axis], Step]:
    """Return the changes of speed since the previous release, by cell and package."""
    return {
        (step.change.new.cell, step.series.axis): step
        for step in results.steps
        if step.change.new.quantity is THROUGHPUT
    }


def _step(
    result: CellResult, families: Mapping[str, Family], steps: Mapping[tuple[Cell, Axis], Step]
) -> dict[str, Any]:
    """Return the release of a result, and the change of speed since the previous release."""
    family = families.get(result.cell.column)
    step = family and steps.get((result.cell, family.axis))
    ratio = step.change.ratio if step and step.change.ratio.is_known else None
    return {
        "release": family and family.text(result.cell.column),
        "release_before": step and step.before,
        "step_ratio": ratio and ratio.value,
        "step_low": ratio and ratio.interval[0],
        "step_high": ratio and ratio.interval[1],
        "step_verdict": step and step.change.verdict.value,
    }


def _figures(result: CellResult) -> Iterator[tuple[str, float | None]]:
    """Yield the keys and the values of all quantities, and the interval of the time."""
    for quantity in QUANTITIES.values():
        figure = result.figures[quantity]
        yield quantity.key, None if figure is None else figure.value
        if quantity is TIME:
            low, high = (figure and figure.interval) or (None, None)
            yield "interval_low_s", low
            yield "interval_high_s", high


def _record(result: CellResult) -> dict[str, Any]:
    cell = result.cell
    trend = result.trend
    parameters = cell.parameters
    paces = [one for one in _COLUMNS if one.scope is Scope.PACE]
    unset = [one for one in paces if one.of(parameters) == one.default]
    return {
        "benchmark": cell.benchmark,
        "contender": cell.title,
        "state": result.state.value,
        "reason": result.reason or None,
        **{one.key: None if one in unset else one.written(parameters) for one in _COLUMNS},
        "rtt_s": result.metadata.get("rtt_s"),
        "keeps_up": result.keeps_up if parameters.rate and result.measured else None,
        **dict(_figures(result)),
        "runs": len(result.runs),
        "values": sum(len(run.values) for run in result.runs),
        "trend_times": trend and trend.times,
        "trend_p_value": trend and trend.p_value,
        "trend_low": trend and trend.interval[0],
        "trend_high": trend and trend.interval[1],
    }
