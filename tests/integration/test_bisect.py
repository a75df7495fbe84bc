"""Find a planted commit of RelStorage by the round trips to a PostgreSQL server."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.integration.command import left_behind, run, start
from tests.integration.planted import ONE_MORE_QUERY, relstorage
from tests.integration.sections import POSTGRESQL, POSTGRESQL_SERVER, RELSTORAGE, contender
from tests.repositories import git

pytestmark = pytest.mark.servers("PostgreSQL")

OFFLINE = {"UV_OFFLINE": "1", "UV_NO_INDEX": "1"}
BISECT = (
    "bisect", "x.conf", "update", "--good", "v1", "--checkout", "./RelStorage",
    "--metric", "trips", "-c", "1", "--object-counts", "5", "-n", "2", "--min-time", "0.001",
)  # fmt: skip


@pytest.mark.timeout(600)
def test_a_commit_that_makes_one_more_query_is_found(place: Path) -> None:
    """The search is ended in its second step, and repeated."""
    section = contender("postgres", POSTGRESQL)
    (place / "x.conf").write_text(f"{RELSTORAGE}{POSTGRESQL_SERVER}{section}")
    checkout = place / "RelStorage"
    planted = relstorage(checkout, 5, 4, ONE_MORE_QUERY, broken=[2])
    before = git(checkout, "status", "--porcelain=2", "--branch"), git(checkout, "for-each-ref")
    with start(place, *BISECT, **OFFLINE) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert first.startswith("[1] bad: ")
    assert "zodbshootout: interrupted; repeat the command to continue: its steps are in" in err
    assert left_behind(place) == []

    done = run(place, *BISECT, **OFFLINE)
    assert done.status == 0, done.err
    assert "continuing after 1 step: " in done.err
    assert "skip: " in done.out
    assert f"first bad commit: {planted[:7]} Change 4\n" in done.out
    assert "update, round trips: 13, 12 before" in done.out
    assert before == (
        git(checkout, "status", "--porcelain=2", "--branch"), git(checkout, "for-each-ref")
    )  # fmt: skip
    assert left_behind(place) == []
