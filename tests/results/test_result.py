from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyperf
import pytest

from tests.reports.results import with_worker_metadata
from tests.runs import cell, failed, measured, run, unsupported
from zodbshootout.errors import UserError
from zodbshootout.model.masking import Mask
from zodbshootout.model.outcome import Failure, State
from zodbshootout.model.parameters import CLIENTS, OBJECTS, SIZE
from zodbshootout.model.quantities import THROUGHPUT
from zodbshootout.model.specification import (
    CrewShape,
    LatencyLimit,
    MappingType,
    ReplayedWorkload,
)
from zodbshootout.results.cell import Cell, cell_of
from zodbshootout.results.estimate import runs_needed
from zodbshootout.results.figures import Figure, time_of
from zodbshootout.results.files import ResultFiles, read_results
from zodbshootout.results.names import file_name, long_name, short_name, varied_parameters
from zodbshootout.results.result import CellResult


@pytest.fixture
def files(tmp_path: Path) -> ResultFiles:
    return ResultFiles(tmp_path / "out.json")


def suite(path: Path) -> dict[str, pyperf.Benchmark]:
    return {benchmark.get_name(): benchmark for benchmark in pyperf.BenchmarkSuite.load(str(path))}


@pytest.mark.parametrize(
    "parameters",
    [
        {"objects": 5},
        {"rate": 0.1 + 0.2},
        {"limit": LatencyLimit(99.9, 6.9 / 1000)},
        {"objects": 0, "min_objects": 9, "blobs": True, "compressibility": 0.25},
        {"mapping": MappingType.OO, "leaf_size": 9, "internal_size": 8, "seed": -3},
        {"workload": ReplayedWorkload("plone", "x", 3, 2, 0.5, has_blobs=True, speed=2.0)},
    ],
)
def test_metadata_tell_which_cell_they_describe(parameters: dict[str, Any]) -> None:
    described = cell("add", "fs", **parameters)
    read = cell_of(json.loads(json.dumps(described.metadata())))
    assert (read, read.words) == (described, described.words)


def test_metadata_have_only_parameters_that_matter() -> None:
    bare = cell("tpc", "fs", objects=0).metadata()
    assert (bare["clients"], bare["client_kind"], bare["objects"]) == (2, "thread", 0)
    others = {"object_size_bytes", "mapping", "compressibility", "rate", "workload"}
    assert bare.keys() & others == set()


def test_the_combined_file_and_the_files_of_contenders_hold_the_same_runs(
    files: ResultFiles,
) -> None:
    files.write([measured(cell("add", "fs"), [1.0, 2.0]), measured(cell("add", "zeo"), [3.0])])
    assert {name: benchmark.get_values() for name, benchmark in suite(files.combined).items()} == {
        "fs: add 1000x300B threads-shared-2": (1.0, 2.0),
        "zeo: add 1000x300B threads-shared-2": (3.0,),
    }
    assert suite(files.directory / "fs.json")["add"].get_values() == (1.0, 2.0)
    assert suite(files.directory / "zeo.json")["add"].get_values() == (3.0,)


def test_trap_1_a_failed_or_unsupported_cell_has_no_number(files: ResultFiles) -> None:
    broken = measured(cell("cold", "fs"), [1.0]).failed(Failure("why", invalidates_results=True))
    files.write(
        [
            measured(cell("add", "fs"), [1.0]),
            broken,
            failed(cell("add", "pg"), "refused"),
            unsupported(cell("cold", "pg"), "cannot"),
        ]
    )
    assert list(suite(files.combined)) == ["fs: add 1000x300B threads-shared-2"]
    assert not (files.directory / "pg.json").exists()
    listed = [json.loads(line) for line in files.cells.read_text().splitlines()]
    keys = ("contender", "benchmark", "state", "reason")
    assert [tuple(entry[name] for name in keys) for entry in listed] == [
        ("fs", "add", "measured", ""),
        ("fs", "cold", "failed", "why"),
        ("pg", "add", "failed", "refused"),
        ("pg", "cold", "not supported", "cannot"),
    ]


def test_a_cell_that_fails_later_is_removed_from_the_files(files: ResultFiles) -> None:
    result = measured(cell("add", "fs"), [1.0])
    files.write([result])
    files.write([result.failed(Failure("why", invalidates_results=True))])
    assert not files.combined.exists()
    assert list(files.directory.iterdir()) == []


