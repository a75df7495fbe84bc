"""The parts of a whole report: tables, who is faster, charts, and where the figures come from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from zodbshootout.reports.baseline import against_baseline
from zodbshootout.reports.chart import Chart
from zodbshootout.reports.comparison import compared
from zodbshootout.reports.counts import COUNTS
from zodbshootout.reports.figures import UNITS, Metric
from zodbshootout.reports.headings import Heading
from zodbshootout.reports.latency import distributions
from zodbshootout.reports.records import Source, placed
from zodbshootout.reports.report import Entry, Listing, Report, Row, Table
from zodbshootout.reports.tables import NoSuchContender, make_report
from zodbshootout.reports.throughput import Figures
from zodbshootout.results.result import CellResult

_MACHINE = {
    "date": "date",
    "hostname": "host",
    "cpu_model_name": "processor",
    "cpu_count": "CPUs",
    "platform": "platform",
    "python_version": "Python",
    "python_implementation": "implementation of Python",
    "version_zodbshootout": "zodbshootout",
    "label": "label",
}
"""What is told of the run that a file is of, and what that is called."""
_CONTENDER = {
    "storage_classes": "storage",
    "driver": "driver",
    "environment": "environment",
    "sharing": "can be opened by",
    "corrections": "workarounds",
    "configuration_hash": "hash of the configuration",
}
"""What is told of a contender beside versions, and what that is called."""


@dataclass(frozen=True)
class Sections:
    """Makes the parts of a report of some results."""

    sources: Sequence[Source]
    headings: Mapping[str, Heading]
    baseline: str | None = None
    """The column that the others are compared with."""
    ceiling: str | None = None
    """The column that charts have as the limit of the others."""

    def report(self) -> Report:
        """Return the whole report.

        :raises NoSuchContender: when no column has the title *baseline* or *ceiling*
        """
        main = make_report(self.sources, self.headings, baseline=self.baseline)
        if self.ceiling not in {None, *self._columns}:
            raise NoSuchContender(
                f"no contender {self.ceiling!r}; there are {', '.join(self._columns)}"
            )
        parts = [
            self._throughput(),
            self._comparisons(),
            self._latency(),
            self._counts(),
            self._contenders(),
            self._runs(),
        ]
        shown = [
            part for part in parts if part.tables or part.charts or part.listings or part.further
        ]
        name = " and ".join(source.name for source in self.sources if source.name)
        return replace(main, title=name or "zodbshootout", further=shown)

    def _comparisons(self) -> Report:
        found = (
            compared(each.of_base, each.of_new, each.base, each.new, self.headings)
            for each in against_baseline(self.sources, self.baseline)
        )
        return Report([], title="Which is faster", further=list(filter(None, found)))

    def throughput_charts(self) -> list[Chart]:
        """Return the charts of objects per second."""
        figures = self._figures(UNITS["objects"])
        return [*figures.curves(), *figures.bars()]

    def _throughput(self) -> Report:
        charts = self.throughput_charts()
        points = [point for chart in charts for point in chart.points]
        notes = {
            "lines on bars and bands around curves: 95 % confidence intervals": any(
                point.low is not None for point in points
            ),
            "circle: the knee of a curve, from which on it rises less: the point farthest above "
            "the straight line from its first to its last one": any(point.knee for point in points),
            f"dashed: {self.ceiling}": self.ceiling is not None,
        }
        told = [note for note, applies in notes.items() if applies]
        return Report([], told, title="Throughput", charts=charts)

    def _latency(self) -> Report:
        units = [UNITS[name] for name in ("p50", "p99", "max")]
        charts = [
            *self._figures(UNITS["p99"]).curves(),
            *distributions(self._timed, self._columns, self.headings),
        ]
        tables = [table for unit in units for table in self._tables(unit)]
        return Report(tables, title="Latency", charts=charts)

    def _counts(self) -> Report:
        tables = [table for unit in COUNTS for table in self._tables(unit)]
        return Report(tables, title="Conflicts, retries and caches")

    def _contenders(self) -> Report:
        told = {
            column: result.runs[0].get_metadata()
            for column, result in reversed(placed(self.sources))
            if result.measured
        }
        columns = [column for column in self._columns if column in told]
        versions = sorted({key for each in told.values() for key in each if _is_version(key)})
        words = {**_CONTENDER, **{key: key.removeprefix("version_") for key in versions}}
        table = _facts("Contender", columns, [told[column] for column in columns], words)
        return Report(
            [table] if columns else [],
            title="Contenders",
            listings=[
                Listing(column, text)
                for column in columns
                if (text := _configuration(told[column]))
            ],
        )

    def _runs(self) -> Report:
        first: list[Mapping[str, Any]] = [
            next((each.runs[0].get_metadata() for each in source.results if each.measured), {})
            for source in self.sources
        ]
        columns = [source.label or "this run" for source in self.sources]
        commands = [
            Listing(f"Command{f' of {source.label}' if source.label else ''}", told["command_line"])
            for source, told in zip(self.sources, first, strict=True)
            if "command_line" in told
        ]
        table = _facts("Run", columns, first, _MACHINE)
        return Report([table], title="Machine and command", listings=commands)

    def _tables(self, unit: Metric) -> Iterator[Table]:
        """Return the tables of a unit, without the rows that have no figure."""
        for table in make_report(self.sources, self.headings, unit).tables:
            rows = [
                row for row in table.rows if any(entry.value is not None for entry in row.entries)
            ]
            if rows:
                yield replace(table, rows=rows)

    def _figures(self, unit: Metric) -> Figures:
        return Figures(self._timed, self._columns, self.headings, self.ceiling, unit)

    @property
    def _columns(self) -> list[str]:
        return list(dict.fromkeys(column for column, _ in placed(self.sources)))

    @property
    def _timed(self) -> list[tuple[str, CellResult]]:
        return [
            (column, result)
            for column, result in placed(self.sources)
            if result.measured and result.unit == "second"
        ]


def _facts(
    title: str,
    columns: Sequence[str],
    told: Sequence[Mapping[str, Any]],
    words: Mapping[str, str],
) -> Table:
    """Return a table of what metadata tell: a row for each key of *words* that any of them has."""
    rows = [
        Row(word, [Entry(str(each.get(key, "-"))) for each in told])
        for key, word in words.items()
        if any(key in each for each in told)
    ]
    return Table("", columns, rows, title=title, words=frozenset(columns))


def _is_version(key: str) -> bool:
    return key.startswith("version_") and key not in _MACHINE


def _configuration(metadata: Mapping[str, Any]) -> str:
    """Return a contender's section; files of earlier versions have its settings alone."""
    try:
        return str(json.loads(metadata["configuration_text"]))
    except (KeyError, ValueError, TypeError):
        return "\n".join(str(metadata.get("configuration", "")).split("; "))
