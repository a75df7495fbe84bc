"""Measure real storages with every kind of concurrency."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cache as cached
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import pyperf
import pytest

from tests.integration.command import (
    OBJECTS,
    QUICK,
    Cells,
    Done,
    cells,
    left_behind,
    metadata_of,
    names_in,
    pyperf_output,
    run,
    shown_table,
)
from zodbshootout.cli.main import main
from zodbshootout.client.benchmarks import benchmarks

SEVEN = {"add", "update", "warm", "cold", "prefetch_cold", "hot", "steamin"}
ALL = ("all", "--object-counts", "2", "-p", "1", "-n", "1", "-l", "4", "-o", "a.json")
VALUES, WARMUPS, LOOPS = 3, 2, 8
SOME = (
    "--object-counts", str(OBJECTS), "-p", "1", "-n", str(VALUES), "-w", str(WARMUPS),
    "-l", str(LOOPS), "-o", "a.json",
)  # fmt: skip
FEW = ("add", "cold", "hot", "conflicts", *SOME)
Unsupported = set[str | tuple[str, str]]
"""Contenders and cells that are not supported."""
SHARED_ONLY: Unsupported = {"memory", "filestorage"}
ALONE: Unsupported = {("memory", "warm")}
CREWS: dict[str, tuple[tuple[str, ...], Unsupported]] = {
    "1 client": (("-c", "1", *SOME), ALONE),
    # It alone counts no traffic, which the threads do for the same cells.
    "processes": (("-c", "2", *ALL, "--debug-single-value"), SHARED_ONLY),
    "threads": (("-c", "2", "--threads", *ALL), {"open", "open_cold"}),
    "threads with a DB each": (("-c", "2", "--threads", "unique", *FEW), SHARED_ONLY),
    "greenlets": (("-c", "2", "--gevent", *FEW), set()),
    "greenlets with a DB each": (
        ("-c", "2", "--gevent", "--threads", "unique", *FEW), SHARED_ONLY | {"zeo"},
    ),
}  # fmt: skip
"""The options of a run of the embedded default, and its unsupported contenders and cells."""


def in_one_process(crew: str) -> Any:
    """Return a parameter whose tests run in one pytest-xdist process, because they share a run."""
    return pytest.param(crew, marks=pytest.mark.xdist_group(crew))


shares_one_client_run = pytest.mark.xdist_group("1 client")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Done]]:
    """Runs of the embedded default, each started when a test first needs it."""

    @cached
    def run_of(crew: str) -> tuple[Path, Done]:
        place = tmp_path_factory.mktemp("crew")
        return place, run(place, *CREWS[crew][0])

    return run_of


@pytest.fixture(scope="module")
def run_without_options(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A run of two benchmarks without ``-c`` and ``-o``."""
    place = tmp_path_factory.mktemp("without")
    return place, run(place, "hot", "steamin", *QUICK, HOME=str(place))


def check_states(states: Cells, unsupported: Unsupported) -> None:
    """Check which cells are measured, and that the others give a reason."""
    refused = unsupported | {
        ("memory", "prefetch_cold"),
        ("filestorage", "prefetch_cold"),
        ("sqlite", "readCurrent_conflicts"),
        *(("sqlite", name) for name in ("undo", "history", "load_before")),
        *(("memory", name) for name in ("undo", "open", "open_cold")),
        *((name, "open_cold") for name in ("zeo", "sqlite")),
    }
    for cell, (state, reason) in states.items():
        expected = bool({cell, *cell} & refused)
        assert state == ("not supported" if expected else "measured"), (cell, reason)
        assert bool(reason) == expected


@pytest.mark.parametrize("crew", [in_one_process(crew) for crew in CREWS])
def test_every_supported_cell_of_the_embedded_default_is_measured(
    crew: str, runs: Callable[[str], tuple[Path, Done]]
) -> None:
    place, done = runs(crew)
    assert done.status == 0, done.out + done.err
    states = cells(place / "a.cells.jsonl")
    words = CREWS[crew][0]
    every = {name for name, benchmark in benchmarks().items() if not benchmark.traits.alone}
    every.remove("replay")
    expected = every if "all" in words else every.intersection(words) or SEVEN
    assert {benchmark for _, benchmark in states} == expected
    check_states(states, CREWS[crew][1])
    assert left_behind(place) == []


