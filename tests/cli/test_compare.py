"""``zodbshootout compare``: its output, refusals and exit statuses."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.files import run, side, written
from tests.commands import outcome
from tests.runs import cell, measured, noisy, unpaired
from zodbshootout.model.specification import ClientKind, CrewShape

GOLDEN = Path(__file__).parents[1] / "results" / "golden"


@pytest.fixture
def both(tmp_path: Path) -> Path:
    lonely = measured(cell("cold", "fs"), *noisy(9))
    return written(
        tmp_path / "out.json",
        *side("fs", 1.0, 1, version_ZODB="6.3"),
        *side("zeo", 1.1, 3, version_ZODB="6.4"),
        lonely,
    )


def lines(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@pytest.mark.parametrize(("name", "ending"), [("text", "txt"), ("markdown", "md")])
def test_a_comparison_matches_the_golden_file(both: Path, name: str, ending: str) -> None:
    status, out, err = run(both, "--contender", "fs", "zeo", "--format", name)
    assert (status, err) == (0, "")
    assert lines(out) == (GOLDEN / f"comparison.{ending}").read_text(encoding="utf-8")


def test_two_sections_are_compared_at_each_round_trip_time(tmp_path: Path) -> None:
    path = written(
        tmp_path / "out.json",
        *side("zeo", 1.0, 1, rtt=0.0),
        *side("zeo", 1.2, 2, rtt=0.002),
        *side("pg", 0.5, 3, rtt=0.0),
        *side("pg", 2.4, 4, rtt=0.002),
    )
    _, out, _ = run(path, "--contender", "zeo", "pg", "--format", "csv")
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["benchmark"] == "add"]
    assert [row["rtt_s"] for row in rows] == ["0.0", "0.002"]
    assert [float(row["ratio"]) for row in rows] == pytest.approx([2.0, 0.5], rel=0.02)
    _, out, _ = run(path, "--contender", "zeo [0]", "zeo [2ms]", "--format", "csv")
    row, _ = csv.DictReader(io.StringIO(out))
    assert float(row["ratio"]) == pytest.approx(1 / 1.2, rel=0.02)
    assert (row["base_contender"], row["new_contender"]) == ("zeo [0]", "zeo [2ms]")
    _, out, _ = run(path, "--define", "rtt", "--format", "csv")
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["benchmark"] == "add"]
    assert [row["base_contender"] for row in rows] == ["zeo", "pg"]
    assert [float(row["ratio"]) for row in rows] == pytest.approx([1 / 1.2, 0.5 / 2.4], rel=0.02)


def test_csv_has_a_line_for_each_cell(both: Path) -> None:
    _, out, _ = run(both, "--contender", "fs", "zeo", "--format", "csv")
    add, hot = csv.DictReader(io.StringIO(out))
    assert (add["verdict"], hot["verdict"]) == ("slower", "no significant difference")
    assert float(add["ratio"]) == pytest.approx(1 / 1.1, rel=0.01)
    assert float(add["interval_low"]) < 1 / 1.1 < float(add["interval_high"])
    assert (add["paired"], add["base_runs"]) == ("True", "6")


def test_contenders_of_the_same_name_are_compared_across_two_files(tmp_path: Path) -> None:
    base = written(tmp_path / "a.json", *side("fs", 1.0, 1), *side("zeo", 1.0, 3))
    new = written(tmp_path / "b.json", *side("fs", 1.1, 5), *side("zeo", 1.0, 7))
    status, out, _ = run(base, new, "--format", "csv")
    verdicts = [(row["base_contender"], row["verdict"]) for row in csv.DictReader(io.StringIO(out))]
    assert status == 0
    assert verdicts == [
        ("fs", "slower"), ("fs", "no significant difference"),
        ("zeo", "no significant difference"), ("zeo", "no significant difference"),
    ]  # fmt: skip


def test_files_of_one_contender_each_are_compared_despite_different_names(both: Path) -> None:
    directory = both.with_name("out.d")
    status, out, _ = run(directory / "fs.json", directory / "zeo.json")
    assert status == 0
    assert "fs: fs" in out
    assert "fs is 1.097 times as fast" in out
    assert "only in fs: fs: fs: cold 1000x300B threads-shared-2" in out


@pytest.mark.parametrize(("above", "status"), [("5%", 1), ("5", 1), ("15%", 0)])
def test_fail_above_fails_only_if_a_significant_slowdown_exceeds_it(
    both: Path, above: str, status: int
) -> None:
    files = [both.with_name(f"{name}.json") for name in ("fs", "zeo")]
    for file, times, seed in zip(files, (1.0, 1.1), (1, 3), strict=True):
        written(file, *side("fs", times, seed))
    actual, _, err = run(*files, "--fail-above", above)
    assert actual == status
    slower = (
        "zodbshootout: worse by more than 5 %: fs: add 1000x300B threads-shared-2: "
        "fs is 1.097 times as fast as zeo (1.092 to 1.102)\n"
    )
    assert err == (slower if status else "")


def refusals(tmp_path: Path) -> Sequence[tuple[list[str | Path], str]]:
    two = written(tmp_path / "a.json", *side("fs", 1.0, 1), *side("zeo", 1.0, 3))
    other = written(tmp_path / "b.json", measured(cell("add", "fs", objects=10), [1.0], [1.0]))
    third = written(tmp_path / "c.json", *side("pg", 1.0, 1), *side("my", 1.0, 3))
    memory = written(tmp_path / "m.json", measured(cell("add", "fs"), [1.0], unit="byte"))
    return [
        (
            [two],
            "compare: " + str(two) + " is one file; name two of its contenders with "
            "--contender: fs, zeo",
        ),
        ([two, two, two], "compare: give two files, or one and --contender A B"),
        (
            [two, "--contender", "fs", "zoe"],
            "--contender: no 'zoe' in " + str(two) + "; did you mean zeo?",
        ),
        (
            [two, other],
            (
                "compare: fs: add 1000x300B threads-shared-2 and fs: add 10x300B "
                "threads-shared-2 differ in object-counts; to compare them anyway, add "
                "--ignore object-counts"
            ),
        ),
        (
            [two, third],
            (
                "compare: no benchmark of a contender was measured on both sides; to "
                "compare two contenders, add --contender A B"
            ),
        ),
        ([two, memory], f"{memory} holds memory, not times: compare it with pyperf compare_to"),
        (
            [two, other, "--fail-above", "much"],
            ("argument --fail-above: 'much' is not a percentage, such as 2%"),
        ),
        ([two, other, "--format", "cvs"], "--format: no 'cvs'; did you mean csv?"),
        ([two, tmp_path / "no.json"], "no.json"),
    ]


def test_an_impossible_comparison_is_refused_in_one_line(tmp_path: Path) -> None:
    for arguments, message in refusals(tmp_path):
        status, out, err = run(*arguments)
        assert (status, out, err.count("\n")) == (2, "", 1), err
        assert message in err


def test_ignored_parameters_may_differ(tmp_path: Path) -> None:
    base = written(tmp_path / "a.json", unpaired(cell("add", "fs", objects=1000), *[[1.0]] * 3))
    new = written(tmp_path / "b.json", unpaired(cell("add", "fs", objects=10), *[[0.01]] * 3))
    status, out, _ = run(base, new, "--ignore", "object-counts")
    assert status == 0
    assert "no significant difference (1.00 to 1.00)" in out


def test_local_and_remote_clients_are_compared_only_with_ignore_hosts(
    tmp_path: Path,
) -> None:
    here = cell("add", "fs", crew=CrewShape(4))
    there = cell("add", "fs", crew=CrewShape(4, hosts=2))
    base = written(tmp_path / "a.json", unpaired(here, *[[1.0]] * 3))
    new = written(tmp_path / "b.json", unpaired(there, *[[1.0]] * 3))
    status, _, err = run(base, new)
    assert status == 2
    assert "differ in hosts; to compare them anyway, add --ignore hosts" in err
    status, out, _ = run(base, new, "--ignore", "hosts")
    assert status == 0
    assert "no significant difference (1.00 to 1.00)" in out


def test_processes_and_threads_are_compared_only_with_ignore_threads(tmp_path: Path) -> None:
    kinds = [CrewShape(2), CrewShape(2, ClientKind.THREAD, shared=True)]
    cells = [cell("add", "fs", crew=shape) for shape in kinds]
    base = written(tmp_path / "a.json", unpaired(cells[0], *[[1.0]] * 3))
    new = written(tmp_path / "b.json", unpaired(cells[1], *[[1.0]] * 3))
    status, _, err = run(base, new, "--ignore", "concurrency")
    assert status == 2
    assert "differ in threads; to compare them anyway, add --ignore threads" in err
    status, out, _ = run(base, new, "--ignore", "threads")
    assert status == 0
    assert "no significant difference (1.00 to 1.00)" in out


BEFORE = {"environment": "before"}


@pytest.fixture
def environments(tmp_path: Path) -> Path:
    return written(
        tmp_path / "run.json",
        *side("fs", 1.0, 1),
        *side("zeo", 1.0, 3),
        *side("fs", 1.1, 5, variant=BEFORE),
        *side("zeo", 1.0, 7, variant=BEFORE),
    )


def test_every_contender_is_compared_with_itself_in_another_environment(environments: Path) -> None:
    status, out, _ = run(environments, "--environment", "before", "Installed", "--format", "csv")
    verdicts = [(row["base_contender"], row["verdict"]) for row in csv.DictReader(io.StringIO(out))]
    assert status == 0
    assert verdicts == [
        ("fs", "faster"), ("fs", "no significant difference"),
        ("zeo", "no significant difference"), ("zeo", "no significant difference"),
    ]  # fmt: skip


def test_an_environment_that_is_not_in_the_file_is_refused(environments: Path) -> None:
    status, _, err = run(environments, "--environment", "befor", "installed")
    assert (status, err.count("\n")) == (2, 1)
    assert f"--environment: no 'befor' in {environments}; did you mean before?" in err


def test_show_includes_the_comparison_of_each_contender(environments: Path) -> None:
    status, tables, _ = outcome("show", environments)
    assert status == 0
    shown = lines(tables)
    assert "fs@before against fs: slower at add (0.91×); no difference seen at hot" in shown
    for name in ("fs", "zeo"):
        _, out, _ = run(environments, "--contender", name, f"{name}@before")
        assert lines(out) in shown
    status, records, _ = outcome("show", environments, "--format", "csv")
    assert (status, len(records.splitlines())) == (0, 9)


@pytest.fixture
def caches(tmp_path: Path) -> Path:
    times = {"1MB": 2.0, "10MB": 1.0, "100MB": 1.0}
    return written(
        tmp_path / "caches.json",
        measured(cell("cold", "fs"), *noisy(1)),
        *(
            measured(cell("cold", "zeo", {"cache": size}), *noisy(seed, slower))
            for seed, (size, slower) in enumerate(times.items())
        ),
    )  # fmt: skip


def test_all_values_of_a_defined_name_are_compared_with_the_first(caches: Path) -> None:
    status, printed, _ = run(caches, "--define", "cache")
    assert status == 0
    for size in ("10MB", "100MB"):
        assert f"cache={size} and cache=1MB\n====" in printed
        assert f"cache={size} is " in printed
    assert printed.count("times as fast") == 2
    assert "fs" not in printed
    _, written, _ = run(caches, "--define", "cache", "--format", "csv")
    assert len(list(csv.DictReader(io.StringIO(written)))) == 2


@pytest.fixture
def swept_caches(tmp_path: Path) -> Path:
    """Return a file with another number of objects for each value of a name."""
    return written(
        tmp_path / "swept.json",
        *(
            measured(cell("cold", "zeo", {"cache": size}, objects=objects), *[[1.0]] * 3)
            for size, objects in (("1MB", 1000), ("10MB", 10))
        ),
    )  # fmt: skip


def test_values_without_a_common_cell_are_not_compared(swept_caches: Path) -> None:
    status, out, error = run(swept_caches, "--define", "cache")
    assert (status, out, error.count("\n")) == (2, "", 1)
    assert "differ in object-counts; to compare them anyway, add --ignore" in error


def test_ignored_parameters_may_differ_between_values(swept_caches: Path) -> None:
    status, out, _ = run(swept_caches, "--define", "cache", "--ignore", "object-counts")
    assert status == 0
    assert "cache=1MB is 100.00 times as fast" in out


def test_a_name_without_values_cannot_be_compared(caches: Path, both: Path) -> None:
    status, _, error = run(caches, "--define", "cach")
    assert (status, "no values of 'cach' in" in error, "did you mean cache?" in error) == (
        2, True, True,
    )  # fmt: skip
    assert "the run was without --define" in run(both, "--define", "cache")[2]
    assert "compares values within one file" in run(caches, caches, "--define", "cache")[2]


@pytest.fixture
def with_trips(tmp_path: Path) -> Path:
    rounds = [[1.0, 1.1]] * 4
    return written(
        tmp_path / "trips.json",
        measured(cell("add", "zeo"), *rounds, trips="2 2 2"),
        measured(cell("add", "pg"), *rounds, trips="12 12 12"),
        measured(cell("add", "fs"), *rounds),
    )


def test_a_cost_that_is_the_same_in_all_runs_is_compared_exactly(with_trips: Path) -> None:
    words = (with_trips, "--metric", "trips", "--contender")
    _, out, _ = run(*words, "zeo", "pg")
    assert "pg takes 6.00 times as much (exactly)" in out
    assert "different times" not in out
    _, out, _ = run(*words, "zeo", "zeo")
    assert any(line.rstrip().endswith(" equal") for line in out.splitlines()), out


def test_bytes_that_differ_by_a_digit_of_object_ids_have_no_interval(tmp_path: Path) -> None:
    sizes = {"zeo": "86020 86020", "pg": "85920 85920"}
    figures = [
        measured(cell("add", name), *[[1.0, 1.1]] * 3, network_bytes=of)
        for name, of in sizes.items()
    ]
    path = written(tmp_path / "bytes.json", *figures)
    _, out, _ = run(path, "--metric", "bytes", "--contender", "zeo", "pg")
    assert any(line.endswith("no significant difference") for line in out.splitlines())


def test_a_cost_that_a_contender_has_not_is_refused_by_its_name(with_trips: Path) -> None:
    def complaint(cost: str, *words: str) -> str:
        status, _, err = run(with_trips, "--metric", cost, *words)
        assert status == 2
        return err.removeprefix(f"zodbshootout: --metric: {with_trips} has ").rstrip()

    assert complaint("trips", "--contender", "zeo", "fs") == "no trips of fs"
    reason = "the run started no server for it"
    assert complaint("server_cpu", "--contender", "zeo", "fs") == f"no server_cpu of zeo: {reason}"
