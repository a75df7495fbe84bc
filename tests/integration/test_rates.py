"""Measure real storages at rates, within latency limits and with several values of a setting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.command import (
    QUICK,
    cells,
    left_behind,
    processes_in,
    run,
    start,
    wait_until,
)
from tests.integration.sections import ZEO_SERVER, contender, filestorage, zeo
from zodbshootout.model.quantities import shown
from zodbshootout.results.files import read_results
from zodbshootout.results.result import CellResult

CONFIGURATION = (
    f"%define cache 1MB\n{ZEO_SERVER}{contender('zeo', zeo('cache-size $cache'))}"
    f"{contender('filestorage', filestorage('$scratch/own.fs'))}"
)
ONCE = ("-p", "1", "-n", "1")


@pytest.fixture(autouse=True)
def _configuration(place: Path) -> None:
    (place / "x.conf").write_text(CONFIGURATION)


def check_paced(result: CellResult) -> None:
    """Check that clients have begun 50 iterations a second."""
    metadata = result.metadata
    assert metadata["rate"] == 50
    assert metadata["iterations"] == 300
    assert metadata["iterations_uncounted"] >= 75
    assert [one.name for one in shown(result.cell.parameters, result.facts)] == [
        "reached", "p50", "p99", "max",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [(), ("--gevent",), ("--hosts", "local:2")])
def test_clients_of_any_kind_run_at_a_rate_unless_it_is_impossible(
    place: Path, kind: tuple[str, ...]
) -> None:
    words = ("hot", "--only", "zeo", "-c", "2", *kind, "--object-counts", "2")
    done = run(place, "x.conf", *words, "--rate", "50,1e9", *ONCE, "-o", "a.json")
    assert done.status == 0, done.err
    paced, refused = sorted(read_results(place / "a.json"), key=lambda cell: len(cell.reason))
    check_paced(paced)
    assert "clients cannot begin 1000000000 iterations a second on this machine" in refused.reason
    assert left_behind(place) == []


def test_threads_of_contenders_at_the_same_rate_are_compared_by_latency(place: Path) -> None:
    file = "a.json"
    words = ("hot", "--threads", "-c", "2", "--object-counts", "2", "--rate", "50")
    done = run(place, "x.conf", *words, *ONCE, "-o", file)
    assert done.status == 0, done.err
    assert "hot 50/s reached" in done.out
    for result in read_results(place / file):
        check_paced(result)
    compared = run(place, "compare", file, "--contender", "zeo", "filestorage")
    assert "hot 50/s p50" in compared.out
    assert "hot 50/s p99" in compared.out


def test_a_search_finds_the_highest_rate_within_a_limit(place: Path) -> None:
    words = ("hot", "--only", "zeo", "-c", "2", "--object-counts", "2", *ONCE, "--min-time", "0.1")
    done = run(place, "x.conf", *words, "--latency-limit", "p50=1s", "-o", "a.json")
    assert done.status == 0, done.err
    (result,) = read_results(place / "a.json")
    assert result.metadata["latency_limit"] == "p50=1000ms"
    assert result.metadata["part_of_schedule"] >= 0.9
    assert "Iterations per second with p50 within 1000 ms" in done.out


def test_a_replay_can_run_at_a_rate(place: Path) -> None:
    words = ("--only", "zeo", "-c", "2", "--workload", "sessions", "--rate", "100", *ONCE)
    done = run(place, "x.conf", *words, "-o", "a.json")
    assert done.status == 0, done.err
    (result,) = read_results(place / "a.json")
    assert result.latencies_of().get_total_count() == result.metadata["iterations"] == 300
    assert "replay 100/s reached" in done.out


def test_each_value_of_a_setting_is_measured_with_a_server_of_its_own(place: Path) -> None:
    file = "a.json"
    words = ("cold", "--threads", "-c", "2", *QUICK)
    servers: set[int] = set()

    def has_ended() -> bool:
        commands = processes_in(place).items()
        servers.update(number for number, command in commands if "ZEO.runzeo" in command)
        return process.poll() is not None

    with start(place, "x.conf", *words, "--define", "cache=1MB,10MB", "-o", file) as process:
        wait_until(has_ended)
        _, err = process.communicate()
    assert process.returncode == 0, err
    assert len(servers) == 2
    names = ["zeo [cache=1MB]", "zeo [cache=10MB]", "filestorage"]
    results = {result.cell.title: result for result in read_results(place / file)}
    assert list(results) == names
    assert [dict(results[name].cell.variant) for name in names] == [
        {"cache": "1MB"}, {"cache": "10MB"}, {},
    ]  # fmt: skip
    settings = [json.loads(results[name].metadata["settings"]) for name in names[:2]]
    assert [facts["storage"]["cache_size"] for facts in settings] == [str(2**20), str(10 * 2**20)]
    compared = run(place, "compare", file, "--define", "cache")
    assert "cache=10MB and cache=1MB" in compared.out
    assert len(cells(place / "a.cells.jsonl")) == 3
    assert left_behind(place) == []
    again = run(place, "x.conf", *words, "--define", "cache=1MB,10MB", "--append", file)
    assert again.status == 0, again.err
    assert all(len(result.runs) == 2 for result in read_results(place / file))
    refused = run(place, "x.conf", *words, "--define", "cach=1MB,10MB")
    assert refused.status == 2
    assert "nothing in" in refused.err
    assert "did you mean cache?" in refused.err


def test_benchmarks_whose_clients_wait_for_each_other_have_no_rate(place: Path) -> None:
    words = ("--only", "zeo", "-c", "2", "--object-counts", "2", "--rate", "50")
    listed = run(place, "x.conf", *words, "--list")
    assert listed.status == 0, listed.err
    assert "warm has no rate with processes: its clients wait for each other" in listed.out
    refused = run(place, "x.conf", "update", "warm", *words)
    assert refused.status == 2
    assert refused.complaint.endswith("before they go on; leave it out: -warm")
