"""``zodbshootout bisect``: its steps, its answers, its file and its errors; runs are made up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyperf
import pytest

from tests.commands import outcome
from tests.repositories import git
from tests.runs import cell, failed
from zodbshootout.cli.options import Options
from zodbshootout.cli.output import Streams
from zodbshootout.errors import ALL_MEASURED, INTERRUPTED, SOME_FAILED
from zodbshootout.results.cell import Cell
from zodbshootout.results.files import ResultFiles
from zodbshootout.results.result import CellResult

PLANTED = 6
FILE = "<zodb fs>\n<filestorage>\npath $scratch/x.fs\n</filestorage>\n</zodb>\n"


class Runs:
    """Made-up runs of ``add`` in the commits of a checkout."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        self.options: list[Options] = []
        self.slower = 1.2
        self.broken: Sequence[int | None] = ()
        self.interrupted_at = 99

    def run(self, options: Options, streams: Streams) -> int:
        """Take the place of :func:`zodbshootout.cli.run.run`."""
        self.options.append(options)
        if len(self.options) == self.interrupted_at:
            return INTERRUPTED
        (environment,) = options.variants.against
        names = ("fs", f"fs@{environment.name}")
        cells = [cell("add", name) for name in names]
        number = self.number(environment.name)
        if number in self.broken:
            good, candidate = self.result(cells[0], 1.0, 1), failed(cells[1], "it is broken")
            status = SOME_FAILED
        elif 0 in self.broken:
            good, candidate = failed(cells[0], "it is broken"), self.result(cells[1], 1.0, 1)
            status = SOME_FAILED
        else:
            good, candidate = self.both(cells, self.slower if number >= PLANTED else 1.0, options)
            status = ALL_MEASURED
        assert options.output is not None
        ResultFiles(options.output).write([good, candidate])
        streams.say("the table of the run")
        return status

    def both(
        self, cells: Sequence[Cell], slower: float, options: Options
    ) -> tuple[CellResult, CellResult]:
        """Measure two cells as often as the options ask for."""
        made = 0
        while True:
            good, candidate = self.result(cells[0], 1.0, made), self.result(cells[1], slower, made)
            assert options.run.rounds is not None
            if options.run.rounds([good, candidate], 1) <= made:
                return good, candidate
            made += 1

    @staticmethod
    def result(target: Cell, seconds: float, runs: int) -> CellResult:
        is_good = "@" not in target.contender
        result = CellResult(target)
        for number in range(runs):
            value = seconds * (1.01 if number % 2 and is_good else 1.0)
            trips = "11" if seconds == 1 else "12"
            facts = {"round": f"r-{number}", "slices": "0", "trips": trips, **target.metadata()}
            run = pyperf.Run([value], metadata={"name": "cell", **facts}, collect_metadata=False)
            result = result.with_run(pyperf.Benchmark([run]))
        return result

    def number(self, environment: str) -> int:
        return int(git(self.checkout, "log", "-1", "--format=%s", environment.partition("@")[2]))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with the subjects 0 to 9, the first of which is ``v1``."""
    directory = tmp_path_factory.mktemp("checkout") / "Shot"
    directory.mkdir()
    git(directory, "init", "-q", "-b", "main")
    for number in range(10):
        git(directory, "commit", "-q", "--allow-empty", "-m", str(number))
    git(directory, "tag", "v1", "HEAD~9")
    return directory


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkout: Path) -> Runs:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Path("x.conf").write_text(FILE)
    Path("Shot").symlink_to(checkout)
    made = Runs(checkout)
    monkeypatch.setattr("zodbshootout.cli.run.run", made.run)
    return made


BISECT = ("bisect", "x.conf", "add", "--good", "v1", "--checkout", "./Shot")


def lines(*words: str) -> list[str]:
    """Return what the command prints, after the check that it found a single commit."""
    status, out, err = outcome(*BISECT, *words)
    assert (status, err) == (0, "")
    return out.splitlines()


@pytest.mark.slow
def test_it_names_the_commit_with_its_change(runs: Runs) -> None:
    printed = lines("-o", "s.json")
    commit = git(runs.checkout, "rev-parse", "--short", "HEAD~3")
    sentence = "add: takes 1.194 times as long (1.189 to 1.199)"
    assert f"bad: {commit} 6: {sentence}" in {line.partition("] ")[2] for line in printed}
    assert printed[-4:] == [
        f"first bad commit: {commit} 6",
        f"  {sentence}",
        "the probability that this is wrong is at most 3.8%",
        "Steps: s.json",
    ]


@pytest.mark.slow
def test_each_step_is_a_run_of_the_good_commit_and_another_one(runs: Runs) -> None:
    lines("cold", "-c", "3", "--threads", "-o", "s.json")
    first, *later = runs.options
    assert list(first.benchmarks) == ["add", "cold"]
    assert [list(one.benchmarks) for one in later] == [["add"]] * len(later)
    assert {tuple(one.only) for one in later} == {("fs",)}
    for one in runs.options:
        assert one.variants.base.name == "shot@v1"
        assert len(one.variants.against) == 1
        assert one.variants.base.requirements[0].startswith("git+file://")
        assert one.effort.processes == 8
        assert one.default_concurrency is False


@pytest.mark.slow
def test_one_run_a_step_decides_about_trips(runs: Runs) -> None:
    printed = lines("--metric", "trips", "-o", "s.json")
    assert printed[-3:-1] == [
        f"first bad commit: {git(runs.checkout, 'rev-parse', '--short', 'HEAD~3')} 6",
        "  add, round trips: 12, 11 before",
    ]
    assert {one.effort.processes for one in runs.options} == {1}


@pytest.mark.slow
def test_a_commit_that_cannot_be_measured_is_skipped_with_its_reason(runs: Runs) -> None:
    runs.broken = (5,)
    status, out, err = outcome(*BISECT, "-o", "s.json")
    assert (status, err) == (3, "")
    five, six = git(runs.checkout, "log", "--format=%h %s", "HEAD~5..HEAD~3").splitlines()[::-1]
    assert f"skip: {five}: it is broken" in out
    assert "first bad commit: one of 2 that cannot be told apart" in out
    assert f"  {six}: add: takes 1.194 times" in out
    assert f"  {five}: it is broken" in out


def test_a_commit_that_is_undecided_after_the_most_runs_is_skipped(runs: Runs) -> None:
    runs.slower = 1.012
    status, out, _ = outcome(*BISECT, "-p", "9", "-o", "s.json")
    assert status == 3
    assert out.startswith("[1] skip: ")
    assert "undecided after 9 runs" in out
    assert "good and bad do not differ significantly: add: takes" in out


@pytest.mark.parametrize(
    ("broken", "words", "message"),
    [
        (9, (), "--bad cannot be measured: it is broken"),
        (0, (), "--good cannot be measured: it is broken"),
        (None, ("--metric", "written"), "--bad cannot be measured: it has no written"),
    ],
)
def test_it_ends_if_good_or_bad_cannot_be_measured(
    broken: int | None, words: Sequence[str], message: str, runs: Runs
) -> None:
    runs.broken = (broken,)
    assert outcome(*BISECT, *words)[::2] == (3, f"zodbshootout: {message}\n")
    assert len(runs.options) == 1


@pytest.mark.slow
def test_the_same_command_goes_on_after_an_interrupt(runs: Runs, tmp_path: Path) -> None:
    runs.interrupted_at = 3
    status, out, err = outcome(*BISECT)
    assert (status, out.count("\n")) == (130, 2)
    (file,) = tmp_path.glob("data/**/bisect-*.json")
    assert err == (
        f"zodbshootout: interrupted; repeat the command to continue: its steps are in {file}\n"
    )
    status, out, err = outcome(*BISECT)
    assert (status, err) == (0, f"zodbshootout: continuing after 2 steps: {file}\n")
    assert out.startswith("[3] ")
    made = len(runs.options)
    assert outcome(*BISECT)[0] == 0
    assert len(runs.options) == made
    assert not list(tmp_path.glob("zodbshootout-*"))


@pytest.mark.slow
def test_another_search_has_another_file(runs: Runs, tmp_path: Path) -> None:
    lines("-o", "s.json")
    status, _, err = outcome(*BISECT, "--bad", "HEAD~1", "-o", "s.json")
    assert (status, err) == (
        2, "zodbshootout: s.json belongs to another search; name another file with -o\n"
    )  # fmt: skip
    Path("x.conf").write_text(FILE.replace("x.fs", "y.fs"))
    assert outcome(*BISECT, "-o", "s.json")[0] == 2
    assert outcome(*BISECT)[0] == 0
    question = json.loads(Path("s.json").read_text())["question"]
    assert question["arguments"] == {"checkout": "Shot", "words": ["x.conf", "add"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--good", "2"), "--good: Shot has no commit '2'"),
        (("--bad", "gone"), "--bad: Shot has no commit 'gone'"),
        (("--checkout", "data"), "--good: data has no commit 'v1'"),
        (("--bad", "v1"), "--good: there is no commit after"),
        (("--against", "x"), "unknown option --against"),
        (("--precision", "2%"), "unknown option --precision"),
        (("--define", "a=1,2"), "--define has several values; with bisect it can have only"),
        (("-c", "1,2"), "--concurrency has several values; with bisect it can have only one"),
        (("--rtt", "0,1ms"), "--rtt has several values; with bisect it can have only one"),
        (("--metric", "beauty"), "argument --metric: invalid choice: 'beauty'"),
        (("nothing",), "unknown benchmark 'nothing'"),
    ],
)
@pytest.mark.usefixtures("runs")
def test_a_wrong_argument_is_an_error_of_one_line(words: Sequence[str], message: str) -> None:
    Path("data").mkdir(exist_ok=True)
    status, out, err = outcome(*BISECT, *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"zodbshootout: {message}")
