"""Checks that the hosts of a cluster can run the clients."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import packages_distributions
from pathlib import Path

from zodbshootout.crews.cluster import Cluster, addresses
from zodbshootout.errors import UserError
from zodbshootout.model.parameters import CLIENTS
from zodbshootout.scheduling.plan import Plan, Sweep
from zodbshootout.servers.dask import ROOM
from zodbshootout.versions import installed_versions


def check_hosts(cluster: Cluster, plan: Plan) -> None:
    """Check that all hosts have the same versions of Python and of packages as this host.

    All hosts also have to be able to read the workload file of a replay.

    :raises UserError: if a host differs or has left the cluster
    """
    paths = sorted({cell.parameters.workload.path for cell in plan.cells} - {""})
    modules = {module for contender in plan.contenders for module in contender.info.modules}
    names = distributions_of(modules)
    here = versions(names)
    try:
        with cluster.client() as client:
            there = addresses(client)
            answers = client.run(versions, names, on_error="return")
            missing = client.run(missing_files, paths, on_error="return") if paths else {}
            try:  # the scheduler unpickles the workers' tasks, so it needs the modules as well
                scheduler = client.run_on_scheduler(versions, names)
            except Exception as error:  # noqa: BLE001 - the check reports all errors
                scheduler = error
    except OSError as error:
        raise UserError(f"--hosts: {cluster.scheduler} no longer answers: {error}") from None
    check_versions(f"the scheduler at {cluster.scheduler}", scheduler, here)
    for worker in cluster.workers:
        gone = OSError("it has left the cluster")
        address = there.get(worker.name, "")
        check_versions(str(worker), answers.get(address, gone), here)
        if missing.get(address):
            raise UserError(
                f"--workload: {worker} cannot read {paths[0]}: the hosts need a common file "
                "system; set the environment variable TMPDIR to a directory in it"
            )


def check_versions(
    host: str, there: Mapping[str, str] | Exception, here: Mapping[str, str]
) -> None:
    """Check that the versions *there*, on a *host*, equal those *here*.

    :raises UserError: if they differ, or if *there* is an error of the host
    """
    if isinstance(there, ImportError):
        raise UserError(f"--hosts: {host} cannot run zodbshootout: {there}; install it there")
    if isinstance(there, Exception):
        raise UserError(f"--hosts: {host}: {there}")
    for name, version in here.items():
        if there.get(name) != version:
            raise UserError(
                f"--hosts: {host} has {name} {there.get(name, 'not installed')}, but this "
                f"host has {version}; install the same there"
            )


def missing_files(paths: Sequence[str]) -> list[str]:
    """Return the files that this host cannot read."""
    return [path for path in paths if not os.access(path, os.R_OK)]


def distributions_of(modules: Iterable[str]) -> list[str]:
    """Return the distributions, except zodbshootout, that contain *modules* or ZODB's packages."""
    known = packages_distributions()
    packages = {module.partition(".")[0] for module in modules} | {"ZODB", "persistent", "BTrees"}
    distributions = {name for package in packages for name in known.get(package, ())}
    return sorted(distributions - {"zodbshootout"}, key=str.lower)


def versions(names: Sequence[str]) -> dict[str, str]:
    """Return the versions of Python, zodbshootout and *names*, which hosts must have in common.

    A digest of the modules stands for the version of zodbshootout, which may be a checkout.
    """
    ours = {"Python": platform.python_version(), "zodbshootout": f"of digest {_digest()}"}
    return {**ours, **installed_versions(names)}


@functools.cache
def _digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def on_hosts(sweep: Sweep, cluster: Cluster) -> Sweep:
    """Return the sweep with its clients on the hosts of a cluster.

    :raises UserError: if the hosts have no room for the clients
    """
    most = max(sweep.values[CLIENTS])
    if cluster.room is not None and most > cluster.room:
        raise UserError(
            f"-c {most}: the Dask workers have room for {cluster.room} clients, according to their "
            f"resource {ROOM!r}"
        )
    crew = replace(sweep.base.crew, hosts=len(cluster.workers))
    return replace(sweep, base=replace(sweep.base, crew=crew))
