"""The history of the package itself, with made-up times of its commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks import __main__, history
from benchmarks.command import ROOT

from zodbshootout.results.anchor import read_anchor
from zodbshootout.results.history import ANCHOR, CANARY, CANDIDATE, POSITION, STEP, read_points
from zodbshootout.versions import git

pytestmark = pytest.mark.skipif(
    git(ROOT, "rev-parse", "HEAD~1") is None, reason="not a checkout with two commits"
)


@pytest.fixture
def slower(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Make commands of the present source take as many times as long as the number in the list."""
    times = [1.0]
    taken = iter(range(10**6))

    def seconds(source: Path, words: Sequence[str], place: Path) -> float:
        assert (source / "zodbshootout" / "__init__.py").exists()
        noise = 1 + 0.001 * (next(taken) * 7 % 11)
        return noise * (times[0] if source == ROOT / "src" else 1.0)

    monkeypatch.setattr(history, "_processor_seconds", seconds)
    dates = (f"2026-01-01T00:00:{second:02}+00:00" for second in range(60))
    monkeypatch.setattr(history, "named_now", lambda _: ((date := next(dates))[:19], date))
    monkeypatch.setattr(history, "COMMANDS", {"help": ["--help"], "show": ["show", "x.json"]})
    return times


def test_points_follow_each_other_and_the_anchor_stays(
    tmp_path: Path, slower: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["history", str(tmp_path), "--anchor", "HEAD~1", "--rounds", "6"]) == 0
    assert "no change was found" in capsys.readouterr().out
    slower[0] = 1.1
    assert __main__.main(["history", str(tmp_path), "--rounds", "6"]) == 0
    assert "zodbshootout: help processes-1 takes 1.1" in capsys.readouterr().out
    first, second = read_points(tmp_path)
    assert [cell.benchmark for cell in first.cells] == ["help", "show"]
    assert {POSITION, CANARY} <= first.cells[0].ratios.keys()
    assert second.cells[0].ratios[POSITION].value == pytest.approx(1 / 1.1, rel=0.01)
    commits = [point.packages[ANCHOR]["zodbshootout"].commit for point in (first, second)]
    assert commits == [git(ROOT, "rev-parse", "HEAD~1")] * 2
    anchor = read_anchor(tmp_path)
    assert anchor is not None
    assert anchor.requirements == commits[:1]
    candidate = second.packages[CANDIDATE]["zodbshootout"]
    assert candidate.commit == git(ROOT, "rev-parse", "HEAD")
    assert STEP not in second.cells[0].ratios or not candidate.modified


def test_a_commit_that_is_not_there_is_an_error(
    tmp_path: Path, slower: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["history", str(tmp_path), "--anchor", "0000"]) == 2
    assert "there is no commit 0000" in capsys.readouterr().err
