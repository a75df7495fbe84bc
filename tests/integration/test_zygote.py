"""Commands that are forked instead of started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.command import SOURCES, TESTS, environment, run, start
from tests.integration.zygote import zygote

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere commands are started")


def test_a_forked_command_prints_and_returns_what_a_started_one_does(tmp_path: Path) -> None:
    for words in (("--version",), ("no.conf",), ("show", "no.json")):
        with start(tmp_path, *words) as process:
            out, err = process.communicate()
        done = run(tmp_path, *words)
        assert (done.status, done.out, done.err) == (process.returncode, out, err)


def test_a_command_that_takes_too_long_is_killed_and_answers_no_later_order(
    tmp_path: Path,
) -> None:
    path = f"{TESTS}{os.pathsep}{SOURCES}"
    with Path(os.devnull).open() as nothing, pytest.raises(subprocess.TimeoutExpired):
        zygote(path).run(["--list"], tmp_path, environment(tmp_path), nothing.fileno(), 0.0)
    assert run(tmp_path, "no.conf").status == 2
