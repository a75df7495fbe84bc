"""Clients on the hosts of a cluster: enough room for them, and the same software as here."""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from zodbshootout.client.distributions import installed_versions
from zodbshootout.crews.cluster import Cluster, addresses
from zodbshootout.errors import UserError
from zodbshootout.scheduling.plan import Plan, Sweep
from zodbshootout.servers.dask import ROOM


def check_alike(cluster: Cluster | None, plan: Plan) -> None:
    """Compare the Python and the packages of the contenders on the hosts of a cluster with ours.

    :raises UserError: if a host has something else
    """
    if cluster is None:
        return
    modules = {module for each in plan.contenders for module in each.info.modules}
    names = distributions_of(modules)
    here = versions(names)
    try:
        with cluster.client() as client:
            there = addresses(client)
            answers = client.run(versions, names, on_error="return")
            # The scheduler unpickles the tasks of the workers.
            scheduler = _or_error(client.run_on_scheduler, versions, names)
    except OSError as error:
        raise UserError(f"--hosts: {cluster.scheduler} does not answer any more: {error}") from None
    check_versions(f"the scheduler at {cluster.scheduler}", scheduler, here)
    for worker in cluster.workers:
        gone = OSError("it has left the cluster")
        check_versions(str(worker), answers.get(there.get(worker.name, ""), gone), here)


def _or_error(run: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return run(*arguments)
    except Exception as error:  # noqa: BLE001 - it is reported
        return error


def check_versions(
    host: str, there: Mapping[str, str] | Exception, here: Mapping[str, str]
) -> None:
    """Check that the versions on a *host*, or its error, are those on this one.

    :raises UserError: if they are not
    """
    if isinstance(there, ImportError):
        raise UserError(f"--hosts: {host} cannot run zodbshootout: {there}; install it there")
    if isinstance(there, Exception):
        raise UserError(f"--hosts: {host}: {there}")
    for name, version in here.items():
        if there.get(name) != version:
            raise UserError(
                f"--hosts: {host} has {name} {there.get(name, 'not installed')}, and this "
                f"host has {version}; install the same there"
            )


def distributions_of(modules: Iterable[str]) -> list[str]:
    """Return the names of the distributions of some *modules*, except this program's."""
    known = packages_distributions()
    packages = {module.partition(".")[0] for module in modules} | {"ZODB", "persistent", "BTrees"}
    distributions = {name for package in packages for name in known.get(package, ())}
    return sorted(distributions - {"zodbshootout"}, key=str.lower)


def versions(names: Sequence[str]) -> dict[str, str]:
    """Return the versions that all hosts must have: of Python, of this program, of distributions.

    That of this program is a digest of its modules: it may be a checkout, or have been sent.
    """
    ours = {"Python": platform.python_version(), "zodbshootout": f"of digest {_digest()}"}
    return {**ours, **installed_versions(names)}


@functools.cache
def _digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def on_hosts(sweep: Sweep, cluster: Cluster | None) -> Sweep:
    """Return a sweep whose clients live on the hosts of a cluster, if there is one.

    :raises UserError: if there is no room for them
    """
    if cluster is None:
        return sweep
    most = max(sweep.concurrency)
    if cluster.room is not None and most > cluster.room:
        raise UserError(
            f"-c {most}: the Dask workers have room for {cluster.room} clients, as their "
            f"resource {ROOM!r} says"
        )
    crew = replace(sweep.base.crew, hosts=len(cluster.workers))
    return replace(sweep, base=replace(sweep.base, crew=crew))
