"""A server process that the run prepares, starts, waits for and stops."""

from __future__ import annotations

import difflib
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar

from zodbshootout.client.reachability import accepts
from zodbshootout.config.configuration import ServerSection
from zodbshootout.config.source import Source
from zodbshootout.errors import UserError
from zodbshootout.guardian import GENTLE, Child, Ending, Guardian, GuardianLost, last_lines
from zodbshootout.model.outcome import Failure
from zodbshootout.model.specification import Interpreter
from zodbshootout.servers import ServerFailed
from zodbshootout.servers.installation import ServerDirectory, account_for
from zodbshootout.servers.usage import kill_tree

START_TIMEOUT = 60.0
"""Seconds to wait until a server is ready."""
PREPARATION_TIMEOUT = 120.0
"""Seconds to wait for a program that prepares a server, such as ``initdb``."""
CONNECTIONS_PER_CLIENT = 3
"""Connections to allow for each client: two that RelStorage may open, and a closed one that the
server has not dropped yet."""
_DATA = "data"
"""The subdirectory with the server's data, in the server's directory."""
_UNFINISHED = f"{_DATA}.unfinished"
_NO_SIGNAL = Ending(signal=0, grace=10.0)
"""How the guardian ends a program that prepares a server: first it waits, because a killed
``postgres`` would leave shared memory."""
_BY_FORCE = Ending(signal=signal.SIGKILL, grace=0.0)
_HARMLESS_VARIABLES = frozenset({"PATH", "TZ", "LD_LIBRARY_PATH"})
"""Variables of root's environment that a server running as another user may see."""


@dataclass(frozen=True)
class ServerContext:
    """Facts that concern all servers of a run."""

    directory: Path
    """The parent of the servers' directories, unless a server's section names another place."""
    source: Source
    names: Mapping[str, str]
    """The names that the run defines for the source; see :func:`~.address.given_names`."""
    guardian: Guardian
    clients: int = 1
    """The number of clients in the run's largest crew."""
    pythons: Mapping[str, Interpreter] = field(default_factory=dict)
    """Pythons by the names of servers; only for servers whose sections name an environment."""


