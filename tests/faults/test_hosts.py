"""Lost hosts, a killed scheduler, an unreachable storage, and clocks that differ."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pyperf
import pytest

from tests.clusters import DaskCluster, dask_cluster
from tests.faults.runs import faulty, outcomes
from tests.integration.command import Done, left_behind, processes_in, run, start, wait_until

SQLITE = """<relstorage>
    keep-history false
    <sqlite3>
        data-dir $scratch/{}
    </sqlite3>
</relstorage>
"""
IMPORTS = "%import relstorage\n%import faulty\n"
GOOD = f"<zodb good>\n{SQLITE.format('good')}</zodb>\n"
WORDS = ("-c", "2", "--object-counts", "5", "-p", "1", "-n", "2", "-l", "50")
OFFSET = 1000
"""Seconds by which the clock of a host is ahead."""
TWO = {"alpha": (), "beta": ()}
shares_two_hosts = pytest.mark.xdist_group("two hosts that survive")


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """A cluster for faults that leave its processes alone."""
    with dask_cluster(tmp_path_factory.mktemp("cluster"), TWO) as cluster:
        yield cluster


def measure(place: Path, text: str, cluster: DaskCluster) -> Done:
    """Measure ``add`` and ``cold`` with a client on each of two hosts."""
    (place / "x.conf").write_text(IMPORTS + text)
    common = ("x.conf", "add", "cold", *WORDS, "--timeout", "60", "-o", "a.json")
    return run(place, *common, "--hosts", cluster.address)


def bad(fault: str, **keys: str) -> str:
    return faulty("bad", fault, SQLITE.format("bad"), **keys)


def left_in(place: Path) -> list[str]:
    """Return the processes of the command in *place*."""
    return [words for words in processes_in(place).values() if "distributed.cli" not in words]


def check_gone(cluster: DaskCluster, place: Path) -> None:
    """Check that no client is left, and no process or temporary file of the command."""
    wait_until(lambda: not cluster.clients())
    wait_until(lambda: not left_in(place))  # a host's guardian ends after the host's clients
    assert list((place / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("during", "causes"),
    [
        # The contender is retried alone; by then the scheduler may know that the worker is gone.
        ("open", ("has left the cluster", "was lost: ")),
        ("run", ("was lost: ",)),
        ("prepare", ("was lost: ",)),
    ],
    ids=["before the start", "in a slice", "between slices"],
)
def test_a_lost_host_fails_the_cell_and_the_next(
    during: str, causes: tuple[str, ...], tmp_path: Path
) -> None:
    with dask_cluster(tmp_path, TWO) as cluster:
        done = measure(tmp_path, bad("kill-dask-worker", during=during), cluster)
        assert done.status == 3, done.out + done.err
        assert "Traceback" not in done.out + done.err
        state, reason = outcomes(tmp_path)["bad add"]
        assert state == "failed"
        assert reason.startswith(tuple(f"host alpha (127.0.0.1) {cause}" for cause in causes))
        assert reason in done.out
        assert outcomes(tmp_path)["bad cold"] == (
            "failed",
            "host alpha (127.0.0.1) has left the cluster",
        )
        assert cluster.workers["beta"].poll() is None
        check_gone(cluster, tmp_path)


def test_a_killed_scheduler_fails_the_cell_and_the_next(tmp_path: Path) -> None:
    with dask_cluster(tmp_path, TWO) as cluster:
        done = measure(tmp_path, bad("kill-dask-scheduler", during="run"), cluster)
        assert done.status == 3, done.out + done.err
        assert "Traceback" not in done.out + done.err
        states = outcomes(tmp_path)
        assert states["bad add"][0] == "failed"
        assert "was lost: " in states["bad add"][1]
        assert states["bad cold"] == (
            "failed",
            f"the cluster's scheduler at {cluster.address} does not answer",
        )
        check_gone(cluster, tmp_path)


@shares_two_hosts
def test_a_host_that_cannot_reach_the_storage_is_named(
    tmp_path: Path, two_hosts: DaskCluster
) -> None:
    done = measure(tmp_path, GOOD + bad("raise-on-host", during="open"), two_hosts)
    assert done.status == 3, done.out + done.err
    failed = ("failed", "host alpha (127.0.0.1): StorageError: no route to the database")
    assert outcomes(tmp_path) == {
        "good add": ("measured", ""),
        "bad add": failed,
        "good cold": ("measured", ""),
        "bad cold": failed,
    }
    assert failed[1] in done.out
    check_gone(two_hosts, tmp_path)


@shares_two_hosts
def test_no_client_keeps_running_after_an_interrupt(tmp_path: Path, two_hosts: DaskCluster) -> None:
    hung = tmp_path / "hung"
    (tmp_path / "x.conf").write_text(IMPORTS + bad("hang", during="run", once=str(hung)))
    words = ("x.conf", "add", *WORDS, "-o", "a.json", "--hosts", two_hosts.address)
    with start(tmp_path, *words) as process:
        wait_until(hung.exists)  # the clients are in the middle of a slice
        assert len(two_hosts.clients()) >= 2 + 2
        process.send_signal(signal.SIGINT)
        wait_until(lambda: not two_hosts.clients())
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    check_gone(two_hosts, tmp_path)


@pytest.mark.servers("root")
def test_clocks_that_differ_between_hosts_do_not_distort_times(tmp_path: Path) -> None:
    ahead = ("unshare", "--fork", "--kill-child", "--time", "--monotonic", str(OFFSET))
    with dask_cluster(tmp_path, {"alpha": (), "beta": ahead}) as cluster:
        done = measure(tmp_path, GOOD, cluster)
        assert done.status == 0, done.out + done.err
        for run in (
            pyperf.BenchmarkSuite.load(str(tmp_path / "a.json")).get_benchmarks()[0].get_runs()
        ):
            metadata = run.get_metadata()
            assert metadata["start_spread_s"] < OFFSET / 10
            assert metadata["on_clock_s"] < OFFSET * len(run.values)
            assert 0 < metadata["clock_uncertainty_s"] < OFFSET / 10
        check_gone(cluster, tmp_path)
    assert left_behind(tmp_path) == []
