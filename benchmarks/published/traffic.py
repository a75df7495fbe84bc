"""Tables of round trips and bytes per iteration, by benchmark and contender."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from zodbshootout.model.quantities import QUANTITIES
from zodbshootout.reports.elements import DASH, Entry, Row, Table
from zodbshootout.results.result import CellResult

_CAPTIONS = {"trips": "Round trips of an iteration", "bytes": "Bytes sent and received"}
_BETWEEN = " / "
"""The text between figures for different numbers of objects."""

_Cells = Mapping[str, Mapping[str, Sequence[CellResult]]]
"""Results by benchmark and contender, one for each number of objects."""


def traffic_tables(results: Sequence[CellResult]) -> Iterator[Table]:
    """Yield a table for round trips and one for bytes, with the traffic to cache servers added."""
    cells: dict[str, dict[str, list[CellResult]]] = {}
    for result in results:
        row = cells.setdefault(result.cell.benchmark, {})
        row.setdefault(result.cell.title, []).append(result)
    columns = list(dict.fromkeys(result.cell.title for result in results))
    counts = sorted({result.cell.parameters.objects for result in results} - {0})
    for name, title in _CAPTIONS.items():
        caption = f"{title}, with {_BETWEEN.join(map(str, counts))} objects"
        yield Table(caption, columns, list(_rows(cells, columns, name)))


def _rows(cells: _Cells, columns: Sequence[str], cost: str) -> Iterator[Row]:
    for benchmark, row in cells.items():
        entries = [Entry(_entry(row.get(column, ()), cost)) for column in columns]
        yield Row(benchmark, entries)


def _entry(results: Sequence[CellResult], cost: str) -> str:
    ordered = sorted(results, key=lambda result: result.cell.parameters.objects)
    texts = [_figure(result, cost) for result in ordered if result.measured]
    return _BETWEEN.join(texts) or DASH


def _figure(result: CellResult, cost: str) -> str:
    """Return a cost per iteration, followed by a plus and the cost of cache servers, if any."""
    kinds = (QUANTITIES[cost], QUANTITIES[f"cache_{cost}"])
    counted = (result.figures[kind] for kind in kinds)
    return " + ".join(figure.entry for figure in counted if figure) or DASH