@shares_one_client_run
def test_results_without_o_go_to_the_users_data_and_their_path_is_printed(
    run_without_options: tuple[Path, Done],
) -> None:
    place, done = run_without_options
    assert done.status == 0, done.out + done.err
    path = results_path(done)
    assert path.is_relative_to(place)
    states = cells(path.with_suffix(".cells.jsonl"))
    assert {benchmark for _, benchmark in states} == {"hot", "steamin"}
    check_states(states, ALONE)
    assert f"memory: steamin {OBJECTS}x300B processes-1" in names_in(path)


def results_path(done: Done) -> Path:
    """Return the path that a run has printed for its results."""
    (line,) = [line for line in done.out.splitlines() if line.startswith("Results: ")]
    return Path(line.removeprefix("Results: ").partition(", and")[0])


def test_conflicts_are_counted_as_retries_or_resolutions(tmp_path: Path) -> None:
    done = run(tmp_path, "conflicts", "-c", "4", "--threads", "--object-counts", "100", "-l", "20",
               "-p", "1", "-n", "1", "-o", "a.json")  # fmt: skip
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


@shares_one_client_run
def test_pyperf_can_compare_and_show_the_result_files(
    runs: Callable[[str], tuple[Path, Done]], run_without_options: tuple[Path, Done]
) -> None:
    place, done = runs("1 client")
    assert "Results: a.json, and by contender in a.d/" in done.out
    assert names_in(place / "a.d" / "zeo.json") == SEVEN
    measured = [cell for cell, (state, _) in cells(place / "a.cells.jsonl").items()
                if state == "measured"]  # fmt: skip
    assert len(names_in(place / "a.json")) == len(measured)
    other = str(results_path(run_without_options[1]))
    assert "Benchmark" in pyperf_output(place, "compare_to", "--table", "a.json", other, "-v")
    between = pyperf_output(place, "compare_to", "a.d/memory.json", "a.d/zeo.json", "-v")
    assert "Mean +- std dev: [memory]" in between
    for command in ("show", "stats", "hist", "check", "dump", "metadata"):
        assert pyperf_output(place, command, "a.json")


def test_trap_10_every_run_keeps_its_parameters_and_versions_as_metadata(tmp_path: Path) -> None:
    done = run(tmp_path, "cold", "-c", "2", "--threads", "-s", "128", "--btrees", *QUICK,
               "--only", "sqlite", "--only", "zeo", "--log", "INFO", "-o", "a.json")  # fmt: skip
    assert done.status == 0
    for contender, cache in (("sqlite", "RelStorage cache"), ("zeo", "ZEO client cache")):
        metadata = metadata_of(tmp_path / "a.d" / f"{contender}.json", "cold")
        expected = {
            "benchmark": "cold",
            "contender": contender,
            "benchmark_counted": "objects",
            "clients": 2,
            "client_kind": "thread",
            "shared_db": True,
            "objects": OBJECTS,
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
            "settings", "configuration_hash", "storage_classes", "version_ZODB",
        ):  # fmt: skip
            assert key in metadata
        assert str(tmp_path) not in str(metadata["settings"])
    # The storages log, too.
    assert " INFO [" in done.err
    assert "ZEO" in done.err


@shares_one_client_run
def test_trap_3_cold_reads_hit_no_cache_and_hot_reads_do(
    runs: Callable[[str], tuple[Path, Done]],
) -> None:
    place, _ = runs("1 client")
    for contender in ("zeo", "sqlite"):
        path = place / "a.d" / f"{contender}.json"
        cold, hot = (metadata_of(path, name) for name in ("cold", "hot"))
        assert cold["storage_cache_hits"] == 0
        assert int(str(cold["loads"])) == VALUES * LOOPS * (OBJECTS + 1)
        assert int(str(hot["storage_cache_hits"])) >= VALUES * LOOPS * OBJECTS