class Server(ABC):
    """The server that a section describes; subclasses prepare the server and return its command.

    The server gets a directory and a log, and ends with the run.  If the server is not ready in
    time, the failure's message quotes the log.

    All methods may raise :class:`ServerFailed`.  The message is a predicate, such as ``has no
    program postgres``; :meth:`start` and :meth:`resume` put the server's name before it.  For a
    mistake in the section, ``__init__`` raises a :meth:`mistake`, so that nothing is measured.
    """

    own_settings: ClassVar[frozenset[str]] = frozenset()
    """The names of settings that only the run may set, with ``_`` instead of ``-``."""
    allowed_settings: ClassVar[frozenset[str] | None] = None
    """The names of the settings that the section may have, with ``_`` instead of ``-``; ``None`` if
    it may have all except :attr:`own_settings`."""
    system_accounts: ClassVar[Sequence[str] | None] = None
    """If root starts the server, it runs as the first of these users that exists.

    The user has to be able to execute the program.  ``run-as`` in the section takes precedence.
    ``None`` if the server may run as root.
    """
    error_mark: ClassVar[str] = ""
    """Text that marks the errors in the server's log; empty if errors have no mark."""
    orderly: ClassVar[Ending] = GENTLE
    """How to stop the server if its data are needed again."""
    abrupt: ClassVar[Ending] = GENTLE
    """How to stop the server if its data are removed with the run."""
    default_connections: ClassVar[int] = 300
    """The minimum of :attr:`connections`, so that crews of several contenders can be connected."""
    connection_limit: ClassVar[int] = resource.RLIMIT_NOFILE
    """``RLIMIT_NOFILE`` if each connection uses a file, ``RLIMIT_NPROC`` if it uses a process."""
    own_resources: ClassVar[int] = 100
    """The number of files or processes that the server uses besides its connections."""

    def __init__(self, section: ServerSection, context: ServerContext) -> None:
        """Check a section and the operating system's limits; start nothing."""
        self.name = section.name
        """The section's name."""
        self.section = section
        """The section that describes the server."""
        self.context = context
        self.host = context.names[f"{self.name}_host"]
        """The host at which clients reach the server."""
        self.port = int(context.names[f"{self.name}_port"])
        """The port at which clients reach the server."""
        self.password = context.names[f"{self.name}_password"]
        """A password that is made for the run; contenders call it ``$NAME_password``."""
        kept = Path(section.directory).absolute() if section.directory else None
        self.directory = ServerDirectory(
            kept or context.directory / f"server-{self.name}", kept=kept is not None
        )
        """The directory of the server's files; removed with the run unless the section names it."""
        self._process: Child | None = None
        self._process_options: dict[str, Any] = {}
        self._log_start = 0
        for name, value in section.settings.items():
            if flaw := self._flaw_of(name, value):
                raise self.mistake(flaw, name)
        self._raise_limit()

    def plain_name(self, name: str) -> str:
        """Return a setting's name in the form of :attr:`allowed_settings`."""
        return name.replace("-", "_")

    def _flaw_of(self, name: str, value: str) -> str:
        """Return why the section may not have a setting; "" if it may."""
        plain = self.plain_name(name)
        # Programs accept abbreviations of settings, so refuse abbreviated own_settings, too.
        if plain not in (self.allowed_settings or ()) and any(
            own.startswith(plain) for own in self.own_settings
        ):
            return f"the run sets {name}; leave it out of <settings>"
        if self.allowed_settings is None:
            return ""
        if plain not in self.allowed_settings:
            close = difflib.get_close_matches(plain, self.allowed_settings, n=1, cutoff=0.9)
            advice = f"did you mean {close[0]}?" if close else "leave it out of <settings>"
            return f"a private server takes settings that affect speed, not {name}; {advice}"
        if re.search(r"[/\\]", value):
            return f"{name} of a private server cannot name a path; leave the directory out"
        return ""

    def mistake(self, flaw: str, wrong: str = "") -> UserError:
        """Return an error about a *flaw*, placed at the section's line that begins with *wrong*."""
        return self.section.text.mistake(f"server {self.name}: {flaw}", wrong)

    @property
    def connections(self) -> int:
        """The number of connections that the server has to accept at a time."""
        return max(self.default_connections, CONNECTIONS_PER_CLIENT * self.context.clients)

    def _raise_limit(self) -> None:
        """Raise this process's limit, which the server inherits, to what connections need."""
        needed = CONNECTIONS_PER_CLIENT * self.context.clients + self.own_resources
        soft, hard = resource.getrlimit(self.connection_limit)
        if soft == resource.RLIM_INFINITY or soft >= needed:
            return
        new_hard = hard if hard == resource.RLIM_INFINITY else max(hard, needed)
        try:
            resource.setrlimit(self.connection_limit, (needed, new_hard))
        except (OSError, ValueError):
            files = self.connection_limit == resource.RLIMIT_NOFILE
            raise self.mistake(
                f"for {self.context.clients} clients it needs {needed} "
                f"{'open files' if files else 'processes'}, but this machine allows {hard}; "
                "use fewer clients (-c), or raise the limit (ulimit)"
            ) from None

    def prepare(self) -> None:  # noqa: B027 - not every server needs it
        """Create in :attr:`directory` what the server needs before it starts."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Return the command that starts the server.

        The server has to stay in the foreground and in its process group.
        """

    def environment(self) -> dict[str, str]:
        """Return environment variables; a server run as another user gets only some of them."""
        return dict(os.environ)

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """Versions of the server's software, by name; only those that clients cannot find out."""
        return {}

    def is_ready(self) -> bool:
        """Return whether the server, whose process is running, accepts requests.

        By default, a server is ready if it accepts connections at its port.
        """
        return accepts((self.host, self.port))

    def start(self) -> None:
        """Prepare the server, start it and wait until it is ready."""
        with self._named_in_failures("started"):
            self._set_up()
            self.prepare()
            self._launch()

    def halt(self) -> None:
        """Stop the server and wait for its end; :meth:`resume` restarts it."""
        # After an abrupt stop, the restarted server would recover data, and so fill its caches.
        self._stop(self.orderly)

    def kill(self) -> None:
        """Kill the server and all processes that it started; :meth:`resume` restarts it."""
        if self.pid is not None:
            kill_tree(self.pid)
        self._stop(_BY_FORCE)

    def resume(self) -> None:
        """Start a halted or killed server again, with its data."""
        with self._named_in_failures("started again"):
            self._launch()

    def stop(self) -> None:
        self._stop(self._ending)
        self.directory.close()

    @property
    def pid(self) -> int | None:
        """The process ID; ``None`` if the server has ended: the number may be reused then."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if self._process and running else None

    def how_ended(self) -> Failure | None:
        """Return how the server ended; ``None`` if it is running.

        The detail of the failure is the end of the log, with which its cause ends.
        """
        if self._process is None or self._process.poll() is None:
            return None
        logged = self.last_log_lines()
        return Failure(f"{self._process.describe_exit()}: {logged}", logged)

    def run(self, command: Sequence[str], standard_input: str = "") -> str:
        """Run a program that prepares the server; return its output."""
        self._log_start = self.directory.log_size
        # A program that reads from a pipe would never end if an interrupted run left the pipe open.
        with TemporaryFile(dir=self.context.directory) as file:
            file.write(standard_input.encode())
            file.seek(0)
            process = self._spawn(command, _NO_SIGNAL, file)
        exit_code = process.exit_code(PREPARATION_TIMEOUT)  # on interrupt, the guardian ends it
        process.end(GENTLE)
        if exit_code != 0:
            outcome = "failed" if exit_code else f"took longer than {PREPARATION_TIMEOUT:.0f} s"
            raise ServerFailed(
                f"could not be prepared: {Path(command[0]).name} {outcome}: {self.last_log_lines()}"
            )
        return self.directory.logged(self._log_start)

    def last_log_lines(self) -> str:
        """Return the end of the log since the latest start, or only the errors if there are any."""
        errors = re.escape(self.error_mark)
        lines = last_lines(self.directory.log, errors=errors, start=self._log_start)
        return " / ".join(lines) or "it logged nothing"

    def _set_up(self) -> None:
        """Create the directory, and choose the user and the environment of processes."""
        account = None
        if self.system_accounts is not None:
            data = self.directory.path / _DATA if self.directory.kept else None
            account = account_for(self.system_accounts, self.section.run_as, data)
        self.directory.make(account)
        temporary = str(self.directory.subdirectory("tmp"))
        environment = self.environment()
        if account is not None:
            # The rest of root's environment may contain secrets.
            environment = {name: environment[name] for name in _HARMLESS_VARIABLES & {*environment}}
            self._process_options = {"user": account.uid, "group": account.gid, "extra_groups": []}
            self._process_options["cwd"] = temporary
        self._process_options["env"] = {**environment, "LC_ALL": "C.UTF-8", "TMPDIR": temporary}

    def _launch(self) -> None:
        command = self.command()
        self._log_start = self.directory.log_size
        self._process = self._spawn(command, self._ending, subprocess.DEVNULL)
        deadline = time.monotonic() + START_TIMEOUT
        while self._process.poll() is None:
            if self.is_ready():
                return
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"was not ready within {START_TIMEOUT:.0f} s: {self.last_log_lines()}"
                )
            time.sleep(0.05)
        raise ServerFailed(f"ended at once: {self.last_log_lines()}")

    def _spawn(self, command: Sequence[str], ending: Ending, stdin: int | IO[bytes]) -> Child:
        return self.context.guardian.start(
            command,
            ending,
            stdin=stdin,
            stdout=self.directory.log,
            stderr=subprocess.STDOUT,
            **self._process_options,
        )

    @contextmanager
    def _named_in_failures(self, action: str) -> Iterator[None]:
        try:
            yield
        except (OSError, GuardianLost) as error:
            message = f"server {self.name} could not be {action}: {error}"
            raise ServerFailed(message) from error
        except ServerFailed as error:
            raise ServerFailed(f"server {self.name} {error}") from error

    @property
    def _ending(self) -> Ending:
        return self.orderly if self.directory.kept else self.abrupt

    def _stop(self, ending: Ending) -> None:
        if self._process is not None:
            self._process.end(ending)
            self._process = None


class EncryptingServer(Server):
    """A server whose section may have ``ssl true``; the run makes its certificate."""

    def prepare(self) -> None:
        if self.section.config.ssl:
            for name in ("certificate", "key", "authority"):
                original = Path(self.context.names[f"{self.name}_{name}"])
                self.directory.write(f"{name}.pem", original.read_text(encoding="utf-8"))

    def encryption(self, certificate: str, key: str, authority: str) -> dict[str, str]:
        """Return settings with these names, whose values are the files of the certificate."""
        files = {certificate: "certificate", key: "key", authority: "authority"}
        if not self.section.config.ssl:
            return {}
        return {name: str(self.directory.path / f"{file}.pem") for name, file in files.items()}


class DatabaseServer(EncryptingServer):
    """A server with a data directory, and with the databases and users that its section names.

    The section's type extends ``zodbshootout.databaseserver``.
    """

    @property
    def data(self) -> Path:
        """The directory of the server's data."""
        return self.directory.path / _DATA

    @property
    def databases(self) -> list[str]:
        """The names of the databases that the server has to have."""
        return list(self.section.config.database)

    @property
    def users(self) -> list[str]:
        """The names of the users who may do everything in these databases."""
        return list(self.section.config.user)

    def prepare(self) -> None:
        super().prepare()
        if not self.data.exists():
            shutil.rmtree(self.directory.path / _UNFINISHED, ignore_errors=True)
            unfinished = self.directory.subdirectory(_UNFINISHED)
            self.initialize(unfinished)
            unfinished.rename(self.data)
        self.create_accounts()

    @abstractmethod
    def initialize(self, data: Path) -> None:
        """Have the server's own programs fill the empty directory *data*."""

    @abstractmethod
    def create_accounts(self) -> None:
        """Create missing databases and users, and give every user this run's password."""
