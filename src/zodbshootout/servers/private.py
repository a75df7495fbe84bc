"""A server process of the run's own: prepared, started, waited for, stopped."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar

from zodbshootout.config.configuration import ConfigurationError, Source
from zodbshootout.config.sections import ServerSection
from zodbshootout.guardian import GENTLE, Ending, Guardian, end_group, manner_of_end
from zodbshootout.servers.account import account_for
from zodbshootout.servers.address import accepts
from zodbshootout.servers.failure import ServerFailed
from zodbshootout.servers.home import Home

START_TIMEOUT = 60.0
"""Seconds that a server may take until it is ready."""
PREPARATION_TIMEOUT = 120.0
"""Seconds that a program may take that a server needs to have run before it."""
LOG_LINES = 5
_BY_ITSELF = Ending(signal=0, grace=10.0)
"""How the programs end that prepare a server: killed, PostgreSQL's would leave shared memory."""
DATA = "data"
"""What the directory of a server's data is called, in its home."""
_PASSED_ON = frozenset({"PATH", "TZ", "LD_LIBRARY_PATH"})


@dataclass(frozen=True)
class Site:
    """What a run gives to its servers."""

    directory: Path
    """Where each has a directory of its own, unless its section names one to keep."""
    source: Source
    names: Mapping[str, str]
    """What is defined in the source beside what it defines itself."""
    guardian: Guardian
    interrupted: threading.Event = field(default_factory=threading.Event)
    """Set when nobody waits for servers any more."""


