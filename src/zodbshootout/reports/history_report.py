"""The report of a history: its newest verdicts, charts over points, and an Atom feed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

from zodbshootout.model.costs import BY_NAME
from zodbshootout.model.wording import counted
from zodbshootout.reports.elements import (
    Chart,
    ChartKind,
    Entry,
    Point,
    Report,
    Row,
    Style,
    Table,
)
from zodbshootout.reports.metrics import cost_text, three_digits
from zodbshootout.reports.ratios import interval, multiple, times
from zodbshootout.results.history import (
    ANCHOR,
    CANARY,
    CANDIDATE,
    POSITION,
    PREVIOUS,
    STEP,
    PointCell,
)
from zodbshootout.results.history import Point as HistoryPoint
from zodbshootout.results.verdicts import Ratio
from zodbshootout.results.watching import (
    BASES,
    Finding,
    MachineHistory,
    canary_differs,
    changed_packages,
    smallest_change,
)

SINCE = {PREVIOUS: "the previous point", ANCHOR: "the anchor"}
"""Words for the roles with which the candidate (the watched contender) is compared."""
TO_ANCHOR, TO_PREVIOUS, LEFT_OUT = "to the anchor", "to the previous point", "left out"
ATOM = "http://www.w3.org/2005/Atom"


def history_report(histories: Sequence[MachineHistory], *, page: bool = False) -> Report:
    """Return the report: the newest verdicts, then hints, then the accepted changes.

    A *page* has charts, and a table of all points.
    """
    sentences = [line for history in histories for line in verdict_lines(history)]
    newest = [table for history in histories for table in _newest(history, histories)]
    remarks = [line for history in histories for line in _remarks(history)]
    sections = [
        *([] if page else [Report(newest, remarks, title="Newest point")]),
        _section(
            "Hints of slow drift, which are not verdicts",
            ("speed", "since about"),
            [row for history in histories for row in _hints(history)],
        ),
        _section(
            "Accepted",
            ("point", "reason"),
            [row for history in histories for row in _accepted(history)],
        ),
        *([Report([_points(one) for one in histories], title="Points")] if page else []),
    ]
    return Report(
        tables=newest if page else [],
        notes=remarks if page else sentences,
        records=[record for history in histories for record in _records(history)],
        parts=[part for part in sections if part.tables],
        title=_title(histories) if page else "",
        charts=[chart for one in histories for chart in _charts(one, histories)] if page else [],
        facts=[line for history in histories for line in _facts(history)],
        verdicts=[f"{sentence}." for sentence in sentences],
    )


def _section(title: str, columns: Sequence[str], rows: Sequence[Row]) -> Report:
    table = Table("", columns, rows, title="Cell", words=frozenset(columns))
    return Report([table] if rows else [], title=title)


def _title(histories: Sequence[MachineHistory]) -> str:
    names = dict.fromkeys(cell.contender for one in histories for cell in one.newest.cells)
    return f"History of {', '.join(names)}"


def _facts(history: MachineHistory) -> Iterator[str]:
    first, newest = history.points[0], history.newest
    count = len(history.points)
    yield f"{history.name}: {counted(count, 'point')}, {first.date[:10]} to {newest.date[:10]}"
    for role in (CANDIDATE, ANCHOR):
        packages = (f"{name} {package}" for name, package in newest.packages[role].items())
        yield f"{role}: {newest.python}, {', '.join(packages)}"


def verdict_lines(history: MachineHistory) -> Iterator[str]:
    """Yield the sentences on the newest point; changes for the worse come first."""
    newest = history.newest
    where = f"{newest.name}: "
    if canary_differs(newest):
        yield f"{where}no verdict, because the twin of the anchor differs from it"
        return
    findings = [one for one in history.findings[newest.name] if not one.accepted]
    findings.sort(key=lambda one: (one.is_better, list(SINCE).index(one.base), one.ratio.value))
    for finding in findings:
        yield f"{where}{sentence(finding)}"
    if not findings:
        smallest = [size for cell in newest.cells if (size := _smallest(newest, cell))]
        seen = f"; {_range(smallest)} would have been" if smallest else ""
        yield f"{where}no change was found{seen}"


def sentence(finding: Finding) -> str:
    """Return a finding in words."""
    base = "at the previous point" if finding.base == PREVIOUS else "with the anchor"
    cell, ratio = finding.cell, finding.ratio
    if finding.count:
        cost = BY_NAME[finding.count]
        new, old = (cost_text(cost, amount) for amount in finding.amounts)
        return f"{cell.name}: {new} {cost.title} per {cost.per}, {old} {base}"
    if not finding.is_better:
        slower = ratio.inverse
        return f"{cell.name} takes {times(slower)} times as long as {base} {interval(slower)}"
    return f"{cell.name} is {times(ratio)} times as fast as {base} {interval(ratio)}"


def _range(sizes: Sequence[float]) -> str:
    least, most = (three_digits(100 * (size - 1)) for size in (min(sizes), max(sizes)))
    return f"changes of {least} %" if least == most else f"changes of {least} to {most} %"


def _smallest(point: HistoryPoint, cell: PointCell) -> float | None:
    """Return the smallest change that a point would have detected in a cell."""
    tested = sum(name in other.ratios for other in point.cells for name in BASES)
    ratio = cell.ratios.get(STEP) or cell.ratios.get(POSITION)
    return smallest_change(ratio, tested) if ratio else None


def _newest(history: MachineHistory, histories: Sequence[MachineHistory]) -> Iterator[Table]:
    newest = history.newest
    findings = {
        (one.cell.name, one.base): one for one in history.findings[newest.name] if not one.count
    }
    trips = any("trips" in cell.costs for cell in newest.cells)
    rows = []
    for cell in newest.cells:
        ratios = [
            _entry(cell.ratios.get(name), findings.get((cell.name, base)))
            for name, base in BASES.items()
        ]
        counted = [_trips(cell)] if trips else []
        rows.append(Row(cell.name, [*ratios, _size_entry(_smallest(newest, cell)), *counted]))
    where = f", {history.name}" if len(histories) > 1 else ""
    columns = [TO_PREVIOUS, TO_ANCHOR, "detectable from", *(["round trips"] if trips else [])]
    caption = f"Speed at {newest.name} as a multiple of that of the previous point and the anchor"
    yield Table(f"{caption}{where}", columns, rows, title="Cell")


def _entry(ratio: Ratio | None, finding: Finding | None) -> Entry:
    if ratio is None:
        return Entry("-", style=Style.DIM)
    style = Style.PLAIN
    if finding is not None and not finding.accepted:
        style = Style.GOOD if finding.is_better else Style.BAD
    mark = "?" if finding is None else "×"
    return Entry(f"{multiple(ratio.value)}{mark}", ratio.value, style, interval(ratio))


def _size_entry(size: float | None) -> Entry:
    return Entry("-") if size is None else Entry(f"{three_digits(100 * (size - 1))} %", size - 1)


def _trips(cell: PointCell) -> Entry:
    amounts = cell.costs.get("trips", {})
    if CANDIDATE not in amounts:
        return Entry("")
    texts = {role: cost_text(BY_NAME["trips"], own[1]) for role, own in amounts.items()}
    before = texts.get(PREVIOUS, texts.get(ANCHOR, texts[CANDIDATE]))
    changed = "" if before == texts[CANDIDATE] else f"{before} → "
    return Entry(f"{changed}{texts[CANDIDATE]}", amounts[CANDIDATE][1])


def _remarks(history: MachineHistory) -> Iterator[str]:
    newest = history.newest
    for role, reason in newest.absent.items():
        yield f"{newest.name}: no ratio to {SINCE.get(role, f'the {role}')}: {reason}"
    yield from history.new_series
    for point in history.points:
        for name, (once, again) in history.open_chains[point.name].items():
            yield (
                f"{point.name}: the chain of anchors does not close for {name}: "
                f"the ratio to the former anchor is {multiple(again.value)} now, but was "
                f"{multiple(once.value)} at the point before; a new series begins"
            )
    if history.left_out:
        names = ", ".join(history.left_out)
        yield f"left out, because the twin of the anchor differs from it: {names}"
    busy = newest.other_load + newest.steal
    if busy >= 0.1:  # noqa: PLR2004
        yield f"{newest.name}: other programs used {100 * busy:.0f} % of the processors"


def _hints(history: MachineHistory) -> Iterator[Row]:
    for hint in history.hints:
        yield Row(hint.cell.name, [Entry(f"{multiple(hint.ratio)}×"), Entry(hint.since)])


def _accepted(history: MachineHistory) -> Iterator[Row]:
    for change in history.accepted:
        if change.point in history.by_name:
            yield Row(change.cell or change.benchmark, [Entry(change.point), Entry(change.reason)])


def _points(history: MachineHistory) -> Table:
    """Return the table of all points of a machine, the newest first."""
    rows = []
    for point in reversed(history.points):
        findings = history.findings[point.name]
        words = [sentence(one) for one in findings if one.base == PREVIOUS and not one.accepted]
        verdict = "canary differs" if point.name in history.left_out else "; ".join(words)
        rows.append(
            Row(point.name, [Entry(_changed(history, point)), Entry(verdict), Entry(point.label)])
        )
    columns = ["what changed", "verdicts", "label"]
    return Table(history.name, columns, rows, title="Point", words=frozenset(columns))


def _charts(history: MachineHistory, histories: Sequence[MachineHistory]) -> Iterator[Chart]:
    """Yield a chart for each cell of a machine's newest point, over all points of the machine."""
    machine = f"{history.name}; " if len(histories) > 1 else ""
    happened = {
        point.name: ": ".join(filter(None, [point.name, _changed(history, point)]))
        for point in history.points
    }
    for cell in history.newest.cells:
        if points := list(_chart_points(history, cell, happened)):
            yield Chart(
                ChartKind.POINTS,
                cell.name,
                subtitle=f"{machine}ring: a verdict",
                x_title="point",
                y_title="speed as a multiple of the anchor's or the previous point's "
                "(more is better)",
                points=points,
                columns=[TO_ANCHOR, TO_PREVIOUS, *[LEFT_OUT] * bool(history.left_out)],
            )