def test_a_failed_cell_keeps_its_earlier_runs_and_is_read_as_failed(files: ResultFiles) -> None:
    crashed = with_worker_metadata(measured(cell("add", "fs"), [1.0], [2.0])).crashed(
        "client 0 was killed by SIGKILL"
    )
    files.write([crashed.failed(Failure("why"))])
    (result,) = read_results(files.combined)
    assert (result.state, result.reason, len(result.runs)) == (State.FAILED, "why", 2)
    assert result.crashes == ("client 0 was killed by SIGKILL",)


def test_long_and_short_names_of_cells_are_unique() -> None:
    cells = [cell("add", "fs", objects=n, object_size=s) for n in (1, 2) for s in (128, 300)]
    assert len({long_name(one) for one in cells}) == 4
    assert [short_name(one, {OBJECTS, SIZE}) for one in cells] == [
        "add n=1 s=128",
        "add n=1 s=300",
        "add n=2 s=128",
        "add n=2 s=300",
    ]
    assert short_name(cells[0], ()) == "add"


@pytest.mark.parametrize(
    "parameters",
    [
        [{"rate": rate} for rate in (1e6, 1e6 + 1, 1e6 + 0.1, 0.1, 0.1 + 0.2, 20.0)],
        [{"limit": LatencyLimit(99, seconds)} for seconds in (0.05, 0.0500001, 1.0)],
        [{"limit": LatencyLimit(percentile, 1)} for percentile in (99, 99.9, 99.88888888)],
        [{"workload": ReplayedWorkload("w", speed=speed)} for speed in (1.0, 1.0000001)],
    ],
)
def test_numbers_that_are_nearly_equal_have_different_names(
    parameters: Sequence[dict[str, Any]],
) -> None:
    names = {long_name(cell("add", "fs", **more)) for more in parameters}
    assert len(names) == len(parameters)


def test_rates_that_are_nearly_equal_can_be_in_one_file(files: ResultFiles) -> None:
    rates = (1e6, 1e6 + 1, 1e6 + 2)
    files.write([measured(cell("add", "fs", rate=rate), [1.0]) for rate in rates])
    assert list(suite(files.directory / "fs.json")) == [
        "add r=1000000", "add r=1000001", "add r=1000002"
    ]  # fmt: skip


def test_numbers_in_names_have_no_more_digits_than_needed() -> None:
    names = [
        long_name(cell("add", "fs", **more)).split("300B ")[1]
        for more in ({"rate": 20.0}, {"rate": 0.1}, {"limit": LatencyLimit(99, 6.9 / 1000)})
    ]
    assert names == [
        "rate 20 threads-shared-2",
        "rate 0.1 threads-shared-2",
        "within p99=6.9ms threads-shared-2",
    ]


def test_a_name_mentions_objects_only_if_there_are_any() -> None:
    cells = [cell("add", "fs"), cell("tpc", "fs", objects=0)]
    assert varied_parameters(cells) == frozenset()
    assert long_name(cells[1]) == "fs: tpc threads-shared-2"
    assert short_name(cells[1], {OBJECTS, SIZE}) == "tpc"
    assert file_name(cells[1], {OBJECTS, CLIENTS}) == "fs-tpc-c2"
    blobs = cell("add", "fs", blobs=True, mapping=MappingType.OO)
    assert long_name(blobs) == "fs: add 1000x300B blobs OOBTree threads-shared-2"


def test_the_mean_and_the_rate_cover_all_runs() -> None:
    result = CellResult(cell("add", "fs")).with_run(run(0.1, 0.3)).with_run(run(0.2, 0.2))
    assert time_of(result).value == pytest.approx(0.2)
    assert Figure(result, THROUGHPUT).value == pytest.approx(2 * 1000 / 0.2)


def test_runs_alike_by_chance_do_not_make_a_figure_certain() -> None:
    result = time_of(measured(cell("add", "fs"), *[[1.0, 3.0]] * 4))
    assert result.interval is not None
    assert result.half_width is not None
    # A value has a variance of 2, the mean of eight that of 1/4, with 7 degrees of freedom.
    assert result.half_width == pytest.approx(2.365 * 0.5 / 2, rel=1e-3)
    assert result.interval == pytest.approx((2 - 2.365 * 0.5, 2 + 2.365 * 0.5), rel=1e-3)
    assert result.relative.half_width == result.half_width
    assert runs_needed(result.relative, 4, 0.05) > 100


def test_appending_adds_runs_to_those_in_the_files(files: ResultFiles) -> None:
    add, cold = cell("add", "fs"), cell("cold", "fs")
    files.write([with_metadata(add)])
    again = files.appending()
    again.write([with_metadata(add, 2.0)])
    again.write([with_metadata(add, 2.0), with_metadata(cold, 5.0)])
    assert suite(files.directory / "fs.json")["add"].get_values() == (1.0, 2.0)
    assert suite(files.directory / "fs.json")["cold"].get_values() == (5.0,)
    assert len(suite(files.combined)) == 2


