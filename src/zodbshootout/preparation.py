"""What a run does before it measures: start servers, open every contender once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from zodbshootout.arguments import UsageError
from zodbshootout.config.configuration import Configuration, ConfigurationError, Source
from zodbshootout.contenders.contender import Contender, refer_to, settings_with_servers
from zodbshootout.contenders.layer import Sharing, sharing_of
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
from zodbshootout.servers.failure import ServerFailed
from zodbshootout.servers.private import Server, Site
from zodbshootout.servers.registry import server_of


@dataclass(frozen=True)
class Workplace:
    """Where a run keeps what goes away with it."""

    directory: Path
    guardian: Guardian
    interrupted: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Fleet:
    """The private servers of a run."""

    running: Mapping[str, Server]
    """By their names, those first that others need."""
    users: Mapping[str, Sequence[str]]
    """The contenders that need each server, itself or through another."""
    absent: Mapping[str, str]
    """Why contenders cannot be measured whose servers did not come up."""

    @property
    def served(self) -> set[str]:
        """Return the contenders that need a server."""
        return {name for names in self.users.values() for name in names}

    def restart_for(self, contender: str) -> None:
        """Restart the servers that a contender needs.

        :raises ServerFailed: when one does not come up again
        """
        needed = self._needed_by(contender)
        for server in reversed(needed):
            server.halt()
        failures = []
        for server in needed:
            try:
                with _telling_which(server):
                    server.resume()
            except ServerFailed as error:
                failures.append(error)  # the others may be needed by other contenders
        if failures:
            raise failures[0]

    def obituary(self, contender: str) -> str | None:
        """Say how a server has ended that a contender needs, or return ``None``."""
        for server in self._needed_by(contender):
            if told := server.obituary():
                return f"server {server.name} {told}"
        return None

    def _needed_by(self, contender: str) -> list[Server]:
        return [each for each in self.running.values() if contender in self.users[each.name]]


def start_servers(
    stack: ExitStack,
    configuration: Configuration,
    contenders: Sequence[Contender],
    subject: Subject,
    workplace: Workplace,
) -> Fleet:
    """Start the servers that contenders need.

    :raises ConfigurationError: when a section sets what is not its to set
    """
    site = Site(
        workplace.directory,
        subject.source,
        subject.names,
        workplace.guardian,
        workplace.interrupted,
    )
    users = {
        section.name: [each.name for each in contenders if each.refers_to(section.name)]
        for section in configuration.servers
    }
    needs = _needs(configuration)
    servers = {
        section.name: server_of(section, site)
        for section in sorted(configuration.servers, key=lambda each: len(needs[each.name]))
        if users[section.name]
    }
    running: dict[str, Server] = {}
    absent: dict[str, str] = {}
    for name, server in servers.items():
        if not running.keys() >= needs[name]:
            continue  # the users of a server are those of the servers that it needs, too
        stack.callback(server.stop)
        try:
            with _telling_which(server):
                server.start()
        except ServerFailed as error:
            absent |= dict.fromkeys(users[name], str(error))
        else:
            running[name] = server
    return Fleet(running, users, absent)


def check_restartable(configuration: Configuration, contenders: Sequence[Contender]) -> None:
    """Check that restarting servers makes sense.

    :raises UsageError: when it does not
    """
    option = "--restart-servers"
    needed = [
        section
        for section in configuration.servers
        if any(each.refers_to(section.name) for each in contenders)
    ]
    if not needed:
        raise UsageError(f"{option}: no contender has a server that the run starts")
    for contender in contenders:
        served = any(contender.refers_to(section.name) for section in needed)
        if served and contender.sharing is Sharing.VOLATILE:
            raise UsageError(
                f"{option}: {contender.name} would lose its data, which it keeps in memory; leave "
                "it out with --only"
            )
    for section in needed:
        if sharing_of(section) is Sharing.VOLATILE:
            raise UsageError(
                f"{option}: server {section.name} would lose its data, which it keeps in memory"
            )


def _needs(configuration: Configuration) -> dict[str, set[str]]:
    """Return for each server the names of those that it needs, themselves or through another."""
    found = {}
    for section in configuration.servers:
        settings = settings_with_servers(section, configuration)
        others = {each.name for each in configuration.servers} - {section.name}
        found[section.name] = {name for name in others if refer_to(settings, name)}
    return found


@contextmanager
def _telling_which(server: Server) -> Iterator[None]:
    try:
        yield
    except ServerFailed as error:
        raise ServerFailed(f"server {server.name} {error}") from error


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
    directory.mkdir(mode=0o700)
    affinity = options.affinity or default_affinity()
    passed_on = [f"--hook={hook}" for hook in options.hooks]
    if affinity:
        passed_on.append(f"--affinity={affinity}")
    if options.memory:
        passed_on.append(options.memory)
    passed_on.append("--verbose" if options.verbose else "--quiet")
    temporary = workplace.directory / "tmp"
    temporary.mkdir(mode=0o700)
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
        interrupted=workplace.interrupted,
    )


def _relay(options: Options, observer: Silence) -> Callable[[str], None]:
    """Return what is done with the lines that a worker prints."""
    if options.verbose or options.conduct.log:
        return observer.relay
    told = (leaks.PREFIX, profiles.PREFIX)
    return lambda line: observer.relay(line) if line.startswith(told) else None
