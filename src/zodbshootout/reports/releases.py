"""Contenders in several releases of a package: tables, charts, and steps (significant changes)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import THROUGHPUT, Quantity, Sense
from zodbshootout.model.units import SECONDS
from zodbshootout.reports.comparison import ratio_entry
from zodbshootout.reports.elements import (
    DASH,
    Chart,
    ChartKind,
    Entry,
    Mark,
    Point,
    Report,
    Row,
    Style,
    Table,
)
from zodbshootout.reports.headings import (
    ResultSet,
    caption_of,
    description,
    figure_titles,
    group_of,
    title_of,
)
from zodbshootout.reports.ratios import interval, multiple, shown_ratio, times
from zodbshootout.results.axes import Family
from zodbshootout.results.changes import Change, ratio_of
from zodbshootout.results.figures import Figure, figure_of
from zodbshootout.results.steps import Step

RELEASES = "Over releases"
CHANGES = "Speed as a multiple of that of the previous release"
RELATIVE = "speed as a multiple of that of the oldest release (more is better)"
NO_STEP = "no difference between consecutive releases is significant"

_Curve = tuple[str, Family, Sequence[Figure]]
"""The title of a curve, the releases that it joins, and their figures in order."""


@dataclass(frozen=True)
class Releases:
    """Series (contenders in several releases), and the changes from release to release."""

    series: Sequence[tuple[ResultSet, Family]]
    changes: Sequence[Step]
    """All changes between consecutive releases: of times, then of costs."""

    @classmethod
    def of(cls, result_sets: Sequence[ResultSet]) -> Releases:
        """Return all series in the results, and their changes."""
        series = [(results, one) for results in result_sets for one in results.series]
        return cls(series, [step for results in result_sets for step in results.changes])

    @cached_property
    def steps(self) -> list[Step]:
        """The changes that are significant."""
        return [step for step in self.changes if step.is_significant]

    def title_of(self, column: str) -> str:
        """Return a column's title or, in a series of releases, the title of the series."""
        for results, series in self.series:
            if column in map(results.column, [series.title, *series.values]):
                return f"{results.column(series.title)} over {series.axis.title}"
        return column

    def rows_of(self, table: Table) -> Table:
        """Return the table with a row for each release, and a column for each former row.

        A table without releases is unchanged.
        """
        of_series = {results.column(name) for results, one in self.series for name in one.values}
        if of_series.isdisjoint(table.columns):
            return table
        entries = {
            column: [row.entries[number] for row in table.rows]
            for number, column in enumerate(table.columns)
        }
        rows = [Row(column, own) for column, own in entries.items() if column not in of_series]
        for results, series in self.series:
            rows += _rows(results, series, entries)
        titles = [row.title for row in table.rows]
        return replace(table, columns=titles, rows=rows, title="Release")

    def lines(self, *, all_costs: bool = False) -> Iterator[str]:
        """Yield a line for each step; without *all_costs*, leave out costs that are not counts."""
        steps = [step for step in self.steps if all_costs or _is_exact(step)]
        yield from _sentences(steps)
        if self.series and not steps:
            yield NO_STEP

    def largest(self) -> list[str]:
        """Return sentences on the steps of times, the largest first; if there are none, say so."""
        steps = [step for step in self.steps if not _is_amount(step)]
        steps.sort(key=lambda step: -abs(step.change.ratio.log.mean))
        return _sentences(steps) or [NO_STEP] * bool(self.series)

    def section(self, columns: Sequence[str]) -> Report:
        """Return a page's section on releases, which is empty if there are no releases."""
        charts = [*self._charts(columns), *self._cost_charts(columns)]
        notes = list(self.lines(all_costs=True))
        return Report(list(self._tables()), notes, title=RELEASES, charts=charts)

    def _tables(self) -> Iterator[Table]:
        """Yield tables of the changes of times, with a row for each release."""
        groups = grouped(
            (group_of(step.change.base.result), step)
            for step in self.changes
            if not _is_amount(step)
        )
        for steps in groups.values():
            titles = figure_titles([step.change.base for step in steps])
            rows: dict[str, dict[str, Entry]] = {}
            for step, title in zip(steps, titles, strict=True):
                release = f"{step.series.title}, {step.series.axis.title} {step.since}"
                ratio = ratio_entry(step.change) or Entry(DASH, style=Style.DIM)
                rows.setdefault(release, {})[title] = ratio
            columns = list(dict.fromkeys(titles))
            yield Table(
                f"{CHANGES}: {description(steps[0].change.base.result)}",
                columns,
                [
                    Row(release, [row.get(title, Entry()) for title in columns])
                    for release, row in rows.items()
                ],
                title="Release",
            )

    def _cost_charts(self, columns: Sequence[str]) -> Iterator[Chart]:
        """Yield the charts of costs in which there is a step."""
        amounts = (step.change.base.quantity for step in self.steps if _is_amount(step))
        for cost in dict.fromkeys(amounts):
            yield from self._charts(columns, cost)

    def _charts(self, columns: Sequence[str], quantity: Quantity = THROUGHPUT) -> Iterator[Chart]:
        """Yield charts of a quantity of each benchmark over the releases of a package."""
        charts: dict[tuple[object, ...], list[_Curve]] = {}
        for results, series in self.series:
            for group in series.groups(result for result in results.at_distances if result.timed):
                figures = list(filter(None, (figure_of(result, quantity) for result in group)))
                key = series.axis, group[0].cell.benchmark, group[0].cell.parameters
                if figures:
                    curve = results.column(series.title), series, figures
                    charts.setdefault(key, []).append(curve)
        for curves in charts.values():
            chart = self._chart(curves, columns)
            if chart.marks or quantity is THROUGHPUT:
                yield chart

    def _chart(self, curves: Sequence[_Curve], columns: Sequence[str]) -> Chart:
        _, series, (first, *_) = curves[0]
        values = (value for _, one, _ in curves for value in one.values.values())
        order = series.axis.ordered(values)
        points: list[Point] = []
        marks: list[Mark] = []
        for column, one, figures in curves:
            for figure in figures:
                value = one.values[figure.cell.column]
                release = order.index(value), series.axis.text(value)
                points.append(_point(column, release, figure, figures[0]))
                marks += self._marks(one, figure, points[-1])
        quantity = first.quantity
        return Chart(
            ChartKind.RELEASES,
            title_of(first.result),
            subtitle=description(first.result),
            x_title=series.axis.title,
            y_title=RELATIVE if quantity is THROUGHPUT else f"{quantity.caption} (less is better)",
            points=points,
            columns=columns,
            in_seconds=quantity.unit is SECONDS,
            marks=marks,
        )

    def _marks(self, series: Family, figure: Figure, point: Point) -> Iterator[Mark]:
        for step in self.steps:
            new = step.change.new
            is_here = (new.cell, new.quantity) == (figure.cell, figure.quantity)
            if is_here and step.series == series:
                ratio = shown_ratio(step.change)
                (sentence,) = _sentences([step])
                sides = point.column, point.column
                text = f"{multiple(ratio.value)}×"
                yield Mark(point.x, point.y, text, sentence, point.x, point.x, sides)