@pytest.mark.parametrize("name", ["a" * 300, f"{'a' * 245}.json"], ids=["itself", "cells"])
@pytest.mark.parametrize(
    "ask", [lambda files: files.exist, ResultFiles.appending], ids=["exist", "appending"]
)
def test_names_that_are_too_long_are_refused_before_a_write(
    name: str, ask: Callable[[ResultFiles], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From Python 3.14 on, this is the answer for a name that the system refuses.
    monkeypatch.setattr(Path, "exists", lambda _: False)
    with pytest.raises(OSError, match="File name too long"):
        ask(ResultFiles(tmp_path / name))


def test_a_failed_write_leaves_the_combined_file_and_no_temporary_file(
    files: ResultFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write([measured(cell("add", "fs"), [1.0])])
    before = files.combined.read_bytes()

    def disk_full(suite: pyperf.BenchmarkSuite, path: str, **_: object) -> None:
        Path(path).write_text("{")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pyperf.BenchmarkSuite, "dump", disk_full)
    with pytest.raises(UserError, match="No space left"):
        files.write([measured(cell("add", "fs"), [1.0]), measured(cell("cold", "fs"), [1.0])])
    assert files.combined.read_bytes() == before
    assert sorted(path.name for path in files.combined.parent.iterdir()) == [
        "out.cells.jsonl",
        "out.d",
        "out.json",
    ]


@pytest.mark.parametrize(
    ("name", "directory"), [("a.json", "a.d"), ("a.json.gz", "a.d"), ("a", "a.d"), ("a.b", "a.b.d")]
)
def test_the_directory_is_named_after_the_file(tmp_path: Path, name: str, directory: str) -> None:
    assert ResultFiles(tmp_path / name).directory == tmp_path / directory


def test_a_file_whose_name_ends_in_gz_is_compressed(tmp_path: Path) -> None:
    files = ResultFiles(tmp_path / "out.json.gz")
    files.write([measured(cell("add", "fs"), [1.0])])
    assert files.combined.read_bytes()[:2] == b"\x1f\x8b"
    assert len(suite(files.combined)) == 1


def test_special_characters_of_a_contender_name_are_quoted_in_its_file_name(
    files: ResultFiles,
) -> None:
    files.write([measured(cell("add", "a/b c"), [1.0])])
    assert (files.directory / "a%2Fb%20c.json").exists()


def test_contenders_with_similar_names_have_separate_files(files: ResultFiles) -> None:
    files.write([measured(cell("add", "a+b"), [1.0]), measured(cell("add", "a@b"), [2.0])])
    assert len(list(files.directory.iterdir())) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '"x"', '{"benchmarks": [1]}'])
def test_appending_refuses_a_file_that_pyperf_did_not_write(
    files: ResultFiles, content: str
) -> None:
    files.combined.write_text(content)
    with pytest.raises(UserError, match=r"out\.json"):
        files.appending()


def with_metadata(measured_cell: Cell, value: float = 1.0, **metadata: Any) -> CellResult:
    """Return a result whose run has the metadata that a worker adds."""
    metadata = {"name": "x", "unit": "second", **measured_cell.metadata(), **metadata}
    return CellResult(measured_cell).with_run(
        pyperf.Benchmark([pyperf.Run([value], metadata=metadata)])
    )


def test_runs_whose_passwords_differ_are_recorded_alike(files: ResultFiles) -> None:
    files = replace(files, mask=Mask(["geheim", "anders"]))
    add = cell("add", "fs")

    def metadata(password: str) -> dict[str, Any]:
        dsn = f"dbname=x password='{password}'"
        settings = {"storage": {"dsn": dsn, "passwd": password}}
        return {
            "settings": json.dumps(settings), "configuration_text": json.dumps(f"<zodb>\n{dsn}"),
            "command_line": f"zodbshootout '{dsn}'",
        }  # fmt: skip

    failure = Failure("geheim is wrong", "Traceback: geheim")
    files.write([with_metadata(add, **metadata("geheim")).failed(failure).crashed("geheim?")])
    appending = files.appending()
    assert appending.conflict({add: {**add.metadata(), **metadata("anders")}}, "second") is None
    (result,) = appending.existing
    assert (result.reason, result.crashes) == ("*** is wrong", ("***?",))
    assert result.settings == {("storage", "dsn"): "dbname=x password='***'"}
    assert "geheim" not in str([*result.facts, files.combined.read_text(), files.cells.read_text()])


