"""``--hosts``: which Dask cluster is meant, there already or started here."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zodbshootout.crews.cluster import Cluster, Worker
from zodbshootout.errors import UserError
from zodbshootout.guardian import Child, Ending, Guardian, last_lines
from zodbshootout.servers.certificates import certificates

PATIENCE = 30.0
"""Seconds in which a cluster has to answer, and have its workers unless Dask's configuration says
``zodbshootout.wait-for-workers``."""
MAX_HERE = 1000
"""Workers that are started on this host, at most."""
ROOM = "clients"
"""The resource of a worker that says how many clients it may have."""
_LOCAL = re.compile(r"local:(\d+)")
_ADDRESS = re.compile(r"\w+://.+")


_AT_ONCE = Ending(signal.SIGKILL)
"""How they end: nothing of theirs outlasts the run, and clients end with their worker."""
_SETTINGS = {
    # The servers of dashboards, which need no certificate, serve nothing.
    "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
    "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
    # What Dask measures of itself takes processor time from the clients, which are beside it.
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}
"""Of Dask's configuration, in the environment of schedulers and workers that are started here."""


@contextmanager
def cluster_for(
    where: str | None, guardian: Guardian, directory: Path, *, start: bool = True
) -> Iterator[Cluster | None]:
    """Have the cluster that ``--hosts`` names; ``None`` where it names none.

    What is started here has its files in a *directory*.  Without a *start*, a cluster that would be
    started has as many workers, of which nothing else is known.

    :raises UserError: when there is no such cluster
    """
    if where is None:
        yield None
        return
    if importlib.util.find_spec("distributed") is None:
        raise UserError(
            "--hosts needs distributed and trustme, which are in the extra hosts; install them: "
            "pip install distributed trustme"
        )
    local, path = _LOCAL.fullmatch(where), Path(where)
    with ExitStack() as stack:
        if local:
            workers = _some(local[1])
            found = _local(workers, guardian, directory, stack) if start else _Found("", workers)
        elif _ADDRESS.fullmatch(where):
            found = _Found(where)
        elif path.is_file():
            found = _of_file(path, stack, start=start)
        else:
            raise UserError(
                f"--hosts: {where!r} is neither local:N, nor a scheduler such as "
                "tcp://scheduler:8786, nor a file"
            )
        if found.address:
            yield _connected(found, directory, send=start)
        else:
            names = map(str, range(found.workers))
            described = [Worker(name, name) for name in names]
            together = found.workers if local else 1
            yield Cluster("", described, here=bool(local), together=together)


@dataclass(frozen=True)
class _Found:
    """A scheduler."""

    address: str
    """Empty where none is to be started."""
    workers: int = 1
    """How many are waited for."""
    security: Any = None
    log: Path | None = None
    """Where the workers print what they have to say, if they were started here."""
    described: Path | None = None
    """The file that describes the cluster, if one does."""

    def advice(self) -> str:
        """Say what to do where the workers are not there."""
        if self.log is not None:
            return f"the last that Dask said was: {_last_line(self.log)}"
        if self.described is not None:
            return f"zodbshootout.wait-for-workers in {self.described} gives them more time"
        return f"start it: dask scheduler, and dask worker {self.address}"


def _some(digits: str) -> int:
    """Return a number of workers.

    :raises UserError: when it is 0, or more than any host has room for
    """
    if len(digits) > len(str(MAX_HERE)) or not 1 <= int(digits) <= MAX_HERE:
        raise UserError(f"--hosts: local:{digits}: write a number from 1 to {MAX_HERE}")
    return int(digits)


