"""Contenders in several releases of a package: tables, charts, and steps (significant changes)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from zodbshootout.model.grouping import grouped
from zodbshootout.model.quantities import THROUGHPUT, Quantity, Sense
from zodbshootout.model.units import SECONDS
from zodbshootout.reports.cells import Cells, Curves
from zodbshootout.reports.comparison import ratio_entry
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
    Table,
)
from zodbshootout.reports.headings import caption_of, description, figure_titles, group_of
from zodbshootout.results.axes import Family
from zodbshootout.results.changes import ratio_of
from zodbshootout.results.figures import Figure
from zodbshootout.results.ratios import multiple
from zodbshootout.results.series import Step

CHANGES = "Speed as a multiple of that of the previous release"
RELATIVE = "speed as a multiple of that of the oldest release (more is better)"
NO_STEP = "no difference between consecutive releases is significant"


def title_over_releases(cells: Cells, column: str) -> str:
    """Return a column's title or, for a release, the title of its contender."""
    for family in cells.families:
        if column in {family.title, *family.values}:
            return f"{family.title} over {family.axis.title}"
    return column


def with_releases(table: Table, cells: Cells) -> Table:
    """Return the table with a row for each release, and a column for each former row.

    A table without releases is unchanged.
    """
    released = {name for family in cells.families for name in family.values}
    if released.isdisjoint(table.columns):
        return table
    entries = {
        column: [row.entries[number] for row in table.rows]
        for number, column in enumerate(table.columns)
    }
    rows = [Row(column, own) for column, own in entries.items() if column not in released]
    for family in cells.families:
        rows += _rows(family, entries)
    titles = [row.title for row in table.rows]
    return replace(table, columns=titles, rows=rows, title="Release")


def step_lines(cells: Cells, *, all_costs: bool = False) -> Iterator[str]:
    """Yield a line for each step; without *all_costs*, leave out costs that are not counts."""
    steps = [step for step in cells.steps.values() if all_costs or _is_exact(step)]
    yield from _sentences(steps)
    if cells.families and not steps:
        yield NO_STEP


def largest_steps(cells: Cells) -> list[str]:
    """Return sentences on the steps of times, the largest first; if there are none, say so."""
    steps = [step for step in cells.steps.values() if not _is_amount(step)]
    steps.sort(key=lambda step: -abs(step.change.ratio.log.mean))
    return _sentences(steps) or [NO_STEP] * bool(cells.families)


def releases_section(cells: Cells) -> Report:
    """Return a page's section on releases, which is empty if there are no releases."""
    costs = dict.fromkeys(step.series.quantity for step in cells.steps.values() if _is_amount(step))
    charts = [
        chart
        for quantity in (THROUGHPUT, *costs)
        for chart in _charts(cells, quantity)
        if chart.marks or quantity is THROUGHPUT
    ]
    notes = list(map(Note, step_lines(cells, all_costs=True)))
    return Report(list(_tables(cells)), notes, title="Over releases", charts=charts)


def _tables(cells: Cells) -> Iterator[Table]:
    """Yield tables of the changes of times, with a row for each release."""
    groups = grouped(
        (group_of(step.change.base.result), step)
        for results in cells.files
        for step in results.steps
        if not _is_amount(step)
    )
    for steps in groups.values():
        titles = figure_titles([step.change.base for step in steps])
        rows: dict[str, dict[str, Entry]] = {}
        for step, title in zip(steps, titles, strict=True):
            release = f"{step.series.title}, {step.series.axis.title} {step.since}"
            ratio = ratio_entry(step.change) or MISSING
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


def _charts(cells: Cells, quantity: Quantity) -> Iterator[Chart]:
    """Yield charts of a quantity of each benchmark over the releases of a package."""
    for axis in dict.fromkeys(family.axis for family in cells.families):
        there = [
            (family.title, result)
            for family in cells.families
            if family.axis == axis
            for column, result in cells
            if column in family.values
        ]
        for curves in replace(cells, columned=there).curves(axis, quantity):
            yield _chart(cells, curves)


def _chart(cells: Cells, curves: Curves) -> Chart:
    axis, quantity = curves.axis, curves.figures[0].quantity
    order = axis.ordered(map(axis.of, curves.group.results))
    points: list[Point] = []
    marks: list[Mark] = []
    for column, series in curves.by_column.items():
        for figure in series.figures:
            place = order.index(axis.of(figure.result))
            points.append(_point(column, place, figure, series.figures[0]))
            if step := cells.steps.get((column, axis, figure.key)):
                marks.append(_mark(step, points[-1]))
    return Chart(
        ChartKind.LINES,
        curves.group.title,
        curves.group.description,
        Scale(axis.title, names=list(map(axis.text, order))),
        # Releases differ so little that a scale from 0 on would hide their steps.
        Scale(
            RELATIVE if quantity is THROUGHPUT else f"{quantity.caption} (less is better)",
            Labels.SECONDS if quantity.unit is SECONDS else Labels.NUMBERS,
            from_zero=False,
        ),
        points,
        cells.columns,
        marks=marks,
    )


def _mark(step: Step, point: Point) -> Mark:
    (sentence,) = _sentences([step])
    text = f"{multiple(step.change.shown.value)}×"
    return Mark(point.x, point.y, text, sentence, point.x, point.x, (point.column, point.column))


def _rows(family: Family, entries: Mapping[str, Sequence[Entry]]) -> Iterator[Row]:
    """Yield the rows of a contender: its name, then its releases."""
    blank = [Entry() for _ in next(iter(entries.values()))]
    yield Row(f"{family.title}, {family.axis.title}", blank)
    for column in family.values:
        installed = " (installed)" if column == family.title else ""
        yield Row(f"  {family.text(column)}{installed}", entries.get(column, blank))


def _is_exact(step: Step) -> bool:
    return not _is_amount(step) or step.series.quantity.unit.is_exact


def _is_amount(step: Step) -> bool:
    return step.series.quantity.sense is Sense.AMOUNT


def _sentences(steps: Sequence[Step]) -> list[str]:
    """Describe each step in a sentence.

    The sentences contain the contender only if the steps are of several contenders.  They describe
    the table only if the steps are in several tables.
    """
    bases = [step.change.base for step in steps]
    several_contenders = len({step.series.title for step in steps}) > 1
    several_groups = len({group_of(base.result) for base in bases}) > 1
    sentences = []
    for step, base, title in zip(steps, bases, figure_titles(bases), strict=True):
        words = [step.series.title] if several_contenders else []
        words += [title, description(base.result)] if several_groups else [title]
        words += [base.quantity.title] if _is_amount(step) else []
        sentences.append(f"{', '.join(words)}: {step.sentence}")
    return sentences


def _point(column: str, place: int, figure: Figure, oldest: Figure) -> Point:
    """Return a release's point: an amount, or a multiple of the oldest release's speed.

    The interval of a multiple comes from pairs of values, so that the machine's noise cancels out.
    """
    if figure.quantity is not THROUGHPUT:
        low, high = figure.interval or (None, None)
        return Point(column, place, figure.value, figure.text(), low, high)
    ratio = ratio_of(oldest, figure)
    low, high = ratio.interval if ratio.is_known and figure is not oldest else (None, None)
    text = f"{multiple(ratio.value)}×, {figure.text()} {caption_of(THROUGHPUT, [figure.result])}"
    return Point(column, place, ratio.value, text, low, high)
