"""Relays that are killed, and runs that end while a relay is at work."""

from __future__ import annotations

import signal
from pathlib import Path

import pyperf
import pytest

from tests.clusters import dask_cluster
from tests.faults.disks import small_disk
from tests.faults.runs import check_failed, faulty, measure, outcomes
from tests.integration.command import QUICK, left_behind, processes_in, run, start, wait_until

ZEO = "<zeoclient>\nserver ${}\n</zeoclient>\n"
DATA = "<filestorage>\npath $scratch/{}.fs\n</filestorage>"
SERVERS = "".join(
    f"<zeoserver {name}>\nrtt 1ms\n{DATA.format(name)}\n</zeoserver>\n" for name in ("one", "two")
)
FAR = f"<zodb far>\n{ZEO.format('one')}</zodb>\n"
LONG = ("x.conf", "add", "-c", "2", "--object-counts", "20", "-p", "20")


def relays_in(place: Path) -> list[str]:
    return [words for words in processes_in(place).values() if "relay.py" in words]


@pytest.mark.parametrize("crew", [(), ("--threads", "unique")], ids=["process", "thread"])
def test_a_killed_relay_fails_its_cell_and_no_other(crew: tuple[str, ...], tmp_path: Path) -> None:
    bad = faulty("bad", "kill-relay", ZEO.format("two"))
    done = measure(tmp_path, SERVERS + FAR + bad, *crew)
    check_failed(done, tmp_path, "the relay between clients and servers has ended")
    assert outcomes(tmp_path).keys() == {
        f"{name} {benchmark}" for name in ("good", "far", "bad") for benchmark in ("add", "cold")
    }


def test_a_port_that_nobody_listens_on_fails_its_cells(tmp_path: Path) -> None:
    bad = "<zodb bad>\n<zeoclient>\nserver localhost:1\n</zeoclient>\n</zodb>\n"
    done = measure(tmp_path, SERVERS + FAR + bad)
    check_failed(done, tmp_path, "no ZEO server at localhost:1", failed=("bad add", "bad cold"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_relay_is_left_if_the_command_is_ended(number: int, tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(SERVERS + FAR)
    with start(tmp_path, *LONG, "-o", "a.json") as process:
        wait_until(lambda: (tmp_path / "a.json").exists() and bool(relays_in(tmp_path)))
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == (-number if number == signal.SIGKILL else 130)
    wait_until(lambda: left_behind(tmp_path) == [])


def test_no_relay_is_left_on_hosts_if_the_command_is_killed(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(SERVERS + FAR)
    with dask_cluster(tmp_path, {"alpha": (), "beta": ()}) as cluster:
        words = (*LONG, "--hosts", cluster.address, "-o", "a.json")
        with start(tmp_path, *words) as process:
            wait_until(
                lambda: sum("relay.py" in " ".join(c.cmdline()) for c in cluster.clients()) > 1
            )
            process.kill()
            process.communicate(timeout=60)
        wait_until(lambda: not cluster.clients())
        wait_until(lambda: list((tmp_path / "tmp").iterdir()) == [])


@pytest.mark.servers("root")
def test_no_relay_is_left_if_the_disk_fills_up(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(SERVERS + FAR)
    with small_disk(tmp_path, "36k") as disk:
        words = ("x.conf", "add", "-c", "1", *QUICK, "-p", "20")
        done = run(tmp_path, *words, "-o", str(disk / "a.json"))
        assert done.status == 3
        assert "No space left on device" in done.err
        assert "Traceback" not in done.out + done.err
        assert pyperf.BenchmarkSuite.load(str(disk / "a.json")).get_benchmarks()[0].get_runs()
    assert left_behind(tmp_path) == []
