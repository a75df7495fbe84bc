"""The history of the package itself, with made-up times of its commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks import __main__, history

from zodbshootout.results.anchor import read_anchor
from zodbshootout.results.history import (
    ANCHOR,
    CANARY,
    CANDIDATE,
    POSITION,
    PREVIOUS,
    STEP,
    read_points,
)
from zodbshootout.versions import git


class Checkout:
    """A checkout of the package with two commits."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._module = place / "src" / "zodbshootout" / "__init__.py"
        self._module.parent.mkdir(parents=True)
        self._git("init", "-q")
        self.write("first", version="1.0")
        self.commit()
        self.write("second")
        self.commit()

    def write(self, text: str, version: str = "") -> None:
        """Change the source, and the version if one is given."""
        self._module.write_text(f"# {text}\n")
        if version:
            (self.place / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')

    def commit(self) -> None:
        self._git("add", ".")
        author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        self._git(*author, "commit", "-q", "-m", "x")

    def hash_of(self, name: str) -> str:
        return git(self.place, "rev-parse", name) or ""

    def _git(self, *words: str) -> None:
        assert git(self.place, *words) is not None


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    made = Checkout(tmp_path / "checkout")
    monkeypatch.setattr(history, "ROOT", made.place)
    return made


@pytest.fixture
def points(tmp_path: Path) -> Path:
    return tmp_path / "points"


@pytest.fixture
def slower(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Make commands of the present source take as many times as long as the number in the list."""
    times = [1.0]
    taken = iter(range(10**6))

    def seconds(source: Path, words: Sequence[str], place: Path) -> float:
        assert (source / "zodbshootout" / "__init__.py").exists()
        noise = 1 + 0.001 * (next(taken) * 7 % 11)
        return noise * (times[0] if source == checkout.place / "src" else 1.0)

    monkeypatch.setattr(history, "_processor_seconds", seconds)
    dates = (f"2026-01-01T00:00:{second:02}+00:00" for second in range(60))
    monkeypatch.setattr(history, "named_now", lambda _: ((date := next(dates))[:19], date))
    monkeypatch.setattr(history, "COMMANDS", {"help": ["--help"], "show": ["show", "x.json"]})
    return times


def add_point(points: Path, *words: str) -> int:
    return __main__.main(["history", str(points), "--rounds", "6", *words])


@pytest.mark.slow
def test_points_follow_each_other_and_the_anchor_stays(
    points: Path, checkout: Checkout, slower: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    assert add_point(points, "--anchor", "HEAD~1") == 0
    assert "no change was found" in capsys.readouterr().out
    slower[0] = 1.1
    assert add_point(points) == 0
    assert "zodbshootout: help processes-1 takes 1.1" in capsys.readouterr().out
    first, second = read_points(points)
    assert [cell.benchmark for cell in first.cells] == ["help", "show"]
    assert {POSITION, CANARY} <= first.cells[0].ratios.keys()
    assert second.cells[0].ratios[POSITION].value == pytest.approx(1 / 1.1, rel=0.01)
    commits = [point.packages[ANCHOR]["zodbshootout"].commit for point in (first, second)]
    assert commits == [checkout.hash_of("HEAD~1")] * 2
    anchor = read_anchor(points)
    assert anchor is not None
    assert anchor.requirements == commits[:1]
    assert second.packages[CANDIDATE]["zodbshootout"].commit == checkout.hash_of("HEAD")


@pytest.mark.slow
def test_the_commit_of_the_point_before_is_measured(
    points: Path, checkout: Checkout, slower: list[float]
) -> None:
    add_point(points)
    checkout.write("third", version="2.0")
    checkout.commit()
    slower[0] = 1.1
    add_point(points)
    _, second = read_points(points)
    assert second.absent == {}
    assert second.cells[0].ratios[STEP].value == pytest.approx(1 / 1.1, rel=0.01)


@pytest.mark.slow
def test_a_source_with_changes_in_no_commit_is_not_measured_again(
    points: Path, checkout: Checkout, slower: list[float]
) -> None:
    checkout.write("not committed")
    add_point(points)
    checkout.commit()
    add_point(points)
    _, second = read_points(points)
    assert second.absent == {PREVIOUS: "its source had uncommitted changes"}
    assert STEP not in second.cells[0].ratios


@pytest.mark.slow
def test_a_commit_is_the_same_package_after_the_version_has_changed(
    points: Path, checkout: Checkout, slower: list[float]
) -> None:
    add_point(points)
    checkout.write("third", version="2.0")
    checkout.commit()
    add_point(points)
    first, second = read_points(points)
    assert second.packages[ANCHOR] == second.packages[PREVIOUS] == first.packages[CANDIDATE]
    versions = [point.packages[CANDIDATE]["zodbshootout"].version for point in (first, second)]
    assert versions == ["1.0", "2.0"]


def test_a_commit_that_is_not_there_is_an_error(
    points: Path, slower: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["history", str(points), "--anchor", "0000"]) == 2
    assert "there is no commit 0000" in capsys.readouterr().err
