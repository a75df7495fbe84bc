"""Let git find planted commits of RelStorage with the documented script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documented import DOCS
from tests.integration.command import environment, left_behind
from tests.integration.planted import ONE_MORE_QUERY, SLEEP, relstorage
from tests.integration.sections import POSTGRESQL, POSTGRESQL_SERVER, RELSTORAGE, SQLITE, contender
from tests.repositories import git

SCRIPT = DOCS / "examples" / "bisect.sh"
OFFLINE = {"UV_OFFLINE": "1", "UV_NO_INDEX": "1"}
RUN = ("../x.conf", "update", "-c", "1", "-n", "1", "--object-counts", "5", "--min-time", "0.001")
PLANTED = {5: ONE_MORE_QUERY, 12: SLEEP}


def program(place: Path, text: str) -> dict[str, str]:
    """Make a program zodbshootout of a shell's *text*; return variables with which it is found."""
    path = place / "bin" / "zodbshootout"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return {"PATH": f"{path.parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("planted", "configuration", "runs", "variables"),
    [
        pytest.param(
            5, POSTGRESQL_SERVER + contender("postgres", POSTGRESQL), "1",
            {"METRIC": "trips", "LIMIT": "0"}, marks=pytest.mark.servers("PostgreSQL"), id="query",
        ),
        pytest.param(12, contender("sqlite", SQLITE), "4", {"LIMIT": "50%"}, id="sleep"),
    ],
)  # fmt: skip
def test_git_finds_the_commit(
    planted: int, configuration: str, runs: str, variables: dict[str, str], place: Path
) -> None:
    (place / "x.conf").write_text(RELSTORAGE + configuration)
    checkout = place / "RelStorage"
    commits = relstorage(checkout, 16, PLANTED, broken=[8])
    ours = program(place, f'exec {sys.executable} -m zodbshootout "$@"')
    git(checkout, "bisect", "start", "HEAD", "v1")
    done = subprocess.run(
        ["git", "bisect", "run", "sh", SCRIPT, *RUN, "-p", runs],
        cwd=checkout, env=environment(place, **OFFLINE, **ours, **variables),
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{commits[planted]} is the first bad commit" in done.stdout
    assert git(checkout, "bisect", "log").count("git bisect skip") == 1
    assert left_behind(place) == []


@pytest.mark.parametrize(
    ("of_run", "of_compare", "status"),
    [
        (0, 0, 0), (0, 1, 1), (2, 0, 125), (3, 0, 125), (0, 2, 125),
        (70, 0, 255), (130, 0, 255), (0, 70, 255), (127, 0, 255),
    ],
)  # fmt: skip
def test_git_gets_a_status_that_it_understands(
    of_run: int, of_compare: int, status: int, tmp_path: Path
) -> None:
    ours = program(tmp_path, f'[ "$1" = compare ] && exit {of_compare}; exit {of_run}')
    done = subprocess.run(["sh", SCRIPT, "x.conf"], check=False, env={**os.environ, **ours})
    assert done.returncode == status
