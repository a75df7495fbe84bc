"""The progress of a run: a live table on a terminal, lines in a pipe or a file."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment, Segments
from rich.table import Column

from zodbshootout.cli.options import Options
from zodbshootout.cli.output import Streams
from zodbshootout.model.quantities import shown
from zodbshootout.model.wording import counted
from zodbshootout.reports import text
from zodbshootout.reports.cells import ResultSet, in_first_rows
from zodbshootout.reports.tables import make_report
from zodbshootout.results.names import long_name, row_name
from zodbshootout.results.result import CellResult
from zodbshootout.scheduling.plan import Plan
from zodbshootout.scheduling.result_store import Observer

WORTH_SHOWING = 30.0
"""The shortest remaining time that is worth a line, in seconds."""
PAUSE = 1.0
"""The minimum time between two updates of the live table, in seconds."""
PENDING = "…"
"""The live table's entry for a cell without a run."""


@contextmanager
def progress_on(streams: Streams, plan: Plan, options: Options) -> Iterator[Observer]:
    """Show the progress of a plan in the form that the options ask for."""
    if options.quiet:
        yield Observer()
    elif streams.err.is_terminal:
        table = LiveTable(streams, plan.baseline)
        with table.live:
            yield table
    else:
        yield Lines(streams, len(plan.rows), verbose=options.verbose)


class _Printed(Observer):
    """Print failures and the output of workers, line by line."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def cell_failed(self, result: CellResult) -> None:
        self.relay(f"{long_name(result.cell)}: {describe(result)}")

    def relay(self, line: str) -> None:
        self._streams.tell(line)


class Lines(_Printed):
    """Print a line for each row, and the time left whenever it has halved or doubled."""

    def __init__(self, streams: Streams, rows: int, *, verbose: bool = False) -> None:
        super().__init__(streams)
        self._rows = rows
        self._verbose = verbose
        self._done = 0
        self._printed = 0.0
        """The latest estimate that was printed, in seconds."""

    def left(self, seconds: float) -> None:
        has_changed = not self._printed / 2 < seconds < self._printed * 2
        if seconds >= WORTH_SHOWING and has_changed:
            self._printed = seconds
            minutes = math.ceil(seconds / 60)
            self.relay(f"about {counted(minutes, 'minute')} left")

    def row_done(self, results: Sequence[CellResult]) -> None:
        self._done += 1
        cell = results[0].cell
        name = row_name(cell)
        figures = ", ".join(
            f"{result.cell.title} {describe(result)}" for result in results if result.measured
        )
        place = f"{self._done}/{self._rows}" if self._done <= self._rows else "again"
        self.relay(f"[{place}] {name}: {figures or 'no figures'}")

    def note(self, step: str) -> None:
        if self._verbose:
            self.relay(step)


def describe(result: CellResult) -> str:
    """Describe a result in a few words."""
    if not result.measured:
        return f"{result.state.value}: {result.reason}"
    chosen = shown(result.cell.parameters, result.facts)
    figure = next(filter(None, (result.figures[one] for one in chosen if one.watched)), None)
    if figure is None:
        return "no figure"
    within = "" if figure.half_width is None else f" ±{figure.half_width:.0%}"
    return f"{figure.text()}{within}"


class LiveTable(_Printed):
    """Show the table as it grows, and below it the current step and the time left.

    The table is on the screen while the context manager :attr:`live` is active.
    """

    def __init__(
        self,
        streams: Streams,
        baseline: str | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(streams)
        console = self._console = streams.err
        self._baseline = baseline
        self._clock = clock
        self._lock = threading.RLock()
        """A lock that a thread holds while it renders the table."""
        self._results: Sequence[CellResult] = ()
        self._table = Segments([])
        self._is_current = True
        """Whether the table shows the latest results."""
        self._next = -math.inf
        """The earliest time of the next update, in seconds by the clock."""
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=16),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
            ),
            console=console,
            get_time=clock,
            expand=True,
        )
        self._step = self._progress.add_task("starting", total=None, left="")
        self.live = Live(console=console, get_renderable=self._render, transient=True)

    def left(self, seconds: float) -> None:
        self._update()
        elapsed = self._progress.tasks[self._step].elapsed or 0.0
        if seconds:
            minutes, rest = divmod(math.ceil(seconds), 60)
            self._progress.update(
                self._step,
                total=elapsed + seconds,
                completed=elapsed,
                left=f"{minutes}:{rest:02} left",
            )
        else:
            # If the bar were full, the displayed elapsed time would stop.  Without a total, the bar
            # moves to and fro.
            self._progress.update(self._step, total=None, completed=0, left="")

    def note(self, step: str) -> None:
        self._update()
        self._progress.update(self._step, description=self._streams.mask(step))

    def results_changed(self, results: Sequence[CellResult]) -> None:
        self._results, self._is_current = results, False

    def _update(self) -> None:
        """Render changed results, unless the last rendering was a moment ago.

        :meth:`note` calls this before the clients of a step start, so that rendering does not
        disturb measuring.  But if results change less than :data:`PAUSE` seconds after a rendering,
        only a later refresh of the screen renders them.
        """
        with self._lock:
            if self._is_current or self._clock() < self._next:
                return
            self._is_current = True  # first, so that no change meanwhile is lost
            self._table = self._made()
            self._next = self._clock() + PAUSE

    def _made(self) -> Segments:
        """Render the rows that fit on the screen, and sentences that compare their results."""
        height = self._console.height - 3
        results = in_first_rows(self._results, height)
        report = make_report([ResultSet(results)], baseline=self._baseline, pending=PENDING)
        lines = self._console.render_lines(
            Group(*text.tables(report, self._console)), pad=False, new_lines=True
        )
        if len(lines) > height:
            lines = [*lines[: height - 1], [Segment("...\n")]]
        return Segments([segment for line in lines for segment in line])

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.live.stop()
        try:
            yield
        finally:
            self.live.start()

    def _render(self) -> RenderableType:
        self._update()
        return Group(self._table, self._progress.get_renderable())
