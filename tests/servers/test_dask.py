"""The cluster that ``--hosts`` selects, and the conditions that it must meet."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from tests.clusters import dask_cluster
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian
from zodbshootout.servers import dask as clusters
from zodbshootout.servers.dask import cluster_for

NO_GUARDIAN: Guardian = mock.Mock(spec=Guardian)

shares_scheduler = pytest.mark.xdist_group("a scheduler")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("cluster")
    with dask_cluster(place, {"alpha": (), "beta": ()}) as cluster:
        yield cluster.address


def complaint(hosts: str, place: Path) -> str:
    with pytest.raises(UserError) as error, cluster_for(hosts, NO_GUARDIAN, place):
        pass
    message = str(error.value)
    assert len(message.splitlines()) == 1
    return message


def test_there_is_no_cluster_if_no_hosts_are_given(tmp_path: Path) -> None:
    with cluster_for(None, NO_GUARDIAN, tmp_path) as cluster:
        assert cluster is None


@pytest.mark.servers
@shares_scheduler
def test_a_running_scheduler_reports_its_workers(scheduler: str, tmp_path: Path) -> None:
    with cluster_for(scheduler, NO_GUARDIAN, tmp_path) as cluster:
        assert cluster is not None
        assert cluster.scheduler == scheduler
        assert len(cluster.workers) == 2


@pytest.mark.servers
@shares_scheduler
@pytest.mark.parametrize(
    "text", ["scheduler-address: {}\n", '{{"type": "Scheduler", "address": "{}"}}']
)
def test_a_file_of_dask_names_a_scheduler(text: str, scheduler: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text.format(scheduler))
    with cluster_for(str(path), NO_GUARDIAN, tmp_path) as cluster:
        assert cluster is not None
        assert cluster.scheduler == scheduler


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "contains no keys and values"),
        ("a: [\n", "cluster.yaml:2: expected the node content, but found '<stream end>'"),
        ("a: \x00\n", "cannot read"),
        ("on: x\n", "the key True must be a string; quote it"),
        ("a: b\n", "names no scheduler; write a line such as scheduler-address: tcp://"),
        ("scheduler-address: 3\n", "names no scheduler"),
    ],
)
def test_a_file_that_describes_no_cluster_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    assert message in complaint(str(path), tmp_path)


@pytest.mark.slow
def test_hosts_that_name_no_cluster_are_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "'nowhere' is neither local:N, nor a scheduler such as" in complaint("nowhere", tmp_path)
    for digits in ("0", "1001", "9" * 5000):
        message = complaint(f"local:{digits}", tmp_path)
        assert message == f"--hosts: local:{digits}: write a number from 1 to 1000"
    monkeypatch.setattr(clusters, "CONNECT_TIMEOUT", 0.5)
    message = complaint("tcp://127.0.0.1:1", tmp_path)
    assert message.startswith("--hosts: no cluster with a worker at tcp://127.0.0.1:1: ")
    assert message.endswith("start it: dask scheduler, and dask worker tcp://127.0.0.1:1")


def test_a_missing_dask_is_reported_with_the_command_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert complaint("local:2", tmp_path).endswith("install them: pip install distributed trustme")
