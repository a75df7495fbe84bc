from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pyperf
import pytest

from tests.reports.results import with_worker_metadata
from tests.runs import cell, failed, measured, run, unsupported
from zodbshootout.client.outcome import Failure, State
from zodbshootout.client.specification import ClientKind, CrewShape, MappingType, Parameters
from zodbshootout.errors import UserError
from zodbshootout.results.cell import Cell, decode, encode
from zodbshootout.results.estimate import runs_needed
from zodbshootout.results.files import ResultFiles, read_results
from zodbshootout.results.result import (
    CellResult,
    file_name,
    long_name,
    short_name,
    varied_parameters,
)


@pytest.fixture
def files(tmp_path: Path) -> ResultFiles:
    return ResultFiles(tmp_path / "out.json")


def suite(path: Path) -> dict[str, pyperf.Benchmark]:
    return {benchmark.get_name(): benchmark for benchmark in pyperf.BenchmarkSuite.load(str(path))}


def test_a_cell_survives_json() -> None:
    of = cell("add", "fs", objects=5)
    document = json.loads(json.dumps(encode(of)))
    assert decode(Cell, document) == of
    assert document["parameters"].pop("crew") == {
        "size": 2, "unit": "thread", "shared": True, "hosts": 0,
    }  # fmt: skip


def test_the_combined_file_and_those_of_the_contenders_hold_the_same_runs(
    files: ResultFiles,
) -> None:
    files.write([measured(cell("add", "fs"), [1.0, 2.0]), measured(cell("add", "zeo"), [3.0])])
    assert {name: benchmark.get_values() for name, benchmark in suite(files.combined).items()} == {
        "fs: add 1000x300B threads-shared-2": (1.0, 2.0),
        "zeo: add 1000x300B threads-shared-2": (3.0,),
    }
    assert suite(files.directory / "fs.json")["add"].get_values() == (1.0, 2.0)
    assert suite(files.directory / "zeo.json")["add"].get_values() == (3.0,)


def test_trap_1_what_failed_or_is_not_supported_is_not_a_number(files: ResultFiles) -> None:
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


def test_what_fails_later_is_taken_out_again(files: ResultFiles) -> None:
    result = measured(cell("add", "fs"), [1.0])
    files.write([result])
    files.write([result.failed(Failure("why", invalidates_results=True))])
    assert not files.combined.exists()
    assert list(files.directory.iterdir()) == []


def test_what_a_failed_cell_had_before_is_kept_and_read_as_failed(files: ResultFiles) -> None:
    crashed = with_worker_metadata(measured(cell("add", "fs"), [1.0], [2.0])).crashed(
        "client 0 was killed by SIGKILL"
    )
    files.write([crashed.failed(Failure("why"))])
    (result,) = read_results(files.combined)
    assert (result.state, result.reason, len(result.runs)) == (State.FAILED, "why", 2)
    assert result.crashes == ("client 0 was killed by SIGKILL",)


def test_names_are_unique_wherever_they_stand() -> None:
    cells = [cell("add", "fs", objects=n, object_size=s) for n in (1, 2) for s in (128, 300)]
    assert len({long_name(one) for one in cells}) == 4
    assert [short_name(one, {"objects", "size"}) for one in cells] == [
        "add n=1 s=128",
        "add n=1 s=300",
        "add n=2 s=128",
        "add n=2 s=300",
    ]
    assert short_name(cells[0], ()) == "add"


def test_a_name_tells_of_objects_only_where_there_are_any() -> None:
    of_both = [cell("add", "fs"), cell("tpc", "fs", objects=0)]
    assert varied_parameters(of_both) == frozenset()
    assert long_name(of_both[1]) == "fs: tpc threads-shared-2"
    assert short_name(of_both[1], {"objects", "size"}) == "tpc"
    assert file_name(of_both[1], {"objects", "concurrency"}) == "fs-tpc-c2"
    blobs = cell("add", "fs", blobs=True, mapping=MappingType.OO)
    assert long_name(blobs) == "fs: add 1000x300B blobs OOBTree threads-shared-2"


def test_runs_add_up() -> None:
    result = CellResult(cell("add", "fs")).with_run(run(0.1, 0.3)).with_run(run(0.2, 0.2))
    assert result.mean == pytest.approx(0.2)
    assert result.objects_per_second == pytest.approx(2 * 1000 / 0.2)