def _rows(
    results: ResultSet, series: Family, entries: Mapping[str, Sequence[Entry]]
) -> Iterator[Row]:
    """Yield the rows of a contender: its name, then its releases."""
    blank = [Entry() for _ in next(iter(entries.values()))]
    yield Row(f"{results.column(series.title)}, {series.axis.title}", blank)
    for column in series.values:
        installed = " (installed)" if column == series.title else ""
        yield Row(f"  {series.text(column)}{installed}", entries.get(results.column(column), blank))


def _is_exact(step: Step) -> bool:
    return not _is_amount(step) or step.change.base.quantity.unit.is_exact


def _is_amount(step: Step) -> bool:
    return step.change.base.quantity.sense is Sense.AMOUNT


def _sentences(steps: Sequence[Step]) -> list[str]:
    """Describe each step in a sentence.

    The sentences contain the contender only if the steps are of several contenders.  They describe
    the table only if the steps are in several tables.
    """
    bases = [step.change.base for step in steps]
    several_contenders = len({step.series.title for step in steps}) > 1
    several_groups = len({group_of(base.result) for base in bases}) > 1
    sentences = []
    for step, title in zip(steps, figure_titles(bases), strict=True):
        words = [step.series.title] if several_contenders else []
        words.append(
            f"{title}, {description(step.change.base.result)}" if several_groups else title
        )
        sentences.append(
            f"{', '.join(words)}{_words(step.change, f' since {step.since}')}{_between(step)}"
        )
    return sentences


def _words(change: Change, since: str = "") -> str:
    """Describe a change in words that follow a cell's name; *since* may name a release."""
    base, new, ratio = change.base, change.new, change.ratio
    if base.quantity.sense is Sense.AMOUNT:
        return f", {base.quantity.title}: {new.text()}{since}, {base.text()} before"
    is_faster = ratio.value > 1
    ratio = ratio if is_faster else ratio.inverse
    how = f"{times(ratio)} times as fast" if is_faster else f"takes {times(ratio)} times as long"
    if base.quantity.sense is Sense.LATENCY:
        how = f"{times(ratio)} times {'lower' if is_faster else 'higher'} latency"
    return f": {how}{since} {interval(ratio)}"


def _between(step: Step) -> str:
    if not step.between:
        return ""
    verb = "was" if len(step.between) == 1 else "were"
    return f", or since {' or '.join(step.between)}, which {verb} not measured"


def _point(column: str, release: tuple[int, str], figure: Figure, oldest: Figure) -> Point:
    """Return a release's point: an amount, or a multiple of the oldest release's speed.

    The interval of a multiple comes from pairs of values, so that the machine's noise cancels out.
    """
    place, name = release
    if figure.quantity is not THROUGHPUT:
        low, high = figure.interval or (None, None)
        return Point(column, place, figure.value, figure.text(), low, high, part=name)
    ratio = ratio_of(oldest, figure)
    low, high = ratio.interval if ratio.is_known and figure is not oldest else (None, None)
    text = f"{multiple(ratio.value)}×, {figure.text()} {caption_of(THROUGHPUT, [figure.result])}"
    return Point(column, place, ratio.value, text, low, high, part=name)