def _local(workers: int, guardian: Guardian, directory: Path, stack: ExitStack) -> _Found:
    """Start a scheduler and so many workers on this host, which *stack* ends.

    They run whatever they are told to, so nobody else on this host may talk to them.  All are in
    one session, as the clients of a crew here are: Linux divides processor time by sessions first.

    :raises UserError: when the scheduler does not start
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
    alike = _with_addresses_alike()

    def start(program: str, *words: str) -> Child:
        process = guardian.start(
            [*alike, sys.executable, "-m", f"distributed.cli.dask_{program}", *words, *common],
            _AT_ONCE,
            session=False,
            env={**os.environ, "DASK_TEMPORARY_DIRECTORY": str(directory), **_SETTINGS},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        stack.callback(process.end)
        return process

    scheduler = start("scheduler", "--port", "0")
    deadline = time.monotonic() + PATIENCE
    while not (address := _told_in(told)):
        if scheduler.poll() is not None or time.monotonic() > deadline:
            raise UserError(f"--hosts: Dask's scheduler did not start: {_last_line(log)}")
        time.sleep(0.05)
    for number in range(workers):
        start("worker", "--nthreads", "1", "--no-nanny", "--name", f"local-{number + 1}")
    security: Any = Security  # it has no types
    private = security(
        require_encryption=True, tls_ca_file=tls["ca-file"],
        tls_client_cert=tls["cert"], tls_client_key=tls["key"],
    )  # fmt: skip
    return _Found(address, workers, private, log)


def _with_addresses_alike() -> Sequence[str]:
    """Return what to write before a command for its memory to have the same addresses as others'.

    Clients that are forked from one process have its addresses.  Where those of several hosts
    differ, a processor that they share is slower: by 6 to 10 % for four clients in ``cold`` on ZEO.
    It is nothing where there is no ``setarch``, or, as in some containers, it may not do that.
    """
    words = ["setarch", "--addr-no-randomize"]
    try:
        subprocess.run([*words, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return words


def _last_line(log: Path) -> str:
    return next(iter(last_lines(log, 1)), "it logged nothing")


def _told_in(path: Path) -> str:
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError):
        return ""


@dataclass(frozen=True)
class _Description:
    """A cluster that can be made."""

    module: str
    name: str
    """The name of a class in the module."""
    args: Sequence[Any]
    kwargs: Mapping[str, Any]

    @property
    def workers(self) -> int:
        """Return how many workers it asks for: one for each host of SSH."""
        given = [*self.args, self.kwargs.get("hosts")]
        hosts = [each for each in given if isinstance(each, list)]
        number = self.kwargs.get("n_workers", len(hosts[0]) - 1 if hosts else 1)
        return number if isinstance(number, int) and number > 0 else 1


def _described(path: Path, told: Mapping[str, Any]) -> _Description:
    args, kwargs = told.get("args") or [], told.get("kwargs") or {}
    if not isinstance(args, list) or not isinstance(kwargs, Mapping):
        raise UserError(f"--hosts: {path}: args has to be a list, and kwargs keys with values")
    return _Description(str(told.get("module", "distributed")), str(told["class"]), args, kwargs)


def _of_file(path: Path, stack: ExitStack, *, start: bool) -> _Found:
    """Return the scheduler of a file in YAML.

    That is a configuration of Dask with ``scheduler-address``, or a cluster as dask-ctl describes
    one: ``module``, ``class``, and ``args`` and ``kwargs`` for it.

    :raises UserError: when it is neither
    """
    import dask
    import yaml

    try:
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"--hosts: {path}{line}: {error.problem}") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        cause = " ".join(str(error).split())
        raise UserError(f"--hosts: cannot read {path}: {cause}") from None
    strange = next(_strange_keys(told), None)
    if strange is not None:
        raise UserError(f"--hosts: {path}: the key {strange!r} is no text; write it in quotes")
    if not isinstance(told, Mapping):
        raise UserError(f"--hosts: {path} has no keys and values")
    of_class = {"version", "module", "class", "args", "kwargs"}
    configuration = {key: value for key, value in told.items() if key not in of_class}
    # It replaces what it is given, with all that is within.
    stack.enter_context(dask.config.set(dask.config.merge(dask.config.config, configuration)))
    if "class" in told:
        description = _described(path, told)
        return _created(path, description, stack) if start else _Found("", description.workers)
    address = dask.config.get("scheduler-address", None)
    if not address:
        raise UserError(f"--hosts: {path} has neither scheduler-address nor a class of clusters")
    return _Found(str(address))


def _strange_keys(told: Any) -> Iterator[Any]:
    if isinstance(told, Mapping):
        for key, value in told.items():
            if not isinstance(key, str):
                yield key
            yield from _strange_keys(value)


def _created(path: Path, description: _Description, stack: ExitStack) -> _Found:
    try:
        make = getattr(importlib.import_module(description.module), description.name)
        cluster = stack.enter_context(make(*description.args, **description.kwargs))
    except Exception as error:
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"--hosts: {path}: no cluster could be made: {cause}") from error
    address, security = str(cluster.scheduler_address), getattr(cluster, "security", None)
    workers = len(getattr(cluster, "worker_spec", ())) or description.workers
    return _Found(address, workers, security, described=path)


def _connected(found: _Found, directory: Path, *, send: bool) -> Cluster:
    """Return the cluster when it has the workers that are waited for, and was sent packages.

    :raises UserError: when it has not
    """
    import dask

    patience = _patience()
    reached = Cluster(
        found.address, (), here=False, configuration=dask.config.config, security=found.security,
        log=found.log,
    )  # fmt: skip
    try:
        with reached.client(timeout=PATIENCE) as client:
            client.wait_for_workers(found.workers, timeout=patience + found.workers)
            if send:
                _send_packages(client)
            workers = _workers(client.scheduler_info(n_workers=-1)["workers"])
            machines = Counter(client.run(platform.node).values())
            here = set(machines) == {platform.node()} and _see_files(client, directory)
    except (OSError, TimeoutError, TypeError, ValueError) as error:
        few = "a worker" if found.workers == 1 else f"{found.workers} workers"
        raise UserError(
            f"--hosts: no cluster with {few} at {found.address}: "
            f"{' '.join(str(error).split())}; {found.advice()}"
        ) from None
    return replace(reached, workers=workers, here=here, together=max(machines.values()))


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

    They restart where that is necessary, and may be called otherwise then.

    :raises UserError: when it cannot be installed, or a directory is not there
    """
    from distributed.diagnostics import plugin

    install: Any = plugin.PipInstall  # they have no types
    upload: Any = plugin.UploadDirectory
    requirements = _texts("pip-install")
    directories = [Path(each) for each in _texts("upload-directories")]
    for directory in directories:
        if not directory.is_dir():
            raise UserError(f"--hosts: zodbshootout.upload-directories: no directory {directory}")
    if not (requirements or directories):
        return
    number = len(client.scheduler_info(n_workers=-1)["workers"])
    try:
        if requirements:
            client.register_plugin(install(requirements, restart_workers=True))
        for directory in directories:
            sent = upload(str(directory), restart_workers=True, update_path=True)
            client.register_plugin(sent)
        client.wait_for_workers(number, timeout=_patience())
    except (OSError, RuntimeError) as error:
        cause = " ".join(str(error).split())
        raise UserError(f"--hosts: the packages could not be sent: {cause}") from error


def _patience() -> float:
    """Return the seconds in which workers have to be there, by Dask's configuration.

    :raises UserError: when it says something else
    """
    import dask
    from dask.utils import parse_timedelta

    told = dask.config.get("zodbshootout.wait-for-workers", PATIENCE)
    try:
        seconds = float(parse_timedelta(told))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UserError(
            f"--hosts: zodbshootout.wait-for-workers: {told!r} is no time such as 5 minutes"
        )
    return seconds


def _texts(key: str) -> list[str]:
    """Return a list of Dask's configuration.

    :raises UserError: when it is something else
    """
    import dask

    found = dask.config.get(f"zodbshootout.{key}", [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise UserError(f"--hosts: zodbshootout.{key} has to be a list of texts")
    return found


def _see_files(client: Any, directory: Path) -> bool:
    """Say whether all workers see a file that is made here."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        return all(client.run(os.path.exists, file.name).values())
