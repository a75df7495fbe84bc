"""Run clients on the workers of a real Dask cluster on this host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.clusters import DaskCluster, dask_cluster
from tests.commands import outcome
from tests.integration.command import (
    Done,
    cells,
    left_behind,
    metadata_of,
    run,
    shown_table,
    wait_until,
)
from tests.integration.sections import RELSTORAGE, SQLITE, ZEO_SERVER, contender, zeo
from zodbshootout.guardian import Guardian
from zodbshootout.servers.address import certificates
from zodbshootout.servers.dask import cluster_for

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "hosts"

CONFIGURATION = f"{ZEO_SERVER}{contender('zeo', zeo(), 'cache-size 5000')}"
BRIEF = ("--object-counts", "5", "-p", "1", "-n", "1", "--min-time", "0.5")
"""A slice has to take ten times as long as the clocks of hosts are uncertain, and clients late."""
shares_two_hosts = pytest.mark.xdist_group("a cluster of two hosts")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "x.conf").write_text(CONFIGURATION)
    return tmp_path


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """A cluster shared by several runs."""
    with dask_cluster(tmp_path_factory.mktemp("cluster"), {"alpha": (), "beta": ()}) as cluster:
        yield cluster


def check_fills_the_table(home: Path, hosts: str, *words: str) -> Done:
    """Check that three clients on two hosts measure ``cold`` and every other requested cell."""
    done = run(home, "x.conf", "cold", *words, "-c", "3", *BRIEF, "--hosts", hosts, "-o", "a.json")
    assert done.status == 0, done.err + done.out
    assert "on 2 hosts" in done.out
    assert {state for state, _ in cells(home / "a.cells.jsonl").values()} == {"measured"}
    metadata = metadata_of(home / "a.d" / "zeo.json", "cold")
    assert (metadata["clients"], metadata["hosts"]) == (3, 2)
    assert left_behind(home) == []
    return done


def test_clients_on_local_hosts_fill_the_table(home: Path) -> None:
    done = check_fills_the_table(home, "local:2", "conflicts", "--log", "INFO")
    assert "distributed.scheduler - INFO" in done.err
    assert done.out.startswith(shown_table(home, "a.json"))


@shares_two_hosts
def test_clients_on_hosts_of_a_running_cluster_fill_the_table(
    home: Path, two_hosts: DaskCluster
) -> None:
    check_fills_the_table(home, two_hosts.address, "--threads", "shared")
    metadata = metadata_of(home / "a.d" / "zeo.json", "cold")
    assert metadata["host_1"] == "beta (127.0.0.1)"
    wait_until(lambda: not two_hosts.clients(), seconds=5)
    assert {process.poll() for process in two_hosts.workers.values()} == {None}


@shares_two_hosts
def test_each_host_has_a_relay_of_its_own(home: Path, two_hosts: DaskCluster) -> None:
    words = ("update", "-c", "2", *BRIEF, "--hosts", two_hosts.address, "--rtt", "5ms")
    done = run(home, "x.conf", *words, "-o", "a.json")
    assert done.status == 0, done.err + done.out
    metadata = metadata_of(home / "a.d" / "zeo%20%5B5ms%5D.json", "update")
    assert metadata["rtt_s"] == 0.005
    assert metadata["rtt_delivered_s"] > 0.0045
    trips = set(metadata["trips"].split())
    assert trips == {"2"}  # by one client on this host
    assert metadata["latency_p50_s"] > 2 * 0.0045
    wait_until(lambda: not two_hosts.clients(), seconds=5)
    assert left_behind(home) == []


@shares_two_hosts
def test_the_metadata_of_greenlets_on_hosts_name_a_gevent_driver(
    home: Path, two_hosts: DaskCluster
) -> None:
    drivers = {"any": "", "named": "driver gevent sqlite3\n"}
    text = "".join(
        contender(name, SQLITE.replace("data-dir $scratch/", f"{driver}data-dir $scratch/{name}-"))
        for name, driver in drivers.items()
    )
    (home / "x.conf").write_text(f"{RELSTORAGE}{text}")
    words = ("x.conf", "add", "--gevent", *BRIEF, "--hosts", two_hosts.address, "-o", "a.json")
    done = run(home, *words)
    assert done.status == 0, done.err + done.out
    for name in drivers:
        assert metadata_of(home / "a.d" / f"{name}.json", "add")["driver"] == "gevent sqlite3"


def test_a_local_cluster_refuses_a_client_with_other_certificates(tmp_path: Path) -> None:
    with Guardian() as guardian, cluster_for("local:1", guardian, tmp_path) as cluster:
        assert cluster is not None
        issued = certificates(tmp_path / "others")
        cluster.security.tls_client_cert = issued["certificate"]
        cluster.security.tls_client_key = issued["key"]
        with pytest.raises(OSError, match="tls:"), cluster.client(timeout=2):
            pass


def test_a_scheduler_that_requires_certificates_gets_those_in_the_file(home: Path) -> None:
    issued = certificates(home / "certificates")
    tls = ("ca-file", "authority"), ("cert", "certificate"), ("key", "key")
    options = [f"--tls-{name}={issued[part]}" for name, part in tls]
    configuration = yaml.safe_load((EXAMPLES / "tls.yaml").read_text())
    files = configuration["distributed"]["comm"]["tls"]
    files["ca-file"] = issued["authority"]
    files["client"] = {"cert": issued["certificate"], "key": issued["key"]}
    with dask_cluster(home, {"alpha": ()}, ["--protocol", "tls", *options], files) as cluster:
        configuration["scheduler-address"] = cluster.address
        (home / "cluster.yaml").write_text(yaml.safe_dump(configuration))
        done = run(
            home, "x.conf", "add", "-c", "2", *BRIEF, "--hosts", "cluster.yaml", "-o", "a.json"
        )
        assert done.status == 0, done.err + done.out
        done = run(home, "x.conf", "add", "--hosts", cluster.address)
        assert done.status == 2
        assert "no cluster with a worker at" in done.complaint


def test_clients_run_on_a_dask_worker_with_a_nanny_and_without_a_name(home: Path) -> None:
    with dask_cluster(home, {"_": ()}, worker_options=["--nanny"]) as cluster:
        words = ("x.conf", "add", "-c", "2", *BRIEF, "--hosts", cluster.address)
        done = run(home, *words, "-o", "a.json")
        assert done.status == 0, done.err + done.out


@pytest.mark.parametrize(
    ("hosts", "words", "message"),
    [
        *(
            ("local:2", words, f"{words[0]} applies to this host only; leave it out with --hosts")
            for words in (
                ("--profile", "prof"), ("--affinity", "0"), ("--against", "ZODB==6.4"),
                ("--hook", "pystats"),
            )
        ),
        ("clusters.yaml", (), "--hosts: 'clusters.yaml' is neither local:N"),
    ],
)  # fmt: skip
def test_bad_use_of_hosts_is_refused_before_anything_is_started(
    hosts: str, words: tuple[str, ...], message: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    status, _, err = outcome("x.conf", "add", *words, "--hosts", hosts)
    assert status == 2
    assert message in err