class Server(ABC):
    """A server section.  What differs between servers is how each is prepared and called."""

    own_settings: ClassVar[frozenset[str]] = frozenset()
    """What the run sets, so that the section must not."""
    accounts: ClassVar[Sequence[str] | None] = None
    """As whom root has it run, the first that there is; ``None`` if as root."""
    error_mark: ClassVar[str] = ""
    """What is in the lines of its log that tell of errors, if those can be told from others."""

    orderly: ClassVar[Ending] = GENTLE
    """How it is stopped when it will be started again on its data."""
    abrupt: ClassVar[Ending] = GENTLE
    """How it is stopped when its data go away."""

    def __init__(self, section: ServerSection, site: Site) -> None:
        """Take a section; nothing is started.

        :raises ConfigurationError: when it sets what is not its to set
        """
        self.name = section.name
        self.section = section
        self.site = site
        self.host = site.names[f"{self.name}_host"]
        self.port = int(site.names[f"{self.name}_port"])
        self.password = site.names[f"{self.name}_password"]
        kept = Path(section.directory).absolute() if section.directory else None
        self.home = Home(kept or site.directory / f"server-{self.name}", kept=kept is not None)
        self._process: subprocess.Popen[bytes] | None = None
        self._as_whom: dict[str, Any] = {}
        self._log_start = 0
        for name in section.settings:
            # The long options of programs may be abbreviated.
            if any(own.startswith(name.replace("-", "_")) for own in self.own_settings):
                raise ConfigurationError(
                    f"{site.source.path}: server {self.name}: {name} is set by the run; leave it "
                    "out of <settings>"
                )

    def prepare(self) -> None:  # noqa: B027 - not every server needs it
        """Write to the directory, or have written, what the server needs before it starts.

        :raises ServerFailed: when it cannot be done
        """

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Return the command that starts the server.

        :raises ServerFailed: when there is no such program
        """

    def is_ready(self) -> bool:
        """Say whether the server, which is running, takes requests."""
        return accepts((self.host, self.port))

    def start(self) -> None:
        """Prepare the server, start it and wait until it is ready.

        :raises ServerFailed: when it ends, or takes longer than :data:`START_TIMEOUT`
        """
        try:
            self._move_in()
            self.prepare()
            self._launch()
        except OSError as error:
            raise ServerFailed(f"could not be started: {error}") from error

    def halt(self) -> None:
        """Stop the server for :meth:`resume`, and wait for its end."""
        # Orderly, for a server that has to recover what it did reads it into its caches.
        self._stop(self.orderly)

    def resume(self) -> None:
        """Start the server on the data that it had when it was halted.

        :raises ServerFailed: as :meth:`start`
        """
        try:
            self._launch()
        except OSError as error:
            raise ServerFailed(f"could not be started again: {error}") from error

    def obituary(self) -> str | None:
        """Say how the server has ended and its last words, or return ``None`` if it runs."""
        if self._process is None or self._process.poll() is None:
            return None
        return f"{manner_of_end(self._process.returncode)}: {self.last_words()}"

    @property
    def pid(self) -> int | None:
        """The id of the process, ``None`` before it is started."""
        return self._process.pid if self._process else None

    def stop(self) -> None:
        """Stop the server and wait for its end; a server that is not running is left alone."""
        self._stop(self._ending)
        self.home.close()

    @property
    def _ending(self) -> Ending:
        return self.orderly if self.home.kept else self.abrupt

    def _stop(self, ending: Ending) -> None:
        if self._process is None:
            return
        end_group(self._process.pid, ending, reap=self._process.poll)
        self._process.wait()
        self.site.guardian.release_group(self._process.pid)
        self._process = None

    def run(self, command: Sequence[str], words: str = "") -> str:
        """Run a program to its end, with *words* to read; return what it printed.

        :raises ServerFailed: when it fails
        """
        self._log_start = self.home.log_size
        # Of a pipe an interrupted run would hold the other end, and the program wait for more.
        with TemporaryFile(dir=self.site.directory) as given:
            given.write(words.encode())
            given.seek(0)
            process = self._spawn(command, _BY_ITSELF, given)
        try:
            process.wait(PREPARATION_TIMEOUT)
        except subprocess.TimeoutExpired:
            end_group(process.pid, reap=process.poll)
            process.wait()
            self.site.guardian.release_group(process.pid)
            raise ServerFailed(
                f"is not prepared: {Path(command[0]).name} took longer than "
                f"{PREPARATION_TIMEOUT:.0f} s: {self.last_words()}"
            ) from None
        self.site.guardian.release_group(process.pid)
        if process.returncode:
            raise ServerFailed(
                f"is not prepared: {Path(command[0]).name} failed: {self.last_words()}"
            )
        return self.home.logged(self._log_start)

    def last_words(self) -> str:
        """Return the last lines of what was logged since the last start, as one line.

        Only those that tell of errors, if there are such.
        """
        lines = [
            line.strip() for line in self.home.logged(self._log_start).split("\n") if line.strip()
        ]
        errors = [line for line in lines if self.error_mark in line]
        return " / ".join((errors or lines)[-LOG_LINES:]) or "it logged nothing"

    def _move_in(self) -> None:
        account = None
        if self.accounts is not None:
            data = self.home.path / DATA if self.home.kept else None
            account = account_for(self.accounts, self.section.run_as, data)
        self.home.make(account)
        temporary = str(self.home.directory("tmp"))
        environment: dict[str, str] = dict(os.environ)
        if account is not None:
            # What else root has in its environment may be secret.
            environment = {key: text for key, text in environment.items() if key in _PASSED_ON}
            self._as_whom = {"user": account.uid, "group": account.gid, "extra_groups": []}
            self._as_whom["cwd"] = temporary
        self._as_whom["env"] = {**environment, "LC_ALL": "C.UTF-8", "TMPDIR": temporary}

    def _launch(self) -> None:
        command = self.command()
        self._log_start = self.home.log_size
        self._process = self._spawn(command, self._ending, subprocess.DEVNULL)
        self._wait(self._process)

    def _spawn(
        self, command: Sequence[str], ending: Ending, stdin: int | IO[bytes]
    ) -> subprocess.Popen[bytes]:
        return self.site.guardian.start(
            command,
            ending,
            stdin=stdin,
            stdout=self.home.log,
            stderr=subprocess.STDOUT,
            **self._as_whom,
        )

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while process.poll() is None:
            if self.is_ready():
                return
            if self.site.interrupted.is_set():
                raise ServerFailed("was not waited for: the run was interrupted")
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"was not ready within {START_TIMEOUT:.0f} s: {self.last_words()}"
                )
            time.sleep(0.05)
        raise ServerFailed(f"ended at once: {self.last_words()}")
