"""What the user sees while a run goes on."""

from __future__ import annotations

import io

from rich.console import Console

from tests.runs import cell, failed, measured, unsupported
from zodbshootout.cli.progress import Bar, Lines, describe


def test_a_result_is_told_in_the_unit_of_the_table() -> None:
    known = measured(cell("add", "fs"), [0.02], [0.02], [0.0201])
    assert describe(known) == "fs: add 1000x300B threads-shared-2: 99,834 a second ± 1%"
    once = measured(cell("add", "fs"), [0.02])
    assert describe(once) == "fs: add 1000x300B threads-shared-2: 100,000 a second"
    memory = measured(cell("add", "fs"), [2048], unit="byte")
    assert describe(memory).endswith(": 2048 bytes")
    assert describe(failed(cell("add", "fs"), "broken")).endswith(": failed: broken")


def test_lines_say_once_a_minute_how_long_it_takes() -> None:
    stream = io.StringIO()
    lines = Lines(Console(file=stream, width=200), 2)
    for seconds in (0.0, 170.0, 150.0, 119.0, 61.0, 60.0, 10.0, 0.0):
        lines.left(seconds)
    lines.cell_done(measured(cell("add", "fs"), [0.02]))
    assert stream.getvalue().splitlines() == [
        "about 3 minutes left",
        "about 2 minutes left",
        "about 1 minute left",
        "[1/2] fs: add 1000x300B threads-shared-2: 100,000 a second",
    ]


def test_a_bar_shows_what_is_settled_and_how_long_the_others_take() -> None:
    stream = io.StringIO()
    bar = Bar(Console(file=stream, width=200, force_terminal=True, color_system=None))
    with bar:
        bar.working_on([cell("add", "fs"), cell("add", "zeo")], "run 2 of 4")
        bar.left(200.0)
        bar.cell_done(measured(cell("add", "fs"), [0.02]))
        bar.cell_done(failed(cell("hot", "fs"), "broken"))
        bar.cell_done(unsupported(cell("cold", "fs"), "never"))
    shown = stream.getvalue()
    assert "add: fs, zeo (run 2 of 4)" in shown
    assert "left: 0:03:20" in shown
    assert "fs: add 1000x300B threads-shared-2: 100,000 a second" in shown
    assert "fs: hot 1000x300B threads-shared-2: failed: broken" in shown
    assert "never" not in shown


def test_every_step_is_told_where_that_is_wanted() -> None:
    stream = io.StringIO()
    for verbose in (False, True):
        lines = Lines(Console(file=stream, width=200), 2, verbose=verbose)
        lines.note("opening fs")
        lines.working_on([cell("add", "fs"), cell("add", "zeo")], "run 2 of 4")
    assert stream.getvalue() == "opening fs\nadd: fs, zeo (run 2 of 4)\n"
