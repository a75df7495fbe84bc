"""The table that a run closes with: a row for each benchmark, a column for each contender."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from zodbshootout.client.outcome import State
from zodbshootout.client.parameters import Parameters
from zodbshootout.model import Cell
from zodbshootout.results import CellResult

_WORDS = {State.FAILED: "failed", State.UNSUPPORTED: "n/a", State.NOT_RUN: "not run"}
_STYLES = {State.FAILED: "red", State.UNSUPPORTED: "dim", State.NOT_RUN: "dim"}
UNSTABLE = 0.1
"""The relative standard deviation from which on pyperf, too, calls a benchmark unstable."""


@dataclass
class _Notes:
    """Reasons, numbered in the order in which they are first referred to."""

    contenders: int
    """How many there are in all."""
    cells: dict[tuple[State, str], list[Cell]] = field(default_factory=dict)

    def number(self, result: CellResult) -> int:
        """Return the number of the reason of a result."""
        key = (result.state, result.reason)
        self.cells.setdefault(key, []).append(result.cell)
        return list(self.cells).index(key) + 1

    def lines(self, all_benchmarks: Sequence[str]) -> Iterable[str]:
        """Return the notes, one line each."""
        for number, ((state, reason), cells) in enumerate(self.cells.items(), 1):
            where = _where(cells, all_benchmarks)
            advice = self._advice(cells) if state is State.UNSUPPORTED else ""
            yield f"[{number}] {where}: {_NOTE_WORDS[state]}: {reason}{advice}"

    def _advice(self, cells: Sequence[Cell]) -> str:
        """Return the words that leave out a row which no contender of the table can run."""
        names = {cell.benchmark for cell in cells}
        if len(names) > 1 or len({cell.contender for cell in cells}) < self.contenders:
            return ""
        return f" (leave it out: -{names.pop()})"


_NOTE_WORDS = {
    State.MEASURED: "incomplete",
    State.FAILED: "failed",
    State.UNSUPPORTED: "not supported",
}


def _where(cells: Sequence[Cell], all_benchmarks: Sequence[str]) -> str:
    contenders = ", ".join(dict.fromkeys(cell.contender for cell in cells))
    names = list(dict.fromkeys(cell.benchmark for cell in cells))
    if set(names) == set(all_benchmarks):
        return f"{contenders}, every benchmark" if len(all_benchmarks) > 1 else contenders
    return f"{contenders}, {', '.join(names)}"


@dataclass(frozen=True)
class Heading:
    """What the row of a benchmark says."""

    title: str
    """``{objects}`` in it stands for the number of objects."""
    counted: str = "objects"
    """What the figures in the row count: they are so many per second."""


def print_table(
    console: Console, results: Sequence[CellResult], headings: Mapping[str, Heading]
) -> None:
    """Print the results, and what has no number and why.

    There is a table for each crew, for each kind of objects, and for what the figures count.
    *headings* has the row of each benchmark.
    """
    notes = _Notes(len({result.cell.contender for result in results}))
    for (counted, *_), group in _groups(results, headings).items():
        console.print()
        console.print(Text(_caption(group, str(counted)), style="bold"), soft_wrap=True)
        _print_whole(console, _table(group, headings, notes, ascii_only=_ascii_only(console)))
    console.print()
    benchmarks = list(dict.fromkeys(result.cell.benchmark for result in results))
    for line in (
        *notes.lines(benchmarks),
        *_restarted(results, benchmarks),
        *_not_emptied(results),
    ):
        console.print(Text(line), soft_wrap=True)


def _restarted(results: Sequence[CellResult], all_benchmarks: Sequence[str]) -> Iterable[str]:
    """Return a line that tells which figures were measured with servers newly started."""
    cells = [result.cell for result in results if result.servers_restarted]
    if cells:
        yield f"{_where(cells, all_benchmarks)}: servers restarted before each value"


def _not_emptied(results: Sequence[CellResult]) -> Iterable[str]:
    """Return a line that tells which caches a cold read may have come from all the same."""
    cold = [result for result in results if result.uncleared_caches]
    if cold:
        names = ", ".join(dict.fromkeys(result.cell.benchmark for result in cold))
        left = dict.fromkeys(f"{each.cell.contender}: {each.uncleared_caches}" for each in cold)
        yield f"{names}: not emptied: {'; '.join(left)}"


def _print_whole(console: Console, table: Table) -> None:
    """Print a table at its natural width: a number must not be cut off, whatever the terminal."""
    width = console.width
    natural = console.measure(table, options=console.options.update(width=10_000)).maximum
    console.width = max(width, natural)
    console.print(table)
    console.width = width


def _ascii_only(console: Console) -> bool:
    return not console.encoding.lower().startswith("utf")


def _groups(
    results: Sequence[CellResult], headings: Mapping[str, Heading]
) -> dict[tuple[object, ...], list[CellResult]]:
    groups: dict[tuple[object, ...], list[CellResult]] = {}
    for result in results:
        parameters = result.cell.parameters
        counted = headings[result.cell.benchmark].counted
        data = _data(parameters) if _depends_on_data(counted, parameters) else ""
        groups.setdefault((counted, parameters.crew, data), []).append(result)
    return groups


def _table(
    group: Sequence[CellResult], headings: Mapping[str, Heading], notes: _Notes, *, ascii_only: bool
) -> Table:
    contenders = list(dict.fromkeys(result.cell.contender for result in group))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("Transaction", no_wrap=True)
    for contender in contenders:
        table.add_column(Text(contender), justify="right", no_wrap=True)
    rows: dict[tuple[str, int], dict[str, CellResult]] = {}
    for result in group:
        key = (result.cell.benchmark, result.cell.parameters.objects)
        rows.setdefault(key, {})[result.cell.contender] = result
    for (benchmark, objects), by_contender in rows.items():
        title = headings[benchmark].title.format(objects=objects)
        texts = [_text(by_contender[name], notes, ascii_only=ascii_only) for name in contenders]
        table.add_row(Text(title), *texts)
    return table


def _caption(group: Sequence[CellResult], counted: str) -> str:
    first = group[0].cell.parameters
    data = f", {_data(first)}" if _depends_on_data(counted, first) else ""
    if any(result.measured and result.unit == "byte" for result in group):
        what = "Memory of a worker (less"
    else:
        what = f"{counted[0].upper()}{counted[1:]} per second (more"
    return f"{what} is better): {first.crew}{data}"


def _depends_on_data(counted: str, parameters: Parameters) -> bool:
    return counted == "objects" or parameters.min_objects > 0


def _data(parameters: Parameters) -> str:
    mapping = parameters.mapping.value
    article = "an" if mapping[0] in "IO" else "a"
    what = "blobs" if parameters.blobs else "objects"
    return f"{what} of {parameters.object_size} bytes in {article} {mapping}"


def _text(result: CellResult, notes: _Notes, *, ascii_only: bool) -> Text:
    if not result.measured:
        word = _WORDS[result.state]
        reference = f" [{notes.number(result)}]" if result.reason else ""
        return Text(f"{word}{reference}", style=_STYLES[result.state])
    if result.unit == "byte":
        return Text(result.benchmark().format_value(result.mean))
    text = Text(f"{result.objects_per_second:,.0f}")
    if result.reason:
        text.append(f" [{notes.number(result)}]", style="yellow")
    if result.spread is not None:
        style = "yellow" if result.spread >= UNSTABLE else "dim"
        sign = "+-" if ascii_only else "±"
        text.append(f" {sign}{result.spread:3.0%}", style=style)
    return text
