"""The progress of a run: a live table on a terminal, and lines in a pipe."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

import pyte
import pytest
from rich.console import Console

from tests.reports.at_a_rate import result as at_rate
from tests.reports.results import FOUR, noisy_run
from tests.runs import cell, failed, measured, unpaired, unsupported
from zodbshootout.cli.output import Streams
from zodbshootout.cli.progress import Lines, LiveTable, describe
from zodbshootout.reports.elements import Report
from zodbshootout.reports.tables import make_report
from zodbshootout.results.figures import Figure
from zodbshootout.results.result import CellResult

GOLDEN = Path(__file__).parent / "golden"
WIDTH, HEIGHT = 80, 24


class Screen:
    """A terminal that shows a live table, with a clock that the test moves."""

    def __init__(self, height: int = HEIGHT) -> None:
        self.now = 0.0
        self._written = io.StringIO()
        console = Console(
            file=self._written, width=WIDTH, height=height, force_terminal=True,
            legacy_windows=False, get_time=lambda: self.now,
        )  # fmt: skip
        self.streams = Streams(console, console, None)
        self.table = LiveTable(self.streams, None, lambda: self.now)
        self.table.live.auto_refresh = False
        self._screen = pyte.Screen(WIDTH, height)
        self._terminal = pyte.Stream(self._screen)

    def lines(self) -> list[str]:
        """Draw everything, and return the lines of the screen, without blank ones at the end."""
        self.table.live.refresh()
        return self.shown()

    def shown(self) -> list[str]:
        self._terminal.feed(self._written.getvalue().replace("\n", "\r\n"))
        self._written.seek(0)
        self._written.truncate()
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip().splitlines()


@pytest.fixture
def screen() -> Iterator[Screen]:
    screen = Screen()
    with screen.table.live:
        yield screen


def runs_so_far(runs: int) -> list[CellResult]:
    """Return results of four contenders and the default benchmarks; *add* has one more run."""
    results = []
    for result in noisy_run(FOUR, 0.01):
        number = runs + (result.cell.benchmark == "add")
        results.append(
            CellResult(result.cell)
            if not number
            else unpaired(
                result.cell,
                *(run.values for run in result.runs[:number]),
                precision=0.05,
            )
        )
    return results


@pytest.mark.parametrize("runs", [0, 1, 3])
def test_the_table_fills_during_the_run(screen: Screen, runs: int) -> None:
    screen.now = 14.0 + 60 * runs
    screen.table.results_changed(runs_so_far(runs))
    screen.table.working_on([cell("cold", name) for name in FOUR], f"run {runs + 1} of 4")
    screen.table.left(200.0 - 60 * runs)
    expected = (GOLDEN / f"live-{runs}.txt").read_text(encoding="utf-8").splitlines()
    assert screen.lines() == expected


def test_the_spinner_turns_and_the_clock_runs_if_the_time_left_is_unknown(screen: Screen) -> None:
    screen.table.note("starting servers")
    screen.table.left(0.0)
    shown = []
    for _ in range(5):
        screen.now += 0.1
        shown.append(screen.lines()[-1].split()[0])
    assert len(set(shown)) == len(shown)
    screen.now = 65.0
    assert "0:01:05" in screen.lines()[-1]


def test_the_spinner_turns_even_if_no_time_is_left(screen: Screen) -> None:
    screen.now = 4.0
    screen.table.left(0.4)
    first = screen.lines()[-1]
    screen.now = 9.0
    second = screen.lines()[-1]
    assert first.split()[0] != second.split()[0]
    assert "0:00:09" in second


def test_a_question_has_the_screen_to_itself(screen: Screen) -> None:
    screen.table.note("opening zeo")
    assert "opening zeo" in screen.lines()[-1]
    with screen.table.paused():
        assert screen.shown() == []
    assert "opening zeo" in screen.lines()[-1]


def test_the_bar_and_the_time_left_stay_visible_with_many_contenders(screen: Screen) -> None:
    screen.table.working_on([cell("add", f"contender_{n}") for n in range(8)], "run 2 of 4")
    screen.table.left(200.0)
    (line,) = screen.lines()
    assert "0:00:00" in line
    assert "3:20 left" in line
    assert "add: run 2 of 4: contender_0," in line
    assert line.endswith("…")


def test_a_table_that_is_taller_than_the_terminal_leaves_room_for_the_bar() -> None:
    screen = Screen(height=9)
    with screen.table.live:
        screen.table.results_changed(runs_so_far(1))
        screen.table.note("opening zeo")
        lines = screen.lines()
    assert "opening zeo" in lines[-1]
    assert "..." in lines[-2]
    assert "filestorage" in lines[2]


@pytest.mark.slow
def test_the_table_is_made_once_a_second_at_most_and_shows_the_last_state(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[float] = []

    def make(*arguments: Any, **options: Any) -> Report:
        made.append(screen.now)
        return make_report(*arguments, **options)

    monkeypatch.setattr("zodbshootout.cli.progress.make_report", make)
    for number in range(100):  # a change each 20 ms, and a refresh each 100 ms
        screen.now = number / 50
        screen.table.results_changed(runs_so_far(number // 50))
        screen.table.note(f"run {number}")
        if number % 5 == 0:
            screen.lines()
    assert made == [0.0, 1.0]
    screen.table.results_changed(runs_so_far(3))
    assert "±" not in "".join(screen.lines())
    for screen.now in (2.0, 2.1, 9.0):
        lines = screen.lines()
    assert made == [0.0, 1.0, 2.0]
    expected = (GOLDEN / "live-3.txt").read_text(encoding="utf-8").splitlines()
    assert lines[:-1] == expected[:-1]


def test_the_table_is_made_before_the_next_step_and_not_while_that_is_measured(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0

    def make(*arguments: Any, **options: Any) -> Report:
        nonlocal made
        made += 1
        return make_report(*arguments, **options)

    monkeypatch.setattr("zodbshootout.cli.progress.make_report", make)
    for _ in FOUR:
        screen.table.results_changed(runs_so_far(1))
    assert made == 0
    screen.table.left(9.0)
    screen.table.working_on([cell("cold", name) for name in FOUR], "run 2 of 4")
    assert made == 1
    screen.lines()
    assert made == 1


@pytest.mark.slow
@pytest.mark.parametrize("rated", [False, True])
def test_no_figure_is_computed_that_does_not_fit_on_the_screen(
    monkeypatch: pytest.MonkeyPatch, rated: bool
) -> None:
    computed = set()

    def noted(name: str) -> cached_property[Any]:
        function = vars(Figure)[name].func

        def compute(figure: Figure) -> Any:
            computed.add(figure.cell)
            return function(figure)

        noting = cached_property(compute)
        noting.__set_name__(Figure, name)
        return noting

    monkeypatch.setattr(Figure, "value", noted("value"))
    monkeypatch.setattr(Figure, "estimate", noted("estimate"))
    results = (
        [at_rate("fs", float(rate)) for rate in range(1, 100)]
        if rated
        else [
            measured(cell("add", name, objects=objects), [1.0], [1.1], [1.2])
            for objects in range(1, 100)
            for name in FOUR
        ]
    )
    screen = Screen()
    with screen.table.live:
        screen.table.results_changed(results)
        lines = screen.lines()
        made = len(computed)
        assert made <= HEIGHT * len(FOUR)
    whole = Screen(height=999)
    with whole.table.live:
        whole.table.results_changed(results)
        everything = whole.lines()
    # The columns are as wide as the rows in them.
    assert [line.replace("─", "").split() for line in lines[:-2]] == [
        line.replace("─", "").split() for line in everything[: len(lines) - 2]
    ]
    assert len(computed) == len(results)


def test_the_live_table_leaves_only_failures_on_the_screen() -> None:
    screen = Screen()
    with screen.table.live:
        screen.table.results_changed(runs_so_far(1))
        screen.table.cell_failed(failed(cell("hot", "fs"), "broken"))
        screen.lines()
    assert screen.shown() == ["fs: hot 1000x300B threads-shared-2: failed: broken"]


def test_a_step_is_shown_without_secrets() -> None:
    screen = Screen()
    screen.streams.mask.hide(["geheim"])
    with screen.table.live:
        screen.table.note("opening geheim")
        assert "opening ***" in screen.lines()[-1]


def test_a_result_is_described_in_the_unit_of_the_table() -> None:
    assert describe(measured(cell("add", "fs"), [0.02], [0.02], [0.0201])) == "99,834 ±1%"
    assert describe(measured(cell("add", "fs"), [0.02])) == "100,000"
    assert describe(measured(cell("add", "fs"), [2048], unit="byte")) == "2.05 kB"
    assert describe(failed(cell("add", "fs"), "broken")) == "failed: broken"


def streams_on(stream: TextIO) -> Streams:
    console = Console(file=stream, width=200)
    return Streams(console, console, None)


def test_a_pipe_gets_a_line_for_each_row_and_each_halving_of_the_time_left() -> None:
    stream = io.StringIO()
    lines = Lines(streams_on(stream), 2)
    for seconds in (0.0, 620.0, 560.0, 340.0, 300.0, 240.0, 180.0, 700.0, 330.0, 50.0, 40.0, 10.0):
        lines.left(seconds)
    broken = failed(cell("add", "zeo"), "broken")
    lines.cell_failed(broken)
    never = unsupported(cell("add", "pg"), "never")
    lines.row_done([measured(cell("add", "fs"), [0.02]), broken, never])
    lines.row_done([never])
    lines.row_done([never])  # to confirm what a gate has found
    assert stream.getvalue().splitlines() == [
        "about 11 minutes left",
        "about 5 minutes left",
        "about 12 minutes left",
        "about 6 minutes left",
        "about 1 minute left",
        "zeo: add 1000x300B threads-shared-2: failed: broken",
        "[1/2] add 1000x300B threads-shared-2: fs 100,000",
        "[2/2] add 1000x300B threads-shared-2: no figures",
        "[again] add 1000x300B threads-shared-2: no figures",
    ]


def test_a_pipe_gets_each_step_if_verbose() -> None:
    stream = io.StringIO()
    for verbose in (False, True):
        lines = Lines(streams_on(stream), 2, verbose=verbose)
        lines.note("opening fs")
        lines.working_on([cell("add", "fs"), cell("add", "zeo")], "run 2 of 4")
    assert stream.getvalue() == "opening fs\nadd: run 2 of 4: fs, zeo\n"