def test_runs_that_are_alike_by_chance_do_not_make_a_figure_certain() -> None:
    result = measured(cell("add", "fs"), *[[1.0, 3.0]] * 4)
    assert result.interval is not None
    assert result.half_width is not None
    # The variance of a value is 2, and that of the mean of eight a quarter, with 7 degrees.
    assert result.half_width == pytest.approx(2.365 * 0.5 / 2, rel=1e-3)
    assert result.interval == pytest.approx((2 - 2.365 * 0.5, 2 + 2.365 * 0.5), rel=1e-3)
    assert result.relative.half_width == result.half_width
    assert runs_needed(result.relative, 4, 0.05) > 100


def test_appending_adds_runs_to_what_a_file_holds(files: ResultFiles) -> None:
    add, cold = cell("add", "fs"), cell("cold", "fs")
    files.write([with_metadata(add)])
    again = files.appending()
    again.write([with_metadata(add, 2.0)])
    again.write([with_metadata(add, 2.0), with_metadata(cold, 5.0)])
    assert suite(files.directory / "fs.json")["add"].get_values() == (1.0, 2.0)
    assert suite(files.directory / "fs.json")["cold"].get_values() == (5.0,)
    assert len(suite(files.combined)) == 2


def test_a_write_that_fails_leaves_what_was_there(
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


def test_a_compressed_file_is_one(tmp_path: Path) -> None:
    files = ResultFiles(tmp_path / "out.json.gz")
    files.write([measured(cell("add", "fs"), [1.0])])
    assert files.combined.read_bytes()[:2] == b"\x1f\x8b"
    assert len(suite(files.combined)) == 1


def test_a_contender_with_an_odd_name_has_a_file_all_the_same(files: ResultFiles) -> None:
    files.write([measured(cell("add", "a/b c"), [1.0])])
    assert (files.directory / "a%2Fb%20c.json").exists()


def test_contenders_with_names_alike_have_files_of_their_own(files: ResultFiles) -> None:
    files.write([measured(cell("add", "a+b"), [1.0]), measured(cell("add", "a@b"), [2.0])])
    assert len(list(files.directory.iterdir())) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '"x"', '{"benchmarks": [1]}'])
def test_a_file_that_is_not_pyperfs_is_not_added_to(files: ResultFiles, content: str) -> None:
    files.combined.write_text(content)
    with pytest.raises(UserError, match=r"out\.json"):
        files.appending()


def with_metadata(of: Cell, value: float = 1.0, **metadata: Any) -> CellResult:
    """Return a result whose run has the metadata that a worker gives it."""
    metadata = {"name": "x", "unit": "second", **of.metadata(), **metadata}
    return CellResult(of).with_run(pyperf.Benchmark([pyperf.Run([value], metadata=metadata)]))


def test_only_like_results_are_added(files: ResultFiles) -> None:
    of = cell("add", "fs")
    files.write([with_metadata(of, packed=False, version_ZEO="6.1", label="first")])
    there = files.appending()

    def conflict(new: Cell, unit: str = "second", **metadata: Any) -> str | None:
        return there.conflict({new: {**new.metadata(), **metadata}}, unit)

    assert conflict(of) is None
    assert conflict(of, packed=False, version_ZEO="6.1", label="second") is None
    assert conflict(of, packed=True) == "fs: add is there with packed=False"
    assert conflict(of, version_ZEO="6.2") == "fs: add is there with version_ZEO=6.1"
    assert (
        conflict(of, version_RelStorage="4") == "fs: add is there with version_RelStorage=nothing"
    )
    for parameters, stored in (
        ({"objects": 7}, "objects=1000"),
        ({"seed": 3}, "seed=0"),
        ({"compressibility": 0.25}, "compressibility=0.5"),
        ({"leaf_size": 9}, "btree_leaf_size=0"),
    ):
        assert conflict(cell("add", "fs", **parameters)) == f"fs: add is there with {stored}"
    assert "unit" in str(conflict(of, "byte"))
    assert conflict(cell("add", "zeo", objects=7)) is None
    assert conflict(cell("cold", "fs", objects=7)) is None


def test_what_is_there_is_told_from_the_combined_file_alone(files: ResultFiles) -> None:
    files.write([with_metadata(cell("add", "fs"))])
    shutil.rmtree(files.directory)
    files.cells.unlink()
    other = cell("add", "fs", seed=3)
    assert files.appending().conflict({other: other.metadata()}, "second") == (
        "fs: add is there with seed=0"
    )


