"""Tables and charts of replays: the time of each step, latencies, and events such as conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from zodbshootout.model.latencies import NANOSECONDS
from zodbshootout.recording.description import Step
from zodbshootout.reports.elements import Chart, ChartKind, Entry, Point, Row, Style, Table
from zodbshootout.reports.headings import Columned, description, rows_of
from zodbshootout.reports.metrics import METRICS, per_iteration
from zodbshootout.results.result import USUAL, CellResult

RECORDED = "recorded"
"""The title of the column with the events that were recorded in the workload."""
_KINDS = {"read_only": "read-only", "writing": "writing"}
_EVENTS = {
    "conflicts": "conflicts",
    "resolutions": "conflicts resolved",
    "retries": "retries",
    "extra_loads": "reloads after invalidation",
    "loads_of_other_size": "loads of another size",
    "waits": "waits for another client",
}
"""The titles of rows about events, by metadata key."""
_SECONDS = METRICS["seconds"]


def replay_tables(cells: Sequence[Columned]) -> Iterator[Table]:
    """Yield the tables about the replays among the cells: times of steps, latencies, events."""
    for group in _groups(cells):
        about, columns, results = _about(group), list(group), list(group.values())
        steps = [
            Row(step.value, [_time(result, _step(result, step)) for result in results])
            for step in Step
        ]
        tables = [
            Table(f"Time by step (less is better): {about}", columns, steps, "Step"),
            Table(
                f"Latency (less is better): {about}", columns,
                list(_latencies(results)), "Transactions",
            ),
            Table(
                f"Events per transaction: {about}", [RECORDED, *columns],
                list(_events(results)), "Event",
            ),
        ]  # fmt: skip
        yield from (table for table in tables if table.rows)


def replay_notes(cells: Sequence[Columned]) -> Iterator[str]:
    """Yield a note if replays at full speed had conflicts."""
    groups = _groups([cell for cell in cells if not cell[1].paced])
    results = [result for group in groups for result in group.values()]
    if any(per_iteration(result, "conflicts") for result in results):
        yield (
            "replay: as fast as possible, so the conflicts are not those of the application; "
            "--speed 1 begins transactions at their recorded times"
        )


def step_charts(cells: Sequence[Columned], columns: Sequence[str]) -> Iterator[Chart]:
    """Yield a chart for each table of steps."""
    for group in _groups(cells):
        points = [
            Point(column, 0, seconds, _SECONDS.text(result, seconds), part=step.value)
            for column, result in group.items()
            for step in Step
            if (seconds := _step(result, step)) is not None
        ]
        yield Chart(
            ChartKind.STACKS,
            "Where the time goes",
            subtitle=_about(group),
            x_title="",
            y_title="time of a transaction by step (less is better)",
            points=points,
            columns=columns,
            in_seconds=True,
        )


def _groups(cells: Sequence[Columned]) -> list[Mapping[str, CellResult]]:
    """Group the replays that have the same parameters; a group maps columns to results."""
    replays = (cell for cell in cells if cell[1].timed and cell[1].cell.parameters.workload.name)
    return list(map(dict, rows_of(replays)))


def _about(group: Mapping[str, CellResult]) -> str:
    result = next(iter(group.values()))
    parameters = result.cell.parameters
    replayed = f"{parameters.workload.name} {parameters.during}".rstrip()
    return f"{replayed}, {description(result)}"


def _time(result: CellResult, seconds: float | None) -> Entry:
    if seconds is None:
        return Entry("-", style=Style.DIM)
    return Entry(_SECONDS.text(result, seconds), seconds)


def _step(result: CellResult, step: Step) -> float | None:
    nanoseconds = per_iteration(result, f"{step.value}_ns")
    return None if nanoseconds is None else nanoseconds / NANOSECONDS


def _latencies(results: Sequence[CellResult]) -> Iterator[Row]:
    for kind, words in _KINDS.items():
        latencies = [result.latencies_at(USUAL, kind) for result in results]
        if not any(latencies):
            continue
        for percentile in USUAL:
            entries = [
                _time(result, seconds.get(percentile))
                for result, seconds in zip(results, latencies, strict=True)
            ]
            yield Row(f"{words}, p{percentile}", entries)


def _events(results: Sequence[CellResult]) -> Iterator[Row]:
    workload = results[0].cell.parameters.workload
    for key, words in _EVENTS.items():
        recorded = getattr(workload, key, None)
        figures = [None if recorded is None else recorded / max(1, workload.transactions)]
        figures += [per_iteration(result, key) for result in results]
        if any(figures):
            entries = [
                Entry("-", style=Style.DIM) if figure is None else Entry(f"{figure:.3g}", figure)
                for figure in figures
            ]
            yield Row(words, entries)