def _changed(history: MachineHistory, point: HistoryPoint) -> str:
    return ", ".join(changed_packages(point, history.by_name.get(point.previous)))


def _chart_points(
    history: MachineHistory, cell: PointCell, happened: Mapping[str, str]
) -> Iterator[Point]:
    findings = {
        (one.point, one.base)
        for of_point in history.findings.values()
        for one in of_point
        if one.cell.name == cell.name and not one.count
    }
    for line, series in enumerate(history.series[cell.name]):
        for position in series:
            ratio = Ratio(position.log, position.cell.ratios[POSITION].runs)
            name = position.point.name
            known = (name, ANCHOR) in findings
            shown = _chart_point(TO_ANCHOR, position.number, ratio, happened[name], known=known)
            yield replace(shown, line=line)
    for number, point in enumerate(history.points):
        own = next((one for one in point.cells if one.name == cell.name), None)
        is_left_out = point.name in history.left_out
        column, name = (LEFT_OUT, POSITION) if is_left_out else (TO_PREVIOUS, STEP)
        if own is not None and name in own.ratios:
            known = not is_left_out and (point.name, PREVIOUS) in findings
            yield _chart_point(column, number, own.ratios[name], happened[point.name], known=known)


def _chart_point(column: str, number: int, ratio: Ratio, where: str, *, known: bool) -> Point:
    low, high = ratio.interval
    text = f"{times(ratio)} {interval(ratio)}"
    return Point(column, number + 1, ratio.value, text, low, high, knee=known, part=where)