def stored_runs(place: Path) -> dict[tuple[str, str], pyperf.Run]:
    """Return the only run of each cell, by contender and benchmark."""
    return {
        (path.stem, benchmark.get_name()): pyperf_run
        for path in (place / "a.d").iterdir()
        for benchmark in pyperf.BenchmarkSuite.load(str(path)).get_benchmarks()
        for pyperf_run in benchmark.get_runs()
    }


@pytest.mark.parametrize(
    ("crew", "clients"),
    [
        pytest.param(*pair, marks=pytest.mark.xdist_group(pair[0]))
        for pair in (("1 client", 1), ("threads", 2), ("threads with a DB each", 2))
    ],
)
def test_stored_values_agree_with_the_metadata_of_the_clients(
    crew: str, clients: int, runs: Callable[[str], tuple[Path, Done]]
) -> None:
    words = CREWS[crew][0]
    values, loops = (int(words[words.index(option) + 1]) for option in ("-n", "-l"))
    compared = {"add", "steamin", "cold", "hot", "conflicts"}
    stored = {cell: one for cell, one in stored_runs(runs(crew)[0]).items() if cell[1] in compared}
    assert stored
    for cell, pyperf_run in stored.items():
        metadata = pyperf_run.get_metadata()
        assert metadata["clients"] == clients
        own = [metadata[f"client_{client}_s"] for client in range(1, clients + 1)]
        assert f"client_{clients + 1}_s" not in metadata
        assert len(pyperf_run.values) == values, cell
        assert metadata["loops"] == loops
        on_clock, total = metadata["on_clock_s"], sum(pyperf_run.values)
        if clients == 1:
            mean = clients / sum(1 / one for one in own if one)
            assert fmean(pyperf_run.values) == pytest.approx(mean, rel=1e-6), cell
            assert on_clock == pytest.approx(total * loops, rel=1e-6), cell
        else:
            # The clients ran for that long, most of them to the end.
            assert total < on_clock < 1000 * total * loops, cell
        assert metadata["latency_max_s"] <= on_clock
        if clients == 1:  # a value of several includes the wait of the one that starts last
            # Pauses between short iterations are part of the value, but not of a latency.
            assert metadata["latency_max_s"] >= min(pyperf_run.values) * 0.1, cell


def numbers(text: Any) -> list[float]:
    return [float(word) for word in str(text).split()]


@shares_one_client_run
def test_warm_ups_stay_out_of_the_summaries(runs: Callable[[str], tuple[Path, Done]]) -> None:
    stored = stored_runs(runs("1 client")[0])
    for cell in product(("memory", "filestorage", "zeo", "sqlite"), ("add", "cold", "hot")):
        metadata = stored[cell].get_metadata()
        assert len(stored[cell].warmups) == WARMUPS
        slices = numbers(metadata["slices"])
        assert slices == [WARMUPS + number for number in range(VALUES)], cell
        starts = numbers(metadata["slice_starts_s"])
        assert starts == sorted(set(starts))
        assert len(starts) == VALUES
        assert metadata["iterations"] == VALUES * LOOPS, cell
        assert metadata["iterations_uncounted"] == 0
        if cell[1] in {"cold", "hot"}:
            assert metadata["loads"] == VALUES * LOOPS * (OBJECTS + 1), cell


@shares_one_client_run
def test_every_contender_runs_a_slice_before_any_runs_the_next(
    runs: Callable[[str], tuple[Path, Done]],
) -> None:
    stored = stored_runs(runs("1 client")[0])
    added = [one.get_metadata() for (_, name), one in stored.items() if name == "add"]
    assert len(added) >= 3
    assert len({metadata["slices"] for metadata in added}) == 1
    starts = [numbers(metadata["slice_starts_s"]) for metadata in added]
    for number in range(VALUES - 1):
        assert max(seconds[number] for seconds in starts) < min(
            seconds[number + 1] for seconds in starts
        )


APPENDING = ("steamin", *QUICK, "--only", "memory", "--append", "a.json")


