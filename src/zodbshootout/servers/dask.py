"""The Dask cluster that ``--hosts`` names, which is already running or is started here."""

from __future__ import annotations

import importlib.util
import json
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

from zodbshootout.crews.cluster import Cluster, DaskWorker
from zodbshootout.errors import UserError
from zodbshootout.guardian import Child, Ending, Guardian, last_lines
from zodbshootout.servers.address import certificates

CONNECT_TIMEOUT = 30.0
"""Seconds to wait for a scheduler; the wait for its workers is longer by 1 s per worker."""
MAX_LOCAL_WORKERS = 1000
ROOM = "clients"
"""The worker resource that limits the number of clients."""
_LOCAL_CONFIGURATION = {
    # Dashboards would answer without a certificate, so they get nothing to serve.
    "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
    "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
    # Dask's measurements of itself would take processor time from clients.
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}
"""Dask's configuration, as environment variables, for schedulers and workers started here."""


@contextmanager
def cluster_for(hosts: str | None, guardian: Guardian, directory: Path) -> Iterator[Cluster | None]:
    """Connect to the cluster that ``--hosts`` names, or start it; yield ``None`` without *hosts*.

    A cluster that is started here ends with the context, and keeps its files in *directory*.
    """
    if hosts is None:
        yield None
        return
    if importlib.util.find_spec("distributed") is None:
        raise UserError(
            "--hosts needs distributed and trustme (the extra hosts); install them: "
            "pip install distributed trustme"
        )
    local, path = re.fullmatch(r"local:(\d+)", hosts), Path(hosts)
    with ExitStack() as stack:
        if local:
            scheduler = _start_here(_number_of_workers(local[1]), guardian, directory, stack)
        elif re.fullmatch(r"\w+://.+", hosts):
            scheduler = _Scheduler(hosts)
        elif path.is_file():
            scheduler = _scheduler_of_file(path, stack)
        else:
            raise UserError(
                f"--hosts: {hosts!r} is neither local:N, nor a scheduler such as "
                "tcp://scheduler:8786, nor a file"
            )
        yield _connected(scheduler, directory)


@dataclass(frozen=True)
class _Scheduler:
    """A scheduler, and the number of workers to wait for."""

    address: str
    workers: int = 1
    security: Any = None
    log: Path | None = None
    """The output of the scheduler and workers, if they were started here."""


def _number_of_workers(digits: str) -> int:
    if len(digits) > len(str(MAX_LOCAL_WORKERS)) or not 1 <= int(digits) <= MAX_LOCAL_WORKERS:
        raise UserError(f"--hosts: local:{digits}: write a number from 1 to {MAX_LOCAL_WORKERS}")
    return int(digits)


