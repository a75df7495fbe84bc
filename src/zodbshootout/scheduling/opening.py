"""The opening of every contender, with the servers that it needs, before anything is measured."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from zodbshootout.config.pythons import Environment
from zodbshootout.config.tree import Section
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.making import Maker
from zodbshootout.contenders.variants import Variants
from zodbshootout.errors import UserError
from zodbshootout.model.outcome import Failed, Failure, State
from zodbshootout.model.specification import Storage
from zodbshootout.model.storage_facts import Sharing, StorageInfo
from zodbshootout.scheduling.fork_servers import ForkServers
from zodbshootout.scheduling.plan import Plan
from zodbshootout.scheduling.result_store import Observer
from zodbshootout.servers.running import RunningServers
from zodbshootout.workers.coordinator import ForkServer, TimeLimit

PATIENCE = 5.0
"""Seconds until a message about a contender that is still opening; at most half the time limit."""


def open_all(
    variants: Variants, plan: Plan, fork_servers: ForkServers, stack: ExitStack, observer: Observer
) -> tuple[Plan, RunningServers]:
    """Make environments, start servers, and open every contender once; *stack* stops the servers.

    Return the plan and the servers.  The plan then has the facts about each contender that was
    opened, and the failure of each that was not.

    :raises UserError: if the Python of an environment rejects a section
    """
    context, crew = variants.context, plan.cells[0].parameters.crew
    maker = Maker(context.guardian, context.directory, observer.relay)
    environments = variants.make_environments(plan.contenders, maker)
    unavailable = {c.title: flaw for c in plan.contenders if (flaw := environments.flaw_for(c))}
    contenders = [
        replace(c, storage=replace(c.storage, interpreter=environments.interpreter_for(c, crew)))
        for c in plan.contenders
    ]
    present = [contender for contender in contenders if contender.title not in unavailable]
    observer.note("starting servers")
    clients = max(cell.parameters.crew.size for cell in plan.cells)
    servers = variants.start_servers(stack, present, clients, environments)
    unavailable |= {name: Failure(reason) for name, reason in servers.absent.items()}
    failures, opened = inspect_all(contenders, unavailable, fork_servers, observer)
    contenders = [
        opened[contender.title].with_versions(servers.versions(contender.title))
        if contender.title in opened
        else contender
        for contender in contenders
    ]
    return replace(plan, contenders=contenders, unavailable=failures), servers


def inspect_all(
    contenders: Sequence[Contender],
    unavailable: Mapping[str, Failure],
    fork_servers: ForkServers,
    observer: Observer,
) -> tuple[dict[str, Failure], dict[str, Contender]]:
    """Open every contender once, except *unavailable* ones; return failures and opened contenders.

    The keys of all mappings are titles of contenders.
    """
    failures = dict(unavailable)
    opened: dict[str, Contender] = {}
    for contender in contenders:
        name = contender.title
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


def _check_section(section: Section, failure: Failure) -> None:
    """Raise UserError if a mistake in the section caused the *failure* in another Python."""
    if section.environment and failure.section_line is not None:
        place = section.line(max(1, failure.section_line))
        where = place if failure.section_line else place.path
        raise UserError(f"{where}: {failure.cause} (environment {section.environment})")


@contextmanager
def _message_if_slow(name: str, limit: TimeLimit, observer: Observer) -> Iterator[None]:
    message = f"{name}: waiting for it to open, at most {limit}"
    patience = min(PATIENCE, limit.seconds / 2)
    timer = threading.Timer(patience, observer.relay, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


_MISSING_DRIVER = frozenset(
    {"DriverNotAvailableError", "DriverNotImportableError", "NoDriversAvailableError"}
)
"""Names of RelStorage's exceptions; the classes cannot be imported without RelStorage."""


_NO_DRIVER = re.compile(r"(\w+Error): \1: Driver (?P<name>'[^']*') is not available")
_AVAILABLE = re.compile(r"('[^']*') \(Module: [^;]*; Available: True\)")


def _without_options(cause: str) -> str:
    """Shorten RelStorage's message about a missing driver, which describes all drivers."""
    missing = _NO_DRIVER.match(cause)
    if missing is None:
        return cause
    there = ", ".join(_AVAILABLE.findall(cause))
    advice = f"; these are: {there}" if there else ""
    return f"the driver {missing['name']} is not available{advice}"


def _inspect(contender: Contender, fork_servers: ForkServers) -> StorageInfo | Failure:
    reason = contender.missing_server()
    if reason is not None:
        return Failure(reason)
    try:
        fork_server = fork_servers.of_generation(0, contender.storage.interpreter)
    except Failed as error:
        return error.failure
    try:
        info = fork_server.inspect(contender.storage)
        fork_server.import_modules(info.modules)
        if _is_in_memory(info, contender.storage, fork_server):
            info = replace(info, sharing=Sharing.VOLATILE)
    except Failed as error:
        _check_section(contender.section, error.failure)
        if error.failure.state is State.UNSUPPORTED:
            return error.failure
        cause, detail = error.failure.cause, error.failure.detail
        if contender.installation and error.failure.exception in _MISSING_DRIVER:
            return Failure(contender.installation, detail)
        advice = contender.advice_on(cause)
        cause = _without_options(cause)
        reason = f"cannot be opened: {cause}{f'; {advice}' if advice else ''}"
        environment = contender.environment
        return Failure(reason, detail, environment.if_absent if environment else State.FAILED)
    return _without_path(info, contender.environment) if contender.environment else info


def _without_path(info: StorageInfo, environment: Environment) -> StorageInfo:
    """Return the information without the path of an environment, which differs between runs."""
    python = dict(info.python)
    if environment.requirements:  # the environment's directory has another name in each run
        python["python_executable"] = environment.python or sys.executable
    return replace(info, python=python)


def _is_in_memory(info: StorageInfo, storage: Storage, fork_server: ForkServer) -> bool:
    """Return whether a process does not see the root object that another process has created."""
    return bool(info.new_root) and fork_server.inspect(storage).new_root not in {"", info.new_root}
