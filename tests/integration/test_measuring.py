"""The command on real storages, in every kind of concurrency."""

from __future__ import annotations

import json
from pathlib import Path

import pyperf
import pytest

from tests.integration.command import (
    QUICK,
    cells,
    left_behind,
    metadata_of,
    names_in,
    pyperf_says,
    run,
)
from zodbshootout.client.benchmarks import benchmarks

SEVEN = {"add", "update", "warm", "cold", "prefetch_cold", "hot", "steamin"}


@pytest.mark.parametrize(
    ("words", "unsupported"),
    [
        (["-c", "1"], {("memory", "warm")}),
        (["-c", "2"], {"memory", "filestorage"}),
        (["-c", "4", "--threads"], set()),
        (["-c", "2", "--threads", "unique"], {"memory", "filestorage"}),
        (["-c", "2", "--gevent"], set()),
        (["-c", "2", "--gevent", "--threads", "unique"], {"memory", "filestorage", "zeo"}),
        ([], {("memory", "warm")}),
    ],
)
def test_every_supported_cell_of_the_embedded_default_is_measured(
    words: list[str], unsupported: set[str | tuple[str, str]], tmp_path: Path
) -> None:
    done = run(tmp_path, *words, *QUICK, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    refused = unsupported | {("memory", "prefetch_cold"), ("filestorage", "prefetch_cold")}
    for (contender, benchmark), (state, reason) in cells(tmp_path / "a.cells.jsonl").items():
        expected = {contender, (contender, benchmark)} & refused
        assert state == ("not supported" if expected else "measured"), (
            contender,
            benchmark,
            reason,
        )
        assert bool(reason) == bool(expected)
    assert left_behind(tmp_path) == []


TEN = [name for name in benchmarks() if name not in SEVEN]


@pytest.mark.parametrize(
    ("words", "unsupported"),
    [
        (["--threads", "shared", "-c", "2"], set()),
        (["-c", "2"], {"memory", "filestorage"}),
        (["-c", "2", "--gevent"], set()),
    ],
)
def test_every_cell_of_the_other_benchmarks_is_measured_or_not_supported(
    words: list[str], unsupported: set[str], tmp_path: Path
) -> None:
    done = run(tmp_path, *TEN, *words, "--object-counts", "20", "-p", "1", "-n", "2", "-l", "4",
               "-o", "a.json")  # fmt: skip
    assert done.status == 0, done.out + done.err
    found = cells(tmp_path / "a.cells.jsonl")
    assert {benchmark for _, benchmark in found} == set(TEN)
    for (contender, benchmark), (state, reason) in found.items():
        flawed = (contender, benchmark) == ("sqlite", "readCurrent_conflicts")
        expected = "not supported" if flawed or contender in unsupported else "measured"
        assert (state, bool(reason)) == (expected, expected == "not supported"), reason
    assert left_behind(tmp_path) == []


def test_conflicts_are_counted_with_what_became_of_them(tmp_path: Path) -> None:
    done = run(tmp_path, "conflicts", "-c", "4", "--threads", "--object-counts", "100", "-l", "30",
               "-p", "1", "-n", "2", "-o", "a.json")  # fmt: skip
    assert done.status == 0, done.out + done.err
    counts = {
        contender: metadata_of(tmp_path / "a.d" / f"{contender}.json", "conflicts")
        for contender in ("memory", "filestorage", "zeo", "sqlite")
    }
    for metadata in counts.values():
        retries, resolutions = int(str(metadata["retries"])), int(str(metadata["resolutions"]))
        assert int(str(metadata["conflicts"])) == retries + resolutions > 0
        assert metadata["work_per_iteration"] == 50
    assert counts["memory"]["resolutions"] == 0
    assert counts["memory"]["retries"] != 0
    assert counts["filestorage"]["resolutions"] != 0


def test_the_results_are_files_that_pyperf_compares(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        done = run(tmp_path, "add", "cold", "-c", "2", "--threads", *QUICK, "-o", name)
        assert done.status == 0
        assert f"Results: {name}, and by contender in {name[0]}.d/" in done.out
    assert names_in(tmp_path / "a.d" / "zeo.json") == {"add", "cold"}
    assert len(names_in(tmp_path / "a.json")) == 8
    assert "Benchmark" in pyperf_says(tmp_path, "compare_to", "--table", "a.json", "b.json", "-v")
    between = pyperf_says(tmp_path, "compare_to", "a.d/memory.json", "a.d/zeo.json", "-v")
    assert "Mean +- std dev: [memory]" in between
    for command in ("show", "stats", "hist", "check", "dump", "metadata"):
        assert pyperf_says(tmp_path, command, "a.json")


def test_trap_10_every_run_keeps_what_it_was_measured_with(tmp_path: Path) -> None:
    done = run(tmp_path, "cold", "-c", "2", "--threads", "-s", "128", "--btrees", *QUICK,
               "--only", "sqlite", "--only", "zeo", "-o", "a.json")  # fmt: skip
    assert done.status == 0
    for contender, cache in (("sqlite", "RelStorage cache"), ("zeo", "ZEO client cache")):
        metadata = metadata_of(tmp_path / "a.d" / f"{contender}.json", "cold")
        expected = {
            "benchmark": "cold",
            "contender": contender,
            "concurrency": 2,
            "crew": "2 threads sharing one DB",
            "objects": 20,
            "object_size_bytes": 128,
            "record_size_bytes": 128,
            "mapping": "IOBTree",
            "seed": 0,
            "cleared_caches": f"pickle cache, {cache}",
            "iterations_timed_together": 1,
        }
        assert {key: metadata[key] for key in expected} == expected
        for key in (
            "client_1_s", "client_2_s", "smallest_client_share", "pause_share", "latency_p50_s",
            "latency_p90_s", "latency_p99_s", "latency_max_s",
            "latency_histogram", "iterations", "iterations_uncounted", "on_clock_s", "slices",
            "slice_starts_s", "start_spread_s", "start_delay_s", "loads", "storage_cache_hits",
            "configuration", "configuration_hash", "storage_classes", "version_ZODB",
        ):  # fmt: skip
            assert key in metadata
        assert str(tmp_path) not in str(metadata["configuration"])


def test_trap_3_cold_reads_hit_no_cache_and_hot_reads_do(tmp_path: Path) -> None:
    done = run(tmp_path, "warm", "cold", "hot", "-c", "1", "--only", "zeo", "--only", "sqlite",
               "-l", "2", *QUICK, "-o", "a.json")  # fmt: skip
    assert done.status == 0
    iterations = 2 * 2
    for contender in ("zeo", "sqlite"):
        path = tmp_path / "a.d" / f"{contender}.json"
        # What is hit is the mapping, which a connection that gets it loads twice.
        assert int(str(metadata_of(path, "cold")["storage_cache_hits"])) <= iterations
        assert int(str(metadata_of(path, "hot")["storage_cache_hits"])) >= iterations * 20
        assert int(str(metadata_of(path, "cold")["loads"])) == iterations * 21


def test_without_o_results_go_to_the_users_data_and_the_path_is_told(tmp_path: Path) -> None:
    done = run(tmp_path, "steamin", *QUICK, "--only", "memory", HOME=str(tmp_path))
    assert done.status == 0
    (line,) = [line for line in done.out.splitlines() if line.startswith("Results: ")]
    path = Path(line.removeprefix("Results: ").partition(", and")[0])
    assert path.is_relative_to(tmp_path)
    assert names_in(path) == {"memory: steamin 20x300B processes-1"}


def test_appending(tmp_path: Path) -> None:
    words = ("steamin", *QUICK, "--only", "memory", "--append", "a.json")
    assert run(tmp_path, *words).status == 0
    assert run(tmp_path, *words).status == 0
    assert "Number of run with values: 2" in pyperf_says(tmp_path, "stats", "a.json")
    assert "Number of run with values: 2" in pyperf_says(tmp_path, "stats", "a.d/memory.json")
    (listed,) = map(json.loads, (tmp_path / "a.cells.jsonl").read_text().splitlines())
    assert (listed["state"], listed["runs"]) == ("measured", 2)


def test_appending_other_parameters_under_the_same_name_is_refused(tmp_path: Path) -> None:
    words = ("steamin", *QUICK, "--only", "memory", "--append", "a.json")
    assert run(tmp_path, *words).status == 0
    before = (tmp_path / "a.json").read_bytes()
    done = run(tmp_path, *words, "-s", "128")
    assert done.status == 2
    assert done.complaint == (
        "zodbshootout: --append: memory: steamin is there with object_size_bytes=300; "
        "name another file"
    )
    assert (tmp_path / "a.json").read_bytes() == before


def test_sweeps_make_cells_with_names_of_their_own(tmp_path: Path) -> None:
    done = run(tmp_path, "hot", "-c", "1,2", "--threads", "--object-counts", "5",
               "--object-counts", "10", "-s", "128,300", "-p", "1", "-n", "1",
               "--min-time", "0.001", "--only", "memory", "-o", "a.json")  # fmt: skip
    assert done.status == 0
    assert names_in(tmp_path / "a.d" / "memory.json") == {
        f"hot c={c} n={n} s={s}" for c in (1, 2) for n in (5, 10) for s in (128, 300)
    }
    assert done.out.count("Objects per second") == 4


def test_pyperfs_options_reach_the_workers(tmp_path: Path) -> None:
    done = run(tmp_path, "steamin", "--threads", "--only", "memory", "--object-counts", "20",
               "-p", "2", "-n", "4", "-w", "1", "-l", "3", "--stats", "--hist", "--dump",
               "--metadata", "-v", "-o", "a.json", PYTHONHASHSEED="5", MINE="x")  # fmt: skip
    assert done.status == 0
    assert "steamin: memory (run 2 of 2)" in done.err
    statistics = pyperf_says(tmp_path, "stats", "a.json")
    assert "Number of run with values: 2" in statistics
    assert "Number of warmup per run: 1" in statistics
    assert "Number of value per run: 4" in statistics
    assert "Loop iterations per value: 3" in statistics
    assert "Total duration" in done.out
    assert "Run 1: 1 warmup, 4 values, 3 loops" in done.out
    metadata = metadata_of(tmp_path / "a.d" / "memory.json", "steamin")
    assert metadata["python_hash_seed"] == 5


def test_memory_in_place_of_time(tmp_path: Path) -> None:
    done = run(tmp_path, "steamin", "--only", "memory", "--threads", *QUICK, "--tracemalloc",
               "-o", "a.json")  # fmt: skip
    assert done.status == 0
    assert "Memory of a worker" in done.out


def test_a_log_of_what_storages_do(tmp_path: Path) -> None:
    done = run(tmp_path, "steamin", "--only", "zeo", *QUICK, "--log", "INFO", "-o", "a.json")
    assert done.status == 0
    assert " INFO [" in done.err
    assert "ZEO" in done.err


def test_listing_measures_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "--list", "-c", "2")
    assert done.status == 0
    assert "Contenders: memory, filestorage, zeo, sqlite" in done.out
    assert "sqlite: hot, 2 processes, 1000 objects of 300 bytes" in done.out
    assert "filestorage: hot" in done.out
    assert "not supported: FileStorage: one DB at a time" in done.out
    assert "14 cells until all are known within 5 %, at most 1.9 minutes" in done.out
    assert not (tmp_path / "data").exists()
    assert left_behind(tmp_path) == []


def test_the_floor_can_be_added_to_any_configuration(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(
        "<zodb fs>\n<filestorage>\npath $scratch/x.fs\n</filestorage>\n</zodb>\n"
    )
    done = run(tmp_path, "--include-mapping", "x.conf", "hot", "-c1", *QUICK, "-o", "a.json")
    assert done.status == 0
    assert {path.stem for path in (tmp_path / "a.d").iterdir()} == {"fs", "mapping"}


def test_the_default_pickle_cache_size_is_enough_for_every_benchmark(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(
        "<zodb fs>\n<filestorage>\npath $scratch/x.fs\n</filestorage>\n</zodb>\n"
    )
    done = run(tmp_path, "x.conf", "--threads", "--object-counts", "1000", "-p", "1", "-n", "1",
               "--min-time", "0.001", "-o", "a.json")  # fmt: skip
    assert done.status == 0, done.err
    assert names_in(tmp_path / "a.d" / "fs.json") == SEVEN - {"prefetch_cold"}


def test_a_database_of_ones_own_is_kept_and_used_again(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(
        "<zodb fs>\n<filestorage>\npath kept.fs\n</filestorage>\n</zodb>\n"
    )
    for name in ("a.json", "b.json"):
        assert run(tmp_path, "x.conf", "cold", "-c1", *QUICK, "-o", name).status == 0
        size = (tmp_path / "kept.fs").stat().st_size
        assert run(tmp_path, "x.conf", "cold", "-c1", *QUICK, "-o", f"2{name}").status == 0
        assert (tmp_path / "kept.fs").stat().st_size == size


def test_contenders_that_are_one_database_are_measured_in_turn(tmp_path: Path) -> None:
    client = "<zeoclient>\nserver $main\n</zeoclient>\n</zodb>\n"
    (tmp_path / "x.conf").write_text(
        "<zeoserver main>\n<filestorage>\npath $scratch/x.fs\n</filestorage>\n</zeoserver>\n"
        f"<zodb one>\n{client}<zodb other>\n{client}"
    )
    names = ("add", "update", "cold", "conflicts", "conflicts_map", "readCurrent_conflicts")
    done = run(tmp_path, "x.conf", *names, "-c", "2", *QUICK, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    found = cells(tmp_path / "a.cells.jsonl")
    assert found == {(name, each): ("measured", "") for name in ("one", "other") for each in names}
    starts = [
        metadata_of(tmp_path / "a.d" / f"{name}.json", "update")["slices"]
        for name in ("one", "other")
    ]
    assert starts == ["0 1", "0 1"]


def test_what_a_run_has_printed_is_printed_again_byte_for_byte(tmp_path: Path) -> None:
    words = (
        "add",
        "warm",
        "cold",
        "tpc",
        "-c",
        "1",
        "--object-counts",
        "20,30",
        "-p",
        "2",
        "-n",
        "2",
    )
    done = run(tmp_path, *words, "--min-time", "0.001", "-q", "-o", "a.json")
    assert done.status == 0, done.err
    table, _, last = done.out.rpartition("Results: ")
    assert last.startswith("a.json")
    shown = run(tmp_path, "show", "a.json")
    assert (shown.status, shown.out) == (0, table)
    for name in ("csv", "json", "markdown", "rst"):
        assert run(tmp_path, "show", "a.json", "--format", name, "--unit", "p99").status == 0


def test_a_run_ends_when_its_figures_are_known_or_its_time_is_up(tmp_path: Path) -> None:
    words = ("hot", "steamin", "--only", "filestorage", "--object-counts", "20")
    done = run(tmp_path, *words, "--precision", "500%", "-o", "known.json")
    assert done.status == 0
    assert "missed" not in done.out
    known = pyperf.BenchmarkSuite.load(str(tmp_path / "known.json"))
    assert [len(each.get_runs()) for each in known] == [4, 4]
    done = run(tmp_path, *words, "--precision", "0.001%", "--at-most", "0.2", "-o", "late.json")
    assert done.status == 0
    assert done.out.count("missed") == 3  # two figures, and the line that explains the word
    assert "wider than the 0.001 % of --precision" in done.out
    missed = pyperf.BenchmarkSuite.load(str(tmp_path / "late.json"))
    counts = [len(each.get_runs()) for each in missed]
    assert min(counts) >= 1
    assert run(tmp_path, "show", "late.json").out in done.out