def test_a_cell_has_one_name_however_much_a_run_varies(files: ResultFiles) -> None:
    one, two = (Cell("add", "fs", Parameters(CrewShape(size))) for size in (1, 2))
    files.write([with_metadata(one), with_metadata(two)])
    assert set(suite(files.directory / "fs.json")) == {"add c=1", "add c=2"}
    files.appending().write([with_metadata(one)])
    benchmarks = suite(files.directory / "fs.json")
    assert {name: benchmark.get_nrun() for name, benchmark in benchmarks.items()} == {
        "add c=1": 2,
        "add c=2": 1,
    }


def test_a_run_that_fails_takes_nothing_from_what_there_was(files: ResultFiles) -> None:
    of = cell("add", "fs")
    files.write([with_metadata(of)])
    files.appending().write([failed(of, "no more room")])
    (result,) = read_results(files.combined)
    assert (result.state, result.measured, result.reason) == (State.FAILED, True, "no more room")


def test_a_cell_is_what_became_of_it_last(files: ResultFiles) -> None:
    of = cell("add", "fs")
    files.write([with_metadata(of).failed(Failure("no more room"))])
    files.appending().write([with_metadata(of)])
    (result,) = read_results(files.combined)
    assert (result.state, result.reason, len(result.runs)) == (State.MEASURED, "", 2)
    files.appending().write([CellResult(of, State.NOT_RUN, "interrupted")])
    (result,) = read_results(files.combined)
    assert (result.state, result.reason, len(result.runs)) == (State.MEASURED, "", 2)


DEV0 = Path(__file__).parent / "data" / "dev0.json.gz"


def test_files_of_1_0_0_dev0_are_read_though_they_name_the_crew_in_words(tmp_path: Path) -> None:
    with gzip.open(DEV0, "rt") as file:
        assert '"cell"' not in file.read()
    expected = [
        ("tpc filestorage", CrewShape(2, ClientKind.THREAD, shared=True), 0, 2),
        ("new_oid filestorage", CrewShape(2, ClientKind.THREAD, shared=True), 1000, 2),
        ("add zeo_file", CrewShape(8, hosts=2), 1000, 2),
        ("add memory", CrewShape(1), 1000, 2),
        ("add zeo_fs", CrewShape(2), 1000, 2),
        ("warm memory", CrewShape(1), 1000, 0),
    ]

    def read(path: Path) -> list[tuple[str, CrewShape, int, int]]:
        return [
            (
                f"{result.cell.benchmark} {result.cell.contender}",
                result.cell.parameters.crew,
                result.cell.parameters.objects,
                len(result.runs),
            )
            for result in read_results(path)
        ]

    assert read(DEV0) == expected
    shutil.copy(DEV0, tmp_path)
    assert read(tmp_path / DEV0.name) == expected[:-1]


def test_runs_are_added_to_files_of_1_0_0_dev0(files: ResultFiles) -> None:
    of = cell("add", "fs")
    metadata = {"name": "x", "unit": "second", **of.metadata()}
    del metadata["cell"]
    old = pyperf.Benchmark([pyperf.Run([1.0], metadata=metadata)])
    files.write([CellResult(of).with_run(old)])
    there = files.appending()
    assert there.conflict({of: {**of.metadata(), "settings": "{}"}}, "second") is None
    there.write([with_metadata(of, settings="{}")])
    (result,) = read_results(files.combined)
    assert (result.cell, len(result.runs)) == (of, 2)


def test_the_crew_is_read_from_data_and_not_from_words(files: ResultFiles) -> None:
    of = cell("add", "fs", seed=-3)
    files.write([with_metadata(of, crew="a crowd", concurrency=9)])
    files.cells.unlink()
    assert [result.cell for result in read_results(files.combined)] == [of]


@pytest.mark.parametrize(
    "change",
    [
        {"objects": -1}, {"objects": 1e3}, {"objects": "9"}, {"objects": True}, {"blobs": 1},
        {"mapping": "dict"}, {"objects": 10**18}, {"unheard_of": 1}, {"crew": {"size": 1}},
        {"crew": {"size": 1, "unit": "horse", "shared": False}}, {"crew": 3},
    ],
)  # fmt: skip
def test_a_cell_of_another_form_is_not_read(files: ResultFiles, change: dict[str, Any]) -> None:
    files.write([failed(cell("add", "fs"), "why")])
    document = json.loads(files.cells.read_text())
    document["parameters"] |= change
    files.cells.write_text(json.dumps(document))
    if change == {"crew": {"size": 1}}:
        assert read_results(files.combined)[0].cell.parameters.crew == CrewShape(1)
    else:
        with pytest.raises(UserError, match=r"cannot read .*out\.cells\.jsonl"):
            read_results(files.combined)