def _records(history: MachineHistory) -> Iterator[dict[str, Any]]:
    positions = {
        (position.point.name, name): position
        for name, series in history.series.items()
        for of_series in series
        for position in of_series
    }
    for point in history.points:
        changes = {(one.cell.name, one.base) for one in history.findings[point.name]}
        for cell in point.cells:
            position = positions.get((point.name, cell.name))
            yield {
                "point": point.name, "date": point.date, "machine": history.name,
                "cell": cell.name, "benchmark": cell.benchmark, "contender": cell.contender,
                "measure": cell.measure or None, "series": cell.series, "figure": cell.figure,
                **_columns("previous", cell.ratios.get(STEP)),
                **_columns("anchor", cell.ratios.get(POSITION)),
                "position": position and Ratio(position.log, 0).value,
                "canary": cell.ratios[CANARY].value if CANARY in cell.ratios else None,
                "canary_differs": point.name in history.left_out,
                "smallest_change": _smallest(point, cell),
                "changed": (cell.name, PREVIOUS) in changes,
                "differs_from_anchor": (cell.name, ANCHOR) in changes,
            }  # fmt: skip


def _columns(base: str, ratio: Ratio | None) -> dict[str, float | None]:
    low, high = ratio.interval if ratio else (None, None)
    return {
        f"ratio_to_{base}": ratio.value if ratio else None, f"{base}_low": low, f"{base}_high": high
    }  # fmt: skip