def _start_here(workers: int, guardian: Guardian, directory: Path, stack: ExitStack) -> _Scheduler:
    """Start a scheduler and workers on this host; *stack* ends them.

    A worker runs any code that it receives, so it accepts only peers with a certificate of this
    run.  Linux divides processor time first among sessions.  Therefore all these processes share
    one session and get one share, as a crew's local clients do.
    """
    from distributed import Security

    scheduler_file, log = directory / "scheduler.json", directory / "dask.log"
    files = certificates(directory / "certificates-dask")
    tls = {"ca-file": files["authority"], "cert": files["certificate"], "key": files["key"]}
    options = [
        "--protocol", "tls", *(f"--tls-{name}={path}" for name, path in tls.items()),
        "--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0",
        "--scheduler-file", str(scheduler_file),
    ]  # fmt: skip
    output = stack.enter_context(log.open("wb"))
    prefix = fixed_addresses()

    def start(program: str, *words: str) -> Child:
        process = guardian.start(
            [*prefix, sys.executable, "-m", f"distributed.cli.dask_{program}", *words, *options],
            Ending(signal.SIGKILL),  # nothing outlasts the run
            session=False,
            env={**os.environ, "DASK_TEMPORARY_DIRECTORY": str(directory), **_LOCAL_CONFIGURATION},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        stack.callback(process.end)
        return process

    address = _address_in(scheduler_file, start("scheduler", "--port", "0"), log)
    for number in range(workers):
        start("worker", "--nthreads", "1", "--no-nanny", "--name", f"local-{number + 1}")
    make_security: Any = Security  # Dask has no types
    security = make_security(
        require_encryption=True, tls_ca_file=tls["ca-file"],
        tls_client_cert=tls["cert"], tls_client_key=tls["key"],
    )  # fmt: skip
    return _Scheduler(address, workers, security, log)


def _address_in(scheduler_file: Path, scheduler: Child, log: Path) -> str:
    """Wait until a scheduler has written its address to *scheduler_file*; return the address."""
    deadline = time.monotonic() + CONNECT_TIMEOUT
    while scheduler.poll() is None and time.monotonic() < deadline:
        try:
            return str(json.loads(scheduler_file.read_text(encoding="utf-8"))["address"])
        except (OSError, ValueError):  # not written yet, or incomplete
            time.sleep(0.05)
    raise UserError(f"--hosts: Dask's scheduler did not start: {_last_line(log)}")


def _last_line(log: Path) -> str:
    return next(iter(last_lines(log, 1)), "it logged nothing")


def fixed_addresses() -> Sequence[str]:
    """Return a command prefix that keeps Linux from randomizing memory addresses.

    Clients forked from one process have the same addresses.  Without the prefix, clients of
    several workers on one machine have different addresses, which slows the processor down: by
    6 to 10 % in ``cold`` on ZEO with four clients.  The prefix is empty if ``setarch`` is missing
    or, as in some containers, forbidden.
    """
    words = ["setarch", "--addr-no-randomize"]
    try:
        subprocess.run([*words, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return words


def _scheduler_of_file(path: Path, stack: ExitStack) -> _Scheduler:
    """Return the scheduler that a configuration file or a scheduler file of Dask names."""
    import dask

    content = _content(path)
    # Without merge(), a key in the file would delete subkeys that the file leaves out.
    stack.enter_context(dask.config.set(dask.config.merge(dask.config.config, content)))
    address = content.get("address") or dask.config.get("scheduler-address", None)
    if not isinstance(address, str):
        raise UserError(
            f"--hosts: {path} names no scheduler; write a line such as "
            "scheduler-address: tcp://scheduler:8786"
        )
    return _Scheduler(address)


def _content(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"--hosts: {path}{line}: {error.problem}") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"--hosts: cannot read {path}: {_one_line(error)}") from None
    if not isinstance(content, Mapping):
        raise UserError(f"--hosts: {path} contains no keys and values")
    for key in _keys(content):
        if not isinstance(key, str):
            raise UserError(f"--hosts: {path}: the key {key!r} must be a string; quote it")
    return content


def _keys(content: Any) -> Iterator[Any]:
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield key
            yield from _keys(value)


def _connected(scheduler: _Scheduler, directory: Path) -> Cluster:
    """Wait for a scheduler's workers, and return the cluster."""
    import dask

    cluster = Cluster(
        scheduler.address, (), here=False, configuration=dask.config.config,
        security=scheduler.security, log=scheduler.log,
    )  # fmt: skip
    try:
        with cluster.client(timeout=CONNECT_TIMEOUT) as client:
            client.wait_for_workers(scheduler.workers, timeout=CONNECT_TIMEOUT + scheduler.workers)
            workers = _workers(client.scheduler_info(n_workers=-1)["workers"])
            machines = Counter(client.run(platform.node).values())
            with tempfile.NamedTemporaryFile(dir=directory) as file:
                share_files = all(client.run(os.path.exists, file.name).values())
            here = set(machines) == {platform.node()} and share_files
    except (OSError, TimeoutError, TypeError, ValueError) as error:
        needed = "a worker" if scheduler.workers == 1 else f"{scheduler.workers} workers"
        advice = f"start it: dask scheduler, and dask worker {scheduler.address}"
        if scheduler.log is not None:
            advice = f"Dask's last output was: {_last_line(scheduler.log)}"
        raise UserError(
            f"--hosts: no cluster with {needed} at {scheduler.address}: "
            f"{_one_line(error)}; {advice}"
        ) from None
    return replace(cluster, workers=workers, here=here, together=max(machines.values()))


def _workers(identities: Mapping[str, Mapping[str, Any]]) -> list[DaskWorker]:
    """Return the workers in *identities*; if some have a :data:`ROOM`, leave out the others."""
    workers = [
        DaskWorker(str(identity["name"]), address, identity.get("resources", {}).get(ROOM))
        for address, identity in identities.items()
    ]
    limited = [
        replace(worker, room=int(worker.room)) for worker in workers if worker.room is not None
    ]
    return sorted(limited or workers, key=lambda worker: (len(worker.name), worker.name))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
