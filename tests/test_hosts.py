"""``--hosts``: which cluster is meant, and what it has to be like."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from distributed import LocalCluster

from tests.runs import contender
from zodbshootout import hosts
from zodbshootout.arguments import UsageError
from zodbshootout.client.parameters import CrewShape, Parameters, Unit
from zodbshootout.crews.hosts import Cluster, Worker
from zodbshootout.guardian import Guardian
from zodbshootout.hosts import cluster_for, on_hosts, reachable
from zodbshootout.plan import Sweep

NO_GUARDIAN: Guardian = mock.Mock(spec=Guardian)
WORKERS = (Worker("one", "tcp://10.0.0.1:2"), Worker("two", "tcp://10.0.0.2:3"))
HERE = Cluster("tcp://10.0.0.1:1", WORKERS)
ELSEWHERE = Cluster("tcp://10.0.0.1:1", WORKERS, here=False)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    make: Any = LocalCluster
    with make(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local:
        yield local.scheduler_address


def complaint(where: str, place: Path) -> str:
    with pytest.raises(UsageError) as error, cluster_for(where, NO_GUARDIAN, place):
        pass
    return str(error.value)


def test_without_hosts_there_is_no_cluster(tmp_path: Path) -> None:
    with cluster_for(None, NO_GUARDIAN, tmp_path) as cluster:
        assert cluster is None


def test_a_scheduler_that_is_there_tells_its_workers(scheduler: str, tmp_path: Path) -> None:
    with cluster_for(scheduler, NO_GUARDIAN, tmp_path) as cluster:
        assert cluster is not None
        assert cluster.scheduler == scheduler
        assert len(cluster.workers) == 2


def test_a_file_can_name_a_scheduler_or_a_class_of_clusters(scheduler: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(f"scheduler-address: {scheduler}\n")
    with cluster_for(str(path), NO_GUARDIAN, tmp_path) as cluster:
        assert cluster is not None
        assert cluster.scheduler == scheduler
    path.write_text(
        "module: distributed\nclass: LocalCluster\n"
        'kwargs: {n_workers: 1, threads_per_worker: 1, dashboard_address: ":0"}\n'
    )
    with cluster_for(str(path), NO_GUARDIAN, tmp_path) as cluster:
        assert cluster is not None
        assert len(cluster.workers) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "has no keys and values"),
        ("a: [\n", "cluster.yaml:2: expected the node content, but found '<stream end>'"),
        ("a: b\n", "has neither scheduler-address nor a class of clusters"),
        ("class: Cluster\nmodule: nowhere\n", "no cluster could be made: ModuleNotFoundError"),
    ],
)
def test_a_file_that_describes_no_cluster(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    assert said in complaint(str(path), tmp_path)


def test_what_names_no_cluster_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "'nowhere' is neither local:N, nor a scheduler such as" in complaint("nowhere", tmp_path)
    monkeypatch.setattr(hosts, "PATIENCE", 0.5)
    said = complaint("tcp://127.0.0.1:1", tmp_path)
    assert said.startswith("--hosts: no cluster with a worker at tcp://127.0.0.1:1: ")
    assert said.endswith("start it: dask scheduler, and dask worker tcp://127.0.0.1:1")


def test_hosts_that_differ_are_named() -> None:
    versions = {"Python": "3.11.7", "ZODB": "6.4"}
    hosts.check_versions("a", versions, versions)
    with pytest.raises(UsageError) as error:
        hosts.check_versions("b", {"Python": "3.11.7", "ZODB": "6.3"}, versions)
    assert str(error.value) == (
        "--hosts: b has ZODB 6.3, and this host has 6.4; install the same there"
    )
    with pytest.raises(UsageError, match="b has ZODB not installed"):
        hosts.check_versions("b", {"Python": "3.11.7"}, versions)
    with pytest.raises(UsageError, match="b cannot run zodbshootout: No module named 'zodb"):
        hosts.check_versions("b", ModuleNotFoundError("No module named 'zodbshootout'"), versions)


def test_what_contenders_import_is_compared() -> None:
    found = hosts.distributions_of(["relstorage.adapters.sqlite", "zodbshootout.hosts", "json"])
    assert "RelStorage" in found
    assert "ZODB" in found
    assert "zodbshootout" not in found
    here = hosts.versions(found)
    assert here["RelStorage"][0].isdigit()
    assert here["zodbshootout"].startswith("of digest ")


def test_without_dask_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert complaint("local:2", tmp_path).endswith("install it: pip install distributed")


def test_clients_are_on_as_many_hosts_as_there_are_workers() -> None:
    sweep = Sweep([8], [10], [300], Parameters(CrewShape(1, Unit.THREAD)))
    assert on_hosts(sweep, None) is sweep
    (parameters,) = on_hosts(sweep, HERE).parameters()
    assert parameters.crew == CrewShape(8, Unit.THREAD, hosts=2)
    assert str(parameters.crew) == "8 threads with a DB each on 2 hosts"
    assert parameters.crew.code == "threads-unique-8-hosts-2"


def test_other_hosts_do_not_reach_what_is_on_this_one() -> None:
    on_scratch = contender("a", "$scratch/a.fs")
    served = replace(contender("b"), settings={"server": "$main"}, servers_here=("main",))
    remote = replace(contender("c"), settings={"dsn": "host=db.example.com"})
    found = [on_scratch, served, remote]
    parameters = Parameters(CrewShape(4, hosts=2))
    assert [each.refusal(parameters) for each in reachable(found, HERE)] == [None] * 3
    assert [each.refusal(parameters) for each in reachable(found, ELSEWHERE)] == [
        "only this host has $scratch/a.fs",
        "server main listens on this host alone; see listen",
        None,
    ]
