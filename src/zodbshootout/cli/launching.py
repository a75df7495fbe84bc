"""The preparations of a run: check its hosts, configure workers, and open every contender."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.metadata import packages_distributions
from operator import attrgetter
from pathlib import Path

from zodbshootout.cli.options import Options
from zodbshootout.client.masking import Mask
from zodbshootout.client.outcome import Failed, Failure, State
from zodbshootout.client.specification import Storage
from zodbshootout.client.storage_info import Sharing, StorageInfo, installed_versions
from zodbshootout.config.configuration import path_of
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.making import Maker
from zodbshootout.contenders.variants import Variants
from zodbshootout.crews.cluster import Cluster, addresses
from zodbshootout.crews.logs import LogSettings
from zodbshootout.errors import UserError, errors_of_files
from zodbshootout.scheduling.plan import Plan, Sweep
from zodbshootout.scheduling.result_store import Observer
from zodbshootout.servers.dask import ROOM
from zodbshootout.servers.running import RunningServers
from zodbshootout.workers.environment import worker_environment
from zodbshootout.workers.launch import ForkServer, ForkServers, Launcher, TimeLimit
from zodbshootout.workers.worker import LEAKS_PREFIX, PROFILE_PREFIX

PATIENCE = 5.0
"""Seconds of opening a contender after which a message names it."""


def open_all(
    variants: Variants, plan: Plan, fork_servers: ForkServers, stack: ExitStack, observer: Observer
) -> tuple[Plan, RunningServers, Mapping[str, Failure]]:
    """Make environments, start servers, and open every contender once; *stack* stops the servers.

    Return the plan with the opened contenders, the servers, and the failures of the other
    contenders, by name.

    :raises UserError: if the Python of an environment rejects a section
    """
    maker = Maker(variants.context.guardian, lambda line: observer.relay(variants.mask(line)))
    interpreters, unavailable = variants.interpreters(
        plan.contenders, maker, plan.cells[0].parameters.crew
    )
    measurable = [
        replace(c, storage=replace(c.storage, interpreter=interpreters.get(c.name)))
        for c in plan.measurable
    ]
    present = [contender for contender in measurable if contender.name not in unavailable]
    _check_sections(present, fork_servers)
    observer.note("starting servers")
    clients = max(cell.parameters.crew.size for cell in plan.cells)
    servers = variants.start_servers(stack, present, clients)
    unavailable |= servers.absent
    failures, opened = inspect_all(measurable, unavailable, fork_servers, observer)
    contenders = [opened.get(contender.name, contender) for contender in plan.contenders]
    return replace(plan, contenders=contenders), servers, failures


def inspect_all(
    contenders: Sequence[Contender],
    unavailable: Mapping[str, str],
    fork_servers: ForkServers,
    observer: Observer,
) -> tuple[dict[str, Failure], dict[str, Contender]]:
    """Open every contender once, except *unavailable* ones; return failures and opened contenders.

    The keys of all mappings are names of contenders; the values of *unavailable* are reasons.
    """
    failures = {name: Failure(reason) for name, reason in unavailable.items()}
    opened: dict[str, Contender] = {}
    for contender in contenders:
        name = contender.name
        if name in failures:
            continue
        observer.note(f"opening {name}")
        with _message_if_slow(name, fork_servers.launcher.opening, observer):
            answer = _inspect(contender, fork_servers)
        if isinstance(answer, Failure):
            failures[name] = answer
        else:
            opened[name] = contender.opened(answer)
    return failures, opened


def _check_sections(contenders: Sequence[Contender], fork_servers: ForkServers) -> None:
    """Let the Python of each environment check its contenders' sections; open nothing."""
    for contender in contenders:
        section = contender.section
        if not section.environment:
            continue
        try:
            flaw = fork_servers.for_round(0).validate(contender.storage)
        except Failed:
            continue  # opening it fails in the same way, and fails this contender alone
        if flaw is not None:
            _, url, number = section.place(flaw.line)
            where = f"{path_of(url)}:{number}" if flaw.line else str(path_of(url))
            message = " ".join(flaw.message.split())
            raise UserError(f"{where}: {message} (environment {section.environment})")


