"""Commands that are forked instead of started."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.runs import BUSY, faulty
from tests.integration.command import (
    QUICK,
    TESTS,
    Done,
    cells,
    environment,
    left_behind,
    run,
    start,
    wait_until,
)
from tests.integration.sections import ZEO_SERVER, contender, filestorage, zeo
from tests.integration.zygote import Zygote

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere commands are started")


def started(place: Path, *words: str) -> Done:
    with start(place, *words) as process:
        out, err = process.communicate()
    return Done(process.returncode, out, err)


def test_a_forked_run_measures_and_leaves_as_much_as_a_started_one(tmp_path: Path) -> None:
    outcomes = []
    for name, measure in (("forked", run), ("started", started)):
        (place := tmp_path / name).mkdir()
        (place / "x.conf").write_text(
            f"{ZEO_SERVER}{contender('zeo', zeo())}{contender('fs', filestorage('$scratch/x.fs'))}"
        )
        done = measure(place, "x.conf", "add", "-c", "1", *QUICK, "-o", "a.json")
        reported = measure(place, "report", "a.json", "-o", "a.md")
        measured = cells(place / "a.cells.jsonl")
        progress = re.sub(r"(zeo|fs) [\d,]*\d", r"\1 FIGURE", done.err)
        outcomes.append((done.status, progress, measured, left_behind(place), reported))
    forked, by_interpreter = outcomes
    assert forked == by_interpreter
    assert forked[2] == {(name, "add"): ("measured", "") for name in ("zeo", "fs")}


ENDINGS = (
    "",
    "sys.exit()",
    "sys.exit(3)",
    "sys.exit('a reason')",
    "atexit.register(print, 'the end')",
    "threading._register_atexit(print, 'the end of threads')",
    "print('\\udc80', file=sys.stderr)",
    "print('first', file=sys.stderr); os.write(2, b'second')",
)
PROGRAM = "import atexit, os, sys, threading\n"
FORKED = f"""{PROGRAM}
from tests.integration.zygote import become
from zodbshootout import __main__ as program
program.run = lambda: exec(sys.argv[1])
become(sys.argv[1:], ".", os.environ, [os.dup(number) for number in range(3)])
"""


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_forked_command_ends_as_an_interpreter_does(ending: str, tmp_path: Path) -> None:
    expected, outcome = (
        subprocess.run(
            [sys.executable, "-c", *words], cwd=TESTS.parent, env=environment(tmp_path),
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )
        for words in ([f"{PROGRAM}{ending}"], [FORKED, ending])
    )  # fmt: skip
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (
        expected.returncode, expected.stdout, expected.stderr,
    )  # fmt: skip


class PatienceError(Exception):
    """The end of a test's patience with a command."""


def run_until(hangs: Callable[[], bool], place: Path, *words: str) -> None:
    def lose_patience(*_: object) -> int:
        wait_until(hangs)
        raise PatienceError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Zygote, "_status", lose_patience)
        run(place, *words)


def start_until(hangs: Callable[[], bool], place: Path, *words: str) -> None:
    with start(place, *words):
        wait_until(hangs)
        raise PatienceError


@pytest.mark.parametrize("until", [run_until, start_until])
def test_a_command_that_takes_too_long_shows_where_its_processes_are_and_leaves_nothing(
    until: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hung = tmp_path / "hung"
    bad = faulty("bad", "hang", during="run", when=tmp_path / "a.json", once=hung)
    (tmp_path / "x.conf").write_text(f"%import faulty\n{bad}")
    with pytest.raises(PatienceError):
        until(hung.exists, tmp_path, "x.conf", "add", "cold", "-c", "1", *BUSY, "-o", "a.json")
    shown = capsys.readouterr().err
    assert "[1/2] add" in shown  # the progress
    command, fork_server, worker, client = "_measure_round", "serve", "measure", "_hang"
    for function in (command, fork_server, worker, client):
        assert f" in {function}\n" in shown
    assert left_behind(tmp_path) == []