def test_appending_conflicts_if_parameters_settings_versions_or_units_differ(
    files: ResultFiles,
) -> None:
    add = cell("add", "fs")
    known: dict[str, Any] = {"packed": False, "version_ZEO": "6.1", "settings": '{"a": "1"}'}
    files.write([with_metadata(add, **known, label="first")])
    existing = files.appending()

    def conflict(new: Cell, unit: str = "second", **metadata: Any) -> str | None:
        return existing.conflict({new: {**new.metadata(), **metadata}}, unit)

    assert conflict(add) is None
    assert conflict(add, packed=False, version_ZEO="6.1", label="second") is None
    reason = conflict(add, settings='{"a": "2"}')
    assert reason is not None
    assert reason.startswith('fs: add was measured with settings={"a": "1"}, configuration_hash=')
    assert conflict(add, benchmark_title="In Other Words") is None
    assert conflict(add, packed=True) == "fs: add was measured with packed=False"
    assert conflict(add, version_ZEO="6.2") == "fs: add was measured with version_ZEO=6.1"
    assert (
        conflict(add, version_RelStorage="4")
        == "fs: add was measured with version_RelStorage=nothing"
    )
    for parameters, stored in (
        ({"objects": 7}, "objects=1000"),
        ({"seed": 3}, "seed=0"),
        ({"compressibility": 0.25}, "compressibility=0.5"),
        ({"leaf_size": 9}, "btree_leaf_size=0"),
    ):
        assert conflict(cell("add", "fs", **parameters)) == f"fs: add was measured with {stored}"
    assert "unit" in str(conflict(add, "byte"))
    assert conflict(cell("add", "zeo", objects=7)) is None
    assert conflict(cell("cold", "fs", objects=7)) is None


def test_a_conflict_is_detected_from_the_combined_file_alone(files: ResultFiles) -> None:
    files.write([with_metadata(cell("add", "fs"))])
    shutil.rmtree(files.directory)
    files.cells.unlink()
    other = cell("add", "fs", seed=3)
    assert files.appending().conflict({other: other.metadata()}, "second") == (
        "fs: add was measured with seed=0"
    )


def test_a_cell_keeps_its_name_if_a_later_run_varies_fewer_parameters(files: ResultFiles) -> None:
    one, two = (cell("add", "fs", crew=CrewShape(size)) for size in (1, 2))
    files.write([with_metadata(one), with_metadata(two)])
    assert set(suite(files.directory / "fs.json")) == {"add c=1", "add c=2"}
    files.appending().write([with_metadata(one)])
    benchmarks = suite(files.directory / "fs.json")
    assert {name: benchmark.get_nrun() for name, benchmark in benchmarks.items()} == {
        "add c=1": 2,
        "add c=2": 1,
    }


def test_appending_a_failure_keeps_the_earlier_runs(files: ResultFiles) -> None:
    add = cell("add", "fs")
    files.write([with_metadata(add)])
    files.appending().write([failed(add, "no more room")])
    (result,) = read_results(files.combined)
    assert (result.state, result.measured, result.reason) == (State.FAILED, True, "no more room")


def test_a_cell_has_its_latest_state_unless_that_is_not_run(files: ResultFiles) -> None:
    add = cell("add", "fs")
    files.write([with_metadata(add).failed(Failure("no more room"))])
    files.appending().write([with_metadata(add)])
    (result,) = read_results(files.combined)
    assert (result.state, result.reason, len(result.runs)) == (State.MEASURED, "", 2)
    files.appending().write([CellResult(add, State.NOT_RUN, "interrupted")])
    (result,) = read_results(files.combined)
    assert (result.state, result.reason, len(result.runs)) == (State.MEASURED, "", 2)


@pytest.mark.parametrize(
    "change",
    [{"objects": "many"}, {"mapping": "dict"}, {"client_kind": "horse"}, {"latency_limit": "p99"}],
)
def test_a_cell_with_malformed_parameters_is_refused(
    files: ResultFiles, change: dict[str, Any]
) -> None:
    files.write([failed(cell("add", "fs"), "why")])
    document = json.loads(files.cells.read_text())
    document |= change
    files.cells.write_text(json.dumps(document))
    with pytest.raises(UserError, match=r"out\.cells\.jsonl is damaged: "):
        read_results(files.combined)


def test_a_cell_without_objects_does_one_piece_of_work_unless_it_says_otherwise() -> None:
    tpc = cell("tpc", "fs", objects=0)
    assert Figure(measured(tpc, [1.0]), THROUGHPUT).work == 2
    assert Figure(measured(tpc, [1.0], work_per_iteration=3), THROUGHPUT).work == 6