@pytest.fixture(scope="module")
def appended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of two runs; the second appends to the results of the first."""
    place = tmp_path_factory.mktemp("appended")
    for number in range(2):
        done = run(place, *APPENDING)
        assert done.status == 0
        (place / f"{number}.txt").write_text(done.out)
    return place


@pytest.mark.xdist_group("appended")
def test_append_adds_a_run_to_each_result_file(appended: Path) -> None:
    assert "Number of run with values: 2" in pyperf_output(appended, "stats", "a.json")
    assert "Number of run with values: 2" in pyperf_output(appended, "stats", "a.d/memory.json")
    (listed,) = map(json.loads, (appended / "a.cells.jsonl").read_text().splitlines())
    assert listed["state"] == "measured"


@pytest.mark.xdist_group("appended")
def test_a_run_that_appends_prints_what_the_file_then_holds(appended: Path) -> None:
    whole = run(appended, "show", "a.json").out.partition("\nNext:")[0]
    first, second = ((appended / f"{number}.txt").read_text() for number in range(2))
    assert whole in second
    assert whole not in first


@pytest.mark.xdist_group("appended")
def test_appending_other_parameters_under_the_same_name_is_refused(appended: Path) -> None:
    before = (appended / "a.json").read_bytes()
    done = run(appended, *APPENDING, "-s", "128")
    assert done.status == 2
    assert done.complaint == (
        "zodbshootout: --append: memory: steamin was measured with object_size_bytes=300, "
        "record_size_bytes=300; name another file"
    )
    assert (appended / "a.json").read_bytes() == before


def test_each_cell_of_a_sweep_has_its_own_name(tmp_path: Path) -> None:
    done = run(tmp_path, "hot", "-c", "1,2", "--threads", "--object-counts", "2",
               "--object-counts", "3", "-s", "128,300", "-p", "1", "-n", "1",
               "--min-time", "0.001", "--only", "memory", "-o", "a.json")  # fmt: skip
    assert done.status == 0
    assert names_in(tmp_path / "a.d" / "memory.json") == {
        f"hot c={c} n={n} s={s}" for c in (1, 2) for n in (2, 3) for s in (128, 300)
    }
    assert done.out.count("Objects per second") == 4


def test_pyperfs_options_reach_the_workers(tmp_path: Path) -> None:
    done = run(tmp_path, "steamin", "--threads", "--only", "memory", "--object-counts", "5",
               "-p", "2", "-n", "4", "-w", "1", "-l", "3", "--stats", "--hist", "--dump",
               "--metadata", "-v", "-o", "a.json", PYTHONHASHSEED="5", MINE="x")  # fmt: skip
    assert done.status == 0
    assert "steamin: run 2 of 2: memory" in done.err
    statistics = pyperf_output(tmp_path, "stats", "a.json")
    assert "Number of run with values: 2" in statistics
    assert "Number of warmup per run: 1" in statistics
    assert "Number of value per run: 4" in statistics
    assert "Loop iterations per value: 3" in statistics
    assert "Total duration" in done.out
    assert "Run 1: 1 warmup, 4 values, 3 loops" in done.out
    metadata = metadata_of(tmp_path / "a.d" / "memory.json", "steamin")
    assert metadata["python_hash_seed"] == 5


def test_tracemalloc_measures_memory_instead_of_time(tmp_path: Path) -> None:
    done = run(tmp_path, "steamin", "--only", "memory", "--threads", *QUICK, "--tracemalloc",
               "-o", "a.json")  # fmt: skip
    assert done.status == 0
    assert "Memory of a worker" in done.out


def test_listing_measures_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "--list", "-c", "2")
    assert done.status == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert ["Benchmark", "filestorage", "zeo", "sqlite", "memory"] in lines
    assert ["hot", "n/a", "[1]", "yes", "yes", "n/a", "[2]"] in lines
    assert "[1] filestorage, every benchmark: not supported: FileStorage: only one DB" in done.out
    assert "14 cells, measured until all are known within 5 %, at most 1.9 minutes" in done.out
    assert list(tmp_path.rglob("*.json*")) == []
    assert left_behind(tmp_path) == []


def test_the_default_pickle_cache_suffices_for_all_benchmarks_next_to_the_floor(
    tmp_path: Path,
) -> None:
    (tmp_path / "x.conf").write_text(
        "<zodb fs>\n<filestorage>\npath $scratch/x.fs\n</filestorage>\n</zodb>\n"
    )
    done = run(tmp_path, "--include-mapping", "x.conf", "--threads", "--object-counts", "1000",
               "-p", "1", "-n", "1", "--min-time", "0.001", "-o", "a.json")  # fmt: skip
    assert done.status == 0, done.err
    assert names_in(tmp_path / "a.d" / "fs.json") == SEVEN - {"prefetch_cold"}
    assert {path.stem for path in (tmp_path / "a.d").iterdir()} == {"fs", "mapping"}


def test_a_database_outside_scratch_is_kept_and_reused(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(
        "<zodb fs>\n<filestorage>\npath kept.fs\n</filestorage>\n</zodb>\n"
    )
    words = ("x.conf", "cold", "-c", "1", *QUICK, "-o")
    assert run(tmp_path, *words, "a.json").status == 0
    size = (tmp_path / "kept.fs").stat().st_size
    assert size > 0
    assert run(tmp_path, *words, "b.json").status == 0
    assert (tmp_path / "kept.fs").stat().st_size == size


def test_contenders_that_share_a_database_are_measured_in_turn(tmp_path: Path) -> None:
    client = "<zeoclient>\nserver $main\n</zeoclient>\n</zodb>\n"
    (tmp_path / "x.conf").write_text(
        "<zeoserver main>\n<filestorage>\npath $scratch/x.fs\n</filestorage>\n</zeoserver>\n"
        f"<zodb one>\n{client}<zodb other>\n{client}"
    )
    names = ("add", "update", "cold", "conflicts", "conflicts_map", "readCurrent_conflicts")
    done = run(tmp_path, "x.conf", *names, "-c", "2", *QUICK, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    states = cells(tmp_path / "a.cells.jsonl")
    assert states == {
        (name, benchmark): ("measured", "") for name in ("one", "other") for benchmark in names
    }
    starts = [
        metadata_of(tmp_path / "a.d" / f"{name}.json", "update")["slices"]
        for name in ("one", "other")
    ]
    assert starts == ["0 1", "0 1"]


def test_show_prints_the_table_of_a_run_again_byte_for_byte(tmp_path: Path) -> None:
    words = ("warm", "tpc", "-c", "1", "--only", "memory", "--only", "sqlite",
             "--object-counts", "5,6", "-p", "2", "-n", "2", "--min-time", "0.001", "-q",
             "-o", "a.json")  # fmt: skip
    done = run(tmp_path, *words)
    assert done.status == 0, done.err
    table, _, last = done.out.rpartition("Results: ")
    assert last.startswith("a.json")
    assert table
    assert shown_table(tmp_path, "a.json") == table
    for name in ("csv", "json", "markdown"):
        out = io.StringIO()
        arguments = ("show", str(tmp_path / "a.json"), "--format", name, "--unit", "p99")
        assert (main(arguments, out, out), bool(out.getvalue())) == (0, True)


def test_a_run_ends_when_its_figures_are_precise_or_its_time_is_up(tmp_path: Path) -> None:
    words = (
        "hot", "steamin", "--only", "filestorage", "--object-counts", "5",
        "-n", "2", "--min-time", "0.001",
    )  # fmt: skip
    done = run(tmp_path, *words, "--precision", "500%", "--at-most", "5", "-o", "known.json")
    assert done.status == 0
    assert "~" not in done.out
    known = pyperf.BenchmarkSuite.load(str(tmp_path / "known.json"))
    assert [len(benchmark.get_runs()) for benchmark in known] == [8, 8]
    done = run(tmp_path, *words, "--precision", "0.001%", "--at-most", "0.1", "-o", "late.json")
    assert done.status == 0
    assert done.out.count("~") == 3  # two figures, and the line that explains the mark
    assert "~ imprecise: 2 of 2 figures (±0.001% wanted)" in done.out
    missed = pyperf.BenchmarkSuite.load(str(tmp_path / "late.json"))
    counts = [len(benchmark.get_runs()) for benchmark in missed]
    assert min(counts) >= 1
    assert done.out.startswith(shown_table(tmp_path, "late.json"))
