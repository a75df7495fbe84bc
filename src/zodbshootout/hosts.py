"""``--hosts``: the Dask cluster whose workers have the clients, there already or started here."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import ipaddress
import json
import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from zodbshootout.arguments import UsageError
from zodbshootout.client.distributions import installed_versions
from zodbshootout.contenders.contender import Contender, Limit
from zodbshootout.crews.hosts import Cluster, Worker
from zodbshootout.guardian import Guardian, end_group
from zodbshootout.plan import Plan, Sweep
from zodbshootout.servers.certificates import certificates

PATIENCE = 30.0
"""Seconds in which a cluster has to answer."""
ROOM = "clients"
"""The resource of a worker that says how many clients it may have."""
_LOCAL = re.compile(r"local:(\d+)")
_ADDRESS = re.compile(r"\w+://.+")


@contextmanager
def cluster_for(where: str | None, guardian: Guardian, directory: Path) -> Iterator[Cluster | None]:
    """Have the cluster that ``--hosts`` names; ``None`` where it names none.

    What is started here has its files in a *directory*.

    :raises UsageError: when there is no such cluster
    """
    if where is None:
        yield None
        return
    if importlib.util.find_spec("distributed") is None:
        raise UsageError(
            "--hosts needs distributed, which is in the extra hosts; install it: "
            "pip install distributed"
        )
    with ExitStack() as stack:
        yield _connected(_found(where, guardian, directory, stack))


@dataclass(frozen=True)
class _Found:
    """A scheduler."""

    address: str
    workers: int = 1
    """How many are waited for."""
    security: Any = None


def _found(where: str, guardian: Guardian, directory: Path, stack: ExitStack) -> _Found:
    """Return the scheduler that is meant, which may have to be started first.

    :raises UsageError: when none is
    """
    if local := _LOCAL.fullmatch(where):
        workers = int(local[1])
        if not workers:
            raise UsageError("--hosts: local:0 has no worker; write local:2 or more")
        return _local(workers, guardian, directory, stack)
    if _ADDRESS.fullmatch(where):
        return _Found(where)
    path = Path(where)
    if not path.is_file():
        raise UsageError(
            f"--hosts: {where!r} is neither local:N, nor a scheduler such as "
            "tcp://scheduler:8786, nor a file"
        )
    return _of_file(path, stack)


def _local(workers: int, guardian: Guardian, directory: Path, stack: ExitStack) -> _Found:
    """Start a scheduler and so many workers on this host, which *stack* ends.

    They run whatever they are told to, so nobody else on this host may talk to them.

    :raises UsageError: when the scheduler does not start
    """
    from distributed import Security

    told, log = directory / "scheduler.json", directory / "dask.log"
    made = certificates(directory / "certificates-dask")
    tls = {"ca-file": made["authority"], "cert": made["certificate"], "key": made["key"]}
    common = [
        "--protocol", "tls", *(f"--tls-{name}={path}" for name, path in tls.items()),
        "--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0",
        "--scheduler-file", str(told),
    ]  # fmt: skip
    output = stack.enter_context(log.open("wb"))

    def start(program: str, *words: str) -> subprocess.Popen[Any]:
        process = guardian.start(
            [sys.executable, "-m", f"distributed.cli.dask_{program}", *words, *common],
            env={**os.environ, "DASK_TEMPORARY_DIRECTORY": str(directory)},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        stack.callback(_end, process, guardian)
        return process

    scheduler = start("scheduler", "--port", "0")
    deadline = time.monotonic() + PATIENCE
    while not (address := _told_in(told)):
        if scheduler.poll() is not None or time.monotonic() > deadline:
            raise UsageError(f"--hosts: Dask's scheduler did not start: {_last_line(log)}")
        time.sleep(0.05)
    for number in range(workers):
        start("worker", "--nthreads", "1", "--no-nanny", "--name", f"local-{number + 1}")
    security: Any = Security  # it has no types
    private = security(
        require_encryption=True, tls_ca_file=tls["ca-file"],
        tls_client_cert=tls["cert"], tls_client_key=tls["key"],
    )  # fmt: skip
    return _Found(address, workers, private)


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "it logged nothing")


def _told_in(path: Path) -> str:
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError):
        return ""


def _end(process: subprocess.Popen[Any], guardian: Guardian) -> None:
    end_group(process.pid, reap=process.poll)
    process.wait()
    guardian.release_group(process.pid)


def _of_file(path: Path, stack: ExitStack) -> _Found:
    """Return the scheduler of a file in YAML.

    That is a configuration of Dask with ``scheduler-address``, or a cluster as dask-ctl describes
    one: ``module``, ``class``, and ``args`` and ``kwargs`` for it.

    :raises UsageError: when it is neither
    """
    import dask
    import yaml

    try:
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"--hosts: {path}{line}: {error.problem}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"--hosts: cannot read {path}: {error}") from None
    if not isinstance(told, Mapping):
        raise UsageError(f"--hosts: {path} has no keys and values")
    description = ("version", "module", "class", "args", "kwargs")
    configuration = {key: value for key, value in told.items() if key not in description}
    # It replaces what it is given, with all that is within.
    stack.enter_context(dask.config.set(dask.config.merge(dask.config.config, configuration)))
    if "class" in told:
        return _created(path, told, stack)
    address = dask.config.get("scheduler-address", None)
    if not address:
        raise UsageError(f"--hosts: {path} has neither scheduler-address nor a class of clusters")
    return _Found(str(address))


def _created(path: Path, told: Mapping[str, Any], stack: ExitStack) -> _Found:
    try:
        module = importlib.import_module(str(told.get("module", "distributed")))
        make = getattr(module, str(told["class"]))
        cluster = stack.enter_context(make(*told.get("args", ()), **told.get("kwargs", {})))
    except Exception as error:
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"--hosts: {path}: no cluster could be made: {cause}") from error
    workers = len(getattr(cluster, "worker_spec", ())) or told.get("kwargs", {}).get("n_workers", 1)
    return _Found(str(cluster.scheduler_address), workers, getattr(cluster, "security", None))


def _connected(found: _Found) -> Cluster:
    """Return the cluster when it has the workers that are waited for.

    :raises UsageError: when it has not
    """
    import dask

    reached = Cluster(found.address, (), configuration=dask.config.config, security=found.security)
    try:
        with reached.client(timeout=PATIENCE) as client:
            client.wait_for_workers(found.workers, timeout=PATIENCE + found.workers)
            _send_packages(client)
            workers = _workers(client.scheduler_info(n_workers=-1)["workers"])
    except (OSError, TimeoutError, TypeError, ValueError) as error:
        few = "a worker" if found.workers == 1 else f"{found.workers} workers"
        raise UsageError(
            f"--hosts: no cluster with {few} at {found.address}: "
            f"{' '.join(str(error).split())}; start it: dask scheduler, and dask worker "
            f"{found.address}"
        ) from None
    here = all(_is_here(worker.address) for worker in workers)
    return replace(reached, workers=workers, here=here)


def _workers(told: Mapping[str, Mapping[str, Any]]) -> list[Worker]:
    """Return the workers that a scheduler tells of, by their addresses.

    Where some say how many clients they may have, they are meant and no others.
    """
    found = [
        Worker(str(each["name"]), address, each.get("resources", {}).get(ROOM))
        for address, each in told.items()
    ]
    limited = [replace(each, room=int(each.room)) for each in found if each.room is not None]
    return sorted(limited or found, key=lambda each: (len(each.name), each.name))


def _send_packages(client: Any) -> None:
    """Have the workers install what Dask's configuration says that this program needs.

    :raises OSError: when it cannot be installed, or a directory is not there
    """
    import dask
    from distributed.diagnostics import plugin

    install: Any = plugin.PipInstall  # they have no types
    upload: Any = plugin.UploadDirectory
    requirements = dask.config.get("zodbshootout.pip-install", [])
    if requirements:
        client.register_plugin(install(list(requirements), restart_workers=True))
    for directory in dask.config.get("zodbshootout.upload-directories", []):
        client.register_plugin(upload(directory, restart_workers=True, update_path=True))


def _is_here(address: str) -> bool:
    """Say whether an address is one of this host's."""
    host = urlsplit(address).hostname or ""
    try:
        ip = ipaddress.ip_address(socket.gethostbyname(host))
    except (OSError, ValueError):
        return False
    addresses = (each.address for found in psutil.net_if_addrs().values() for each in found)
    return ip.is_loopback or str(ip) in addresses


