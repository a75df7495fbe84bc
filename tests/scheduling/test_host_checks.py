"""Contenders with clients on other hosts, and the versions that must match on these hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.runs import contender, sweep_of
from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.crews.cluster import Cluster, DaskWorker
from zodbshootout.errors import UserError
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    Parameters,
    ReplayedWorkload,
    Storage,
)
from zodbshootout.model.storage_facts import Limit, Sharing, StorageInfo
from zodbshootout.scheduling import host_checks
from zodbshootout.scheduling.calibration import Effort
from zodbshootout.scheduling.host_checks import on_hosts
from zodbshootout.scheduling.plan import make_plan
from zodbshootout.servers import address
from zodbshootout.servers.address import given_names

WORKERS = (DaskWorker("one", "tcp://10.0.0.1:2"), DaskWorker("two", "tcp://10.0.0.2:3"))
HERE = Cluster("tcp://10.0.0.1:1", WORKERS, here=True, together=2)
ELSEWHERE = Cluster("tcp://10.0.0.1:1", WORKERS, here=False)


def test_a_host_with_different_versions_is_refused_by_name() -> None:
    versions = {"Python": "3.11.7", "ZODB": "6.4"}
    host_checks.check_versions("a", versions, versions)
    with pytest.raises(UserError) as error:
        host_checks.check_versions("b", {"Python": "3.11.7", "ZODB": "6.3"}, versions)
    assert str(error.value) == (
        "--hosts: b has ZODB 6.3, but this host has 6.4; install the same there"
    )
    with pytest.raises(UserError, match="b has ZODB not installed"):
        host_checks.check_versions("b", {"Python": "3.11.7"}, versions)
    with pytest.raises(UserError, match="b cannot run zodbshootout: No module named 'zodb"):
        host_checks.check_versions(
            "b", ModuleNotFoundError("No module named 'zodbshootout'"), versions
        )


class FakeCluster(Cluster):
    """A cluster of two hosts of which the second one lacks some files."""

    missing: Sequence[str] = ()

    @contextmanager
    def client(self, timeout: float = 0.0) -> Iterator[Any]:
        yield self

    def scheduler_info(self, **_: Any) -> dict[str, Any]:
        return {"workers": {worker.address: {"name": worker.name} for worker in self.workers}}

    def run(self, function: Callable[..., Any], argument: Any, **_: Any) -> dict[str, Any]:
        answers = {worker.address: function(argument) for worker in self.workers}
        if function is host_checks.missing_files:
            answers[self.workers[1].address] += self.missing
        return answers

    def run_on_scheduler(self, function: Callable[..., Any], argument: Any) -> Any:
        return function(argument)


@pytest.mark.slow
def test_a_host_that_cannot_read_the_trace_of_a_workload_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "workload.trace"
    trace.touch()
    cluster = FakeCluster("tcp://10.0.0.1:1", WORKERS, here=False)
    workload = ReplayedWorkload("w", path=str(trace))
    for parameters in (Parameters(CrewShape(1)), Parameters(CrewShape(1), workload=workload)):
        sweep = sweep_of(parameters)
        plan = make_plan([contender("x")], ["replay"], sweep, Effort(1, 1, 0, 1, 0.1))
        host_checks.check_hosts(cluster, plan)
    object.__setattr__(cluster, "missing", [str(trace)])
    with pytest.raises(UserError) as error:
        host_checks.check_hosts(cluster, plan)
    assert str(error.value) == (
        f"--workload: two (10.0.0.2) cannot read {trace}: the hosts need a common file system; "
        "set the environment variable TMPDIR to a directory in it"
    )


@pytest.mark.slow
def test_compared_versions_include_imported_distributions_and_a_digest() -> None:
    distributions = host_checks.distributions_of(
        ["relstorage.adapters.sqlite", "zodbshootout.scheduling.host_checks", "json"]
    )
    assert "RelStorage" in distributions
    assert "ZODB" in distributions
    assert "zodbshootout" not in distributions
    here = host_checks.versions(distributions)
    assert here["RelStorage"][0].isdigit()
    assert here["zodbshootout"].startswith("of digest ")


def test_a_crew_has_as_many_hosts_as_the_cluster_has_workers() -> None:
    sweep = sweep_of(Parameters(CrewShape(1, ClientKind.THREAD)), [8])
    (parameters,) = on_hosts(sweep, HERE).parameters()
    assert parameters.crew == CrewShape(8, ClientKind.THREAD, hosts=2)
    assert str(parameters.crew) == "8 threads with a DB each on 2 hosts"
    assert parameters.crew.code == "threads-unique-8-hosts-2"


ZEO = """
<zeoserver main>
    {}
    <filestorage>
        path $scratch/main.fs
    </filestorage>