def exported(history: MachineHistory, *, bigger_is_better: bool) -> list[dict[str, Any]]:
    """Return the cells of the newest point as entries for github-action-benchmark.

    A value is a speed or a time, divided by the anchor's, so it hardly depends on the machine.
    """
    entries = []
    for cell in history.newest.cells:
        if POSITION not in cell.ratios:
            continue
        ratio = cell.ratios[POSITION] if bigger_is_better else cell.ratios[POSITION].inverse
        low, high = ratio.interval
        entries.append(
            {
                "name": cell.name,
                "unit": "speed / anchor" if bigger_is_better else "time / anchor",
                "value": ratio.value,
                "range": f"± {three_digits(100 * (high - low) / 2 / ratio.value)} %",
                "extra": f"{low:.4g} to {high:.4g}; {history.newest.name}",
            }
        )
    return entries


def atom(histories: Sequence[MachineHistory], page: str) -> str:
    """Return an Atom feed with an entry for each point that has verdicts.

    *page* is the name of the history's page, in the same directory as the feed.
    """
    ET.register_namespace("", ATOM)
    feed = ET.Element(f"{{{ATOM}}}feed")
    newest = max(history.newest.date for history in histories)
    _element(feed, "title", _title(histories))
    _element(feed, "id", f"urn:zodbshootout:history:{histories[0].points[0].name}")
    _element(feed, "updated", newest)
    _element(_element(feed, "author", ""), "name", "zodbshootout")
    entries = [
        (point, lines)
        for history in histories
        for point in history.points
        if (lines := [sentence(one) for one in history.findings[point.name]
                      if one.base == PREVIOUS and not one.accepted])
    ]  # fmt: skip
    for point, lines in sorted(entries, key=lambda one: one[0].name, reverse=True):
        entry = _element(feed, "entry", "")
        first, *others = lines
        _element(entry, "title", first + (f" and {len(others)} more" if others else ""))
        _element(entry, "id", f"urn:zodbshootout:history:{point.name}:{point.machine_name}"
                 .replace(" ", "_"))  # fmt: skip
        _element(entry, "updated", point.date)
        _element(entry, "link", "", href=page)
        _element(entry, "content", "\n".join(lines), type="text")
    ET.indent(feed)
    return ET.tostring(feed, encoding="unicode", xml_declaration=True) + "\n"


def _element(parent: ET.Element, name: str, text: str, **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, f"{{{ATOM}}}{name}", attributes)
    element.text = text or None
    return element
