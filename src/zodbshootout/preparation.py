"""What a run does before it measures: start servers, open every contender once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from zodbshootout.config.configuration import ConfigurationError, Source
from zodbshootout.config.sections import ServerSection
from zodbshootout.contenders.contender import Contender
from zodbshootout.guardian import Guardian
from zodbshootout.options import Options
from zodbshootout.perf import leaks, profiles
from zodbshootout.perf.launch import (
    Launcher,
    WorkerFailed,
    default_affinity,
    worker_environment,
)
from zodbshootout.perf.task import Action, Subject, Task
from zodbshootout.progress import Silence
from zodbshootout.servers.private import ServerFailed, Site
from zodbshootout.servers.registry import server_of


@dataclass(frozen=True)
class Workplace:
    """Where a run keeps what goes away with it."""

    directory: Path
    guardian: Guardian


def start_servers(
    stack: ExitStack,
    sections: Sequence[ServerSection],
    contenders: Sequence[Contender],
    subject: Subject,
    workplace: Workplace,
) -> dict[str, str]:
    """Start the servers that contenders refer to; return why some contenders have none."""
    absent: dict[str, str] = {}
    for section in sections:
        users = [each for each in contenders if each.refers_to(section.name)]
        if not users:
            continue
        server = server_of(section)
        stack.callback(server.stop)
        site = Site(
            address=subject.names[section.name],
            directory=workplace.directory / f"server-{section.name}",
            source=subject.source,
            names=subject.names,
            guardian=workplace.guardian,
        )
        try:
            server.start(site)
        except ServerFailed as error:
            absent |= {contender.name: str(error) for contender in users}
    return absent


def look_at(
    contenders: Sequence[Contender],
    launcher: Launcher,
    subject: Subject,
    options: Options,
    absent: Mapping[str, str],
) -> tuple[dict[str, str], dict[str, Mapping[str, str]]]:
    """Open every contender once; return why some cannot be opened, and facts of the others.

    :raises ConfigurationError: when something has to be installed first
    """
    absent = dict(absent)
    facts: dict[str, Mapping[str, str]] = {}
    for contender in contenders:
        if contender.name in absent:
            continue
        reason = contender.absence()
        if reason is not None:
            absent[contender.name] = reason
            continue
        try:
            facts[contender.name] = launcher.do(
                Task(Action.LOOK, subject, contender.name, log=options.conduct.log)
            )
        except WorkerFailed as error:
            if error.report.state == "misconfigured":
                raise ConfigurationError(f"{contender.name}: {error}") from None
            absent[contender.name] = f"cannot be opened: {error}"
    return absent, facts


def launcher_for(
    options: Options, source: Source, workplace: Workplace, observer: Silence
) -> Launcher:
    """Return what starts the workers as the options say."""
    directory = workplace.directory / "workers"
    directory.mkdir()
    affinity = options.affinity or default_affinity()
    passed_on = [f"--hook={hook}" for hook in options.hooks]
    if affinity:
        passed_on.append(f"--affinity={affinity}")
    if options.memory:
        passed_on.append(options.memory)
    passed_on.append("--verbose" if options.verbose else "--quiet")
    temporary = workplace.directory / "tmp"
    temporary.mkdir()
    environment = worker_environment(
        os.environ,
        [*options.inherit_environ, *source.environment_names],
        locale=options.locale,
        copy_all=options.copy_env,
    )
    return Launcher(
        directory=directory,
        guardian=workplace.guardian,
        # What a client that is killed has in a temporary file goes away with the run.
        environment={**environment, "TMPDIR": str(temporary)},
        python=options.python,
        options=passed_on,
        gevent=options.gevent,
        timeout=options.timeout,
        relay=_relay(options, observer),
    )


def _relay(options: Options, observer: Silence) -> Callable[[str], None]:
    """Return what is done with the lines that a worker prints."""
    if options.verbose or options.conduct.log:
        return observer.relay
    told = (leaks.PREFIX, profiles.PREFIX)
    return lambda line: observer.relay(line) if line.startswith(told) else None