def check_alike(cluster: Cluster | None, plan: Plan) -> None:
    """Check that every host has what this one has of Python and all that the contenders import.

    :raises UsageError: naming the first that has not
    """
    if cluster is None:
        return
    modules = {module for each in plan.contenders for module in each.facts.modules}
    names = distributions_of(modules)
    here = versions(names)
    addresses = [each.address for each in cluster.workers]
    with cluster.client() as client:
        found = client.run(versions, names, workers=addresses, on_error="return")
        # It unpickles what workers are to do.
        scheduler = _or_error(client.run_on_scheduler, versions, names)
    check_versions(f"the scheduler at {cluster.scheduler}", scheduler, here)
    for worker in cluster.workers:
        check_versions(str(worker), found[worker.address], here)


def _or_error(run: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return run(*arguments)
    except Exception as error:  # noqa: BLE001 - it is told of
        return error


def check_versions(
    host: str, there: Mapping[str, str] | Exception, here: Mapping[str, str]
) -> None:
    """Check that a *host* has what this one has.

    :raises UsageError: when it has not
    """
    if isinstance(there, Exception):
        raise UsageError(f"--hosts: {host} cannot run zodbshootout: {there}; install it there")
    for name, version in here.items():
        if there.get(name) != version:
            raise UsageError(
                f"--hosts: {host} has {name} {there.get(name, 'not installed')}, and this "
                f"host has {version}; install the same there"
            )


def distributions_of(modules: Iterable[str]) -> list[str]:
    """Return the names of the distributions that some *modules* are of, but for this program's."""
    known = packages_distributions()
    packages = {module.partition(".")[0] for module in modules} | {"ZODB", "persistent", "BTrees"}
    found = {name for package in packages for name in known.get(package, ())}
    return sorted(found - {"zodbshootout"}, key=str.lower)


def versions(names: Sequence[str]) -> dict[str, str]:
    """Return what all hosts need to have in common, of those distributions and of Python.

    This program is told by what is in its modules: it may be a checkout, or have been sent.
    """
    ours = {"Python": platform.python_version(), "zodbshootout": f"of digest {_digest()}"}
    return {**ours, **installed_versions(names)}


@functools.cache
def _digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def on_hosts(sweep: Sweep, cluster: Cluster | None) -> Sweep:
    """Return a sweep whose clients live on the hosts of a cluster, if there is one.

    :raises UsageError: when there is no room for them
    """
    if cluster is None:
        return sweep
    most = max(sweep.concurrency)
    if cluster.room is not None and most > cluster.room:
        raise UsageError(
            f"-c {most}: the workers have room for {cluster.room} clients, as their resource "
            f"{ROOM!r} says"
        )
    crew = replace(sweep.base.crew, hosts=len(cluster.workers))
    return replace(sweep, base=replace(sweep.base, crew=crew))


def reachable(contenders: Sequence[Contender], cluster: Cluster | None) -> list[Contender]:
    """Return contenders that know whether the hosts of a cluster can reach them."""
    if cluster is None:
        return list(contenders)
    return [_limited(contender, here=cluster.here) for contender in contenders]


def _limited(contender: Contender, *, here: bool) -> Contender:
    if contender.environment:
        reason = f"environment {contender.environment} is on this host, and its clients on others"
    elif here:
        return contender
    elif contender.files:
        reason = f"only this host has {contender.files[0]}"
    elif contender.servers_here:
        reason = f"server {contender.servers_here[0]} listens on this host alone; see listen"
    else:
        return contender
    return replace(contender, limits=(*contender.limits, Limit(reason)))