</zeoserver>
<zodb zeo>
    <zeoclient>
        server $main
    </zeoclient>
</zodb>
"""
POSTGRESQL = """
%import relstorage
<postgresqlserver pg>
    {}
</postgresqlserver>
<zodb postgresql>
    <relstorage>
        {}
        <postgresql>
            dsn host=$pg_host port=$pg_port
        </postgresql>
    </relstorage>
</zodb>
"""
EXTERNAL = """
<externalserver db>
    address {}
</externalserver>
<zodb zeo>
    <zeoclient>
        server $db
    </zeoclient>
</zodb>
"""
LISTEN = "listen 203.0.113.1"
SHARED = "use --threads shared, or -c 1"
EXCLUSIVE = f"FileStorage: only one DB at a time can open it; leave out --hosts, and {SHARED}"


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (ZEO.format(""), "server main is reachable from this host only; see listen"),
        (
            ZEO.format("listen 127.0.0.2"),
            "server main is reachable from this host only; see listen",
        ),
        (ZEO.format(LISTEN), None),
        (EXTERNAL.format("localhost:1"), "server db is reachable from this host only; see address"),
        (
            EXTERNAL.format("/run/zeo.sock"),
            "server db is reachable from this host only; see address",
        ),
        (EXTERNAL.format("203.0.113.1:1"), None),
        (POSTGRESQL.format("", ""), "server pg is reachable from this host only; see listen"),
        (POSTGRESQL.format(LISTEN, "cache-local-dir $scratch/cache"), None),
        (
            POSTGRESQL.format(LISTEN, "blob-dir $scratch/blobs\nshared-blob-dir true"),
            "$scratch/blobs exists on this host only; leave out --hosts",
        ),
        (POSTGRESQL.format(LISTEN, "blob-dir $scratch/blobs\nshared-blob-dir false"), None),
        (
            "<zodburi two>\nuri sqlite://?data_dir=$scratch/two\n</zodburi>\n",
            "sqlite://?data_dir=$scratch/two exists on this host only; leave out --hosts",
        ),
        (
            "<zodburi two>\nuri demo:(file:///tmp/x.fs)/(memory://)\n</zodburi>\n",
            "demo:(file:///tmp/x.fs)/(memory://) exists on this host only; leave out --hosts",
        ),
        ("<zodburi two>\nuri mysql://u@h/x\n</zodburi>\n", None),
        (
            "<zodb fs>\n<filestorage>\npath /var/x.fs\n</filestorage>\n</zodb>\n",
            EXCLUSIVE,
        ),
    ],
)
@pytest.mark.parametrize("cluster", [HERE, ELSEWHERE])
def test_a_contender_that_other_hosts_cannot_reach_is_refused(
    text: str,
    refusal: str | None,
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(address, "reserved_port", lambda _: nullcontext(4321))
    source = Source(tmp_path / "x.conf", text)
    with given_names(source, tmp_path) as names:
        (contender,) = contenders_of(parse(source, names))
    if refusal == EXCLUSIVE:
        contender = contender.opened(StorageInfo("FileStorage", Sharing.EXCLUSIVE))
    elif cluster is HERE:
        refusal = None
    assert contender.on_hosts(cluster).refusal(Parameters(CrewShape(4, hosts=2))) == refusal


ONE_DB = StorageInfo(limits=(Limit("one DB at a time", databases=2),))


@pytest.mark.parametrize(
    ("together", "shape", "refused"),
    [
        (1, CrewShape(2, hosts=2), False),
        (2, CrewShape(2, hosts=2), True),
        (2, CrewShape(1, hosts=2), False),
        (1, CrewShape(4, ClientKind.THREAD, shared=True, hosts=2), False),
        (2, CrewShape(4, ClientKind.THREAD, shared=True, hosts=2), True),
        (1, CrewShape(3, hosts=2), True),
    ],
)
def test_hosts_on_one_machine_share_its_files(
    together: int, shape: CrewShape, refused: bool
) -> None:
    cluster = Cluster("", WORKERS, here=False, together=together)
    opened = Contender("zeo", Storage()).on_hosts(cluster).opened(ONE_DB)
    assert (opened.refusal(Parameters(shape)) == "one DB at a time") == refused
