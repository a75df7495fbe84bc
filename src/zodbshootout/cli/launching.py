"""What a run does before it measures: see how workers are started, and look at every contender."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace

from zodbshootout.cli.options import Options
from zodbshootout.cli.variants import Variants
from zodbshootout.client.masking import Mask
from zodbshootout.client.outcome import Failed, Failure
from zodbshootout.client.storage_info import StorageInfo
from zodbshootout.client.tasks import InspectStorage, ValidateSection
from zodbshootout.config.configuration import path_of
from zodbshootout.config.loader import OutsideSection
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.making import Maker
from zodbshootout.errors import UserError
from zodbshootout.scheduling.plan import Plan
from zodbshootout.scheduling.result_store import Observer
from zodbshootout.servers.running import RunningServers
from zodbshootout.servers.server import ServerContext
from zodbshootout.workers import leaks, profiles
from zodbshootout.workers.environment import worker_environment
from zodbshootout.workers.launch import ForkServer, Launcher

PATIENCE = 5.0
"""Seconds after which it is told what is waited for."""


@dataclass(frozen=True)
class Opened:
    """What is there when everything that a run needs was started, and opened once."""

    plan: Plan
    servers: RunningServers
    failures: Mapping[str, Failure]
    """Why contenders cannot be measured."""


def open_all(
    variants: Variants, plan: Plan, launcher: Launcher, stack: ExitStack, observer: Observer
) -> Opened:
    """Have environments made and servers started, which *stack* stops; look at every contender.

    :raises UserError: when a section is wrong that another Python reads
    """
    maker = Maker(variants.context.guardian, lambda line: observer.relay(variants.mask(line)))
    interpreters, absent = variants.located(maker)
    plan = plan.located(interpreters)
    present = [each for each in plan.measurable if each.name not in absent]
    check_sections(present, variants.outside, launcher)
    observer.note("starting servers")
    servers = variants.start_servers(stack, present)
    absent |= servers.absent
    failures, info = look_at(plan.measurable, launcher, absent, observer)
    return Opened(plan.knowing(info), servers, failures)


def look_at(
    contenders: Sequence[Contender],
    launcher: Launcher,
    absent: Mapping[str, str],
    observer: Observer,
) -> tuple[dict[str, Failure], dict[str, StorageInfo]]:
    """Open every contender once; return why some cannot be opened, and the info of the others.

    *absent* has reasons that are known already.
    """
    failures = {name: Failure(reason) for name, reason in absent.items()}
    info: dict[str, StorageInfo] = {}
    due = [contender for contender in contenders if contender.name not in failures]
    try:
        with launcher.fork_server() as fork_server:
            for contender in due:
                observer.note(f"opening {contender.name}")
                with _impatience(contender.name, launcher, observer):
                    found = _look(contender, fork_server)
                if isinstance(found, Failure):
                    failures[contender.name] = found
                else:
                    info[contender.name] = found
    except Failed as error:
        failures |= {contender.name: error.failure for contender in due}
    return failures, info


def check_sections(
    contenders: Sequence[Contender],
    outside: Mapping[str, OutsideSection],
    launcher: Launcher,
) -> None:
    """Have the sections read that only another Python can read; nothing is opened.

    :raises UserError: naming the file, and the line that is wrong
    """
    due = [contender for contender in contenders if contender.name in outside]
    if not due:
        return
    with suppress(Failed), launcher.fork_server() as fork_server:
        for contender in due:
            try:
                flaw = fork_server.check(ValidateSection(contender.storage))
            except Failed:
                continue  # what the look says of it fails the contender, and no other
            if flaw is not None:
                url, line = outside[contender.name].place(flaw.line)
                where = f"{path_of(url)}:{line}" if flaw.line else str(path_of(url))
                message = " ".join(flaw.message.split())
                raise UserError(f"{where}: {message} (environment {contender.environment})")


@contextmanager
def _impatience(contender: str, launcher: Launcher, observer: Observer) -> Iterator[None]:
    """Say what is waited for where it lasts."""
    said = f"{contender}: waiting for it to open"
    if launcher.open_timeout is not None:
        said = f"{said}, {launcher.open_timeout:g} s at most (--open-timeout)"
    timer = threading.Timer(PATIENCE, observer.relay, [said])
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
"""Names of exceptions, because RelStorage, which raises these, may be missing itself."""


def _look(contender: Contender, fork_server: ForkServer) -> StorageInfo | Failure:
    reason = contender.absence()
    if reason is not None:
        return Failure(reason)
    try:
        info = fork_server.look(InspectStorage(contender.storage))
    except Failed as error:
        cause, detail = error.failure.cause, error.failure.detail
        if contender.installation and cause.startswith(_MISSING_DRIVER):
            return Failure(contender.installation, detail)
        advice = contender.advice_on(cause)
        return Failure(f"cannot be opened: {cause}{f'; {advice}' if advice else ''}", detail)
    # This Python need not have what that of an environment has imported.
    return replace(info, modules=()) if contender.environment else info


def launcher_for(
    options: Options, context: ServerContext, observer: Observer, mask: Mask
) -> Launcher:
    """Return what starts the workers as the options say, in the place of the private servers.

    What *mask* hides is in nothing that the workers print or log.
    """
    directory = context.directory / "workers"
    directory.mkdir(mode=0o700)
    passed_on = [f"--hook={hook}" for hook in options.hooks]
    if options.memory:
        passed_on.append(options.memory)
    if options.affinity:
        passed_on.append(f"--affinity={options.affinity}")
    passed_on.append("--quiet")
    temporary = context.directory / "tmp"
    temporary.mkdir(mode=0o700)
    environment = worker_environment(
        os.environ,
        [*options.inherit_environ, *context.source.environment_names],
        locale=options.locale,
        copy_all=options.copy_env,
    )
    return Launcher(
        directory=directory,
        guardian=context.guardian,
        # What a client that is killed has in a temporary file goes away with the run.
        environment={**environment, "TMPDIR": str(temporary)},
        python=options.python,
        options=passed_on,
        affinity=options.affinity,
        log=options.run.log,
        # Dask's client could not be patched.
        gevent=options.gevent and options.hosts is None,
        timeout=options.timeout,
        open_timeout=min(options.open_timeout, options.timeout),
        relay=_relay(options, observer, mask),
        secrets=mask.secrets,
        interrupted=context.interrupted,
    )


_OF_PYPERF = re.compile(r"\w+: Mean \+- std dev: |$")
"""What pyperf prints in every worker, and an empty line before it."""


def _relay(options: Options, observer: Observer, mask: Mask) -> Callable[[str], None]:
    """Return what is done with the lines that a worker prints."""
    told = (leaks.PREFIX, profiles.PREFIX)
    everything = options.verbose or options.run.log is not None

    def relay(line: str) -> None:
        if line.startswith(told) or (everything and not _OF_PYPERF.match(line)):
            observer.relay(mask(line))

    return relay