@contextmanager
def _message_if_slow(name: str, limit: TimeLimit, observer: Observer) -> Iterator[None]:
    message = f"{name}: waiting for it to open, {limit.seconds:g} s at most ({limit.option})"
    timer = threading.Timer(PATIENCE, observer.relay, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


_MISSING_DRIVER = (
    "DriverNotAvailableError",
    "DriverNotImportableError",
    "NoDriversAvailableError",
)
"""Names of RelStorage's exceptions, which cannot be imported if it is not installed."""


_NO_DRIVER = re.compile(r"(\w+Error): \1: Driver (?P<name>'[^']*') is not available")
_AVAILABLE = re.compile(r"('[^']*') \(Module: [^;]*; Available: True\)")


def _without_options(cause: str) -> str:
    """Shorten the message about a missing driver, in which RelStorage describes all of them."""
    missing = _NO_DRIVER.match(cause)
    if missing is None:
        return cause
    there = ", ".join(_AVAILABLE.findall(cause))
    advice = f"; there are {there}" if there else ""
    return f"the driver {missing['name']} is not available{advice}"


_EMPTY = (
    "its database is empty, and it is read only; run the benchmark once on a contender that writes "
    "to the same database"
)


def _inspect(contender: Contender, fork_servers: ForkServers) -> StorageInfo | Failure:
    reason = contender.missing_server()
    if reason is not None:
        return Failure(reason)
    try:
        fork_server = fork_servers.for_round(0)
    except Failed as error:
        return error.failure
    try:
        info = fork_server.inspect(contender.storage)
        if _is_in_memory(info, contender.storage, fork_server):
            info = replace(info, sharing=Sharing.VOLATILE)
    except Failed as error:
        cause, detail = error.failure.cause, error.failure.detail
        if contender.installation and cause.startswith(_MISSING_DRIVER):
            return Failure(contender.installation, detail)
        if cause.startswith("ReadOnlyError") or (
            contender.info.read_only and cause.startswith("FileNotFoundError")
        ):
            return Failure(_EMPTY, detail, State.UNSUPPORTED)
        advice = contender.advice_on(cause)
        cause = _without_options(cause)
        return Failure(f"cannot be opened: {cause}{f'; {advice}' if advice else ''}", detail)
    # Only the Python of the environment has these modules for certain.
    return replace(info, modules=()) if contender.environment else info


def _is_in_memory(info: StorageInfo, storage: Storage, fork_server: ForkServer) -> bool:
    """Return whether another process does not find the root object that one has created."""
    return bool(info.new_root) and fork_server.inspect(storage).new_root not in {"", info.new_root}


def launcher_for(options: Options, variants: Variants, observer: Observer) -> Launcher:
    """Return a launcher of workers that hides secrets in their output and their logs.

    :raises UserError: if the directories of workers cannot be made
    """
    context, mask = variants.context, variants.mask
    directory, temporary = context.directory / "workers", context.directory / "tmp"
    with errors_of_files():
        for path in (directory, temporary):
            path.mkdir(mode=0o700)
    hooks = [f"--hook={hook}" for hook in options.hooks]
    memory = [options.memory] if options.memory else []
    affinity = [f"--affinity={options.affinity}"] if options.affinity else []
    environment = worker_environment(
        os.environ,
        [*options.inherit_environ, *variants.environment_names],
        locale=options.locale,
        copy_all=options.copy_env,
    )
    working = TimeLimit(options.timeout, "--timeout")
    opening = TimeLimit(options.open_timeout, "--open-timeout")
    return Launcher(
        directory=directory,
        guardian=context.guardian,
        # The temporary files of a client that is killed go away with the run.
        environment={**environment, "TMPDIR": str(temporary)},
        working=working,
        opening=min(opening, working, key=attrgetter("seconds")),
        python=options.python,
        options=[*hooks, *memory, *affinity, "--quiet"],
        affinity=options.affinity,
        logging=LogSettings(options.run.log, mask.secrets),
        # A worker with hosts uses Dask's client, which gevent cannot patch.
        gevent=options.gevent and options.hosts is None,
        relay=_relay(options, observer, mask),
    )


_PYPERF_LINE = re.compile(r"\w+: Mean \+- std dev: |$")
"""Either of the lines that pyperf prints in every worker; one of them is empty."""


def _relay(options: Options, observer: Observer, mask: Mask) -> Callable[[str], None]:
    always = (LEAKS_PREFIX, PROFILE_PREFIX)
    everything = options.verbose or options.run.log is not None

    def relay(line: str) -> None:
        if line.startswith(always) or (everything and not _PYPERF_LINE.match(line)):
            observer.relay(mask(line))

    return relay


def check_hosts(cluster: Cluster, plan: Plan) -> None:
    """Check that all hosts have this host's versions of Python and of the contenders' packages.

    If a workload is replayed, they also have to read the trace that was made of it.

    :raises UserError: if a host differs, or has left the cluster
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
            try:  # the scheduler unpickles the workers' tasks, so it has to have the modules
                scheduler = client.run_on_scheduler(versions, names)
            except Exception as error:  # noqa: BLE001 - it is reported
                scheduler = error
    except OSError as error:
        raise UserError(f"--hosts: {cluster.scheduler} does not answer any more: {error}") from None
    check_versions(f"the scheduler at {cluster.scheduler}", scheduler, here)
    for worker in cluster.workers:
        gone = OSError("it has left the cluster")
        address = there.get(worker.name, "")
        check_versions(str(worker), answers.get(address, gone), here)
        if missing.get(address):
            raise UserError(
                f"--workload: {worker} cannot read {paths[0]}: the hosts need a file system in "
                "common; name a directory in it in the environment variable TMPDIR"
            )


def check_versions(
    host: str, there: Mapping[str, str] | Exception, here: Mapping[str, str]
) -> None:
    """Check that the versions *there*, on a *host*, are those *here*.

    :raises UserError: if they differ, or if *there* is an error of the host
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


def missing_files(paths: Sequence[str]) -> list[str]:
    """Return the files that this host cannot read."""
    return [path for path in paths if not os.access(path, os.R_OK)]


def distributions_of(modules: Iterable[str]) -> list[str]:
    """Return the distributions that contain *modules* and ZODB's packages, but not this one."""
    known = packages_distributions()
    packages = {module.partition(".")[0] for module in modules} | {"ZODB", "persistent", "BTrees"}
    distributions = {name for package in packages for name in known.get(package, ())}
    return sorted(distributions - {"zodbshootout"}, key=str.lower)


def versions(names: Sequence[str]) -> dict[str, str]:
    """Return the versions that have to be equal on all hosts: of Python, zodbshootout and *names*.

    The version of zodbshootout is a digest of its modules, because it may be a checkout.
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
    most = max(sweep.concurrency)
    if cluster.room is not None and most > cluster.room:
        raise UserError(
            f"-c {most}: the Dask workers have room for {cluster.room} clients, as their "
            f"resource {ROOM!r} says"
        )
    crew = replace(sweep.base.crew, hosts=len(cluster.workers))
    return replace(sweep, base=replace(sweep.base, crew=crew))
