"""A server process of the run's own: prepared, started, waited for, stopped."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

from zodbshootout.config.configuration import ConfigurationError, Source
from zodbshootout.config.sections import ServerSection
from zodbshootout.guardian import GENTLE, Ending, Guardian, end_group
from zodbshootout.servers.account import Account, account_for
from zodbshootout.servers.address import accepts
from zodbshootout.servers.failure import ServerFailed

START_TIMEOUT = 60.0
"""Seconds that a server may take until it is ready."""
PREPARATION_TIMEOUT = 120.0
"""Seconds that a program may take that a server needs to have run before it."""
LOG_LINES = 5
_BY_ITSELF = Ending(signal=0, grace=10.0)
"""How the programs end that prepare a server: killed, PostgreSQL's would leave shared memory."""
LOG = "server.log"


@dataclass(frozen=True)
class Site:
    """What a run gives to its servers."""

    directory: Path
    """Where each has a directory of its own, unless its section names one to keep."""
    source: Source
    names: Mapping[str, str]
    """What is defined in the source beside what it defines itself."""
    guardian: Guardian


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
        self.kept = Path(section.directory).absolute() if section.directory else None
        self.directory = self.kept or site.directory / f"server-{self.name}"
        self._process: subprocess.Popen[bytes] | None = None
        self._account: Account | None = None
        self._log_start = 0
        self._claim: IO[bytes] | None = None
        for name in section.settings:
            if name.replace("-", "_") in self.own_settings:
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
            self._make_directory()
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
        self._launch()

    def stop(self) -> None:
        """Stop the server and wait for its end; a server that is not running is left alone."""
        self._stop(self._ending)
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    @property
    def _ending(self) -> Ending:
        return self.orderly if self.kept else self.abrupt

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
        self._log_start = self._log.stat().st_size
        with self._log.open("ab") as log:
            process = self.site.guardian.start(
                command, _BY_ITSELF, stdin=subprocess.PIPE, **self._surroundings(log)
            )
        try:
            process.communicate(words.encode(), timeout=PREPARATION_TIMEOUT)
        except subprocess.TimeoutExpired:
            end_group(process.pid, reap=process.poll)
            process.communicate()
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
        return self._logged()

    def give(self, path: Path) -> None:
        """Make a file the property of whoever runs the server."""
        if self._account is not None:
            os.chown(path, self._account.uid, self._account.gid)

    def last_words(self) -> str:
        """Return the last lines of what was logged since the last start, as one line.

        Only those that tell of errors, if there are such.
        """
        lines = [line.strip() for line in self._logged().split("\n") if line.strip()]
        errors = [line for line in lines if self.error_mark in line]
        return " / ".join((errors or lines)[-LOG_LINES:]) or "it logged nothing"

    def _make_directory(self) -> None:
        if self.accounts is not None:
            self._account = account_for(self.accounts, self.section.run_as, self.kept)
        new = not self.directory.exists()
        self.directory.mkdir(mode=0o700, parents=self.kept is not None, exist_ok=True)
        if self.kept and not new and not self._log.exists() and any(self.kept.iterdir()):
            raise ServerFailed(
                f"cannot keep its data in {self.kept}: other things are there; name an empty "
                "directory, or one that such a server has made"
            )
        if self._account is not None:
            if new:
                self.give(self.directory)
            self._check_way(self._account)
        self._log.touch(mode=0o600)
        if self.kept:
            self._lay_claim()

    def _lay_claim(self) -> None:
        # Not every server looks before it writes, nor says at once that another is there.
        claim = self._log.open("rb")
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            claim.close()
            raise ServerFailed(
                f"cannot keep its data in {self.kept}: another server has its data there now"
            ) from None
        self._claim = claim

    def _check_way(self, account: Account) -> None:
        if self.kept is None:
            # Nobody can list it, but whoever has something in it can go there.
            self.site.directory.chmod(0o711)
        if closed := account.first_closed(self.directory):
            where = "directory" if self.kept else "TMPDIR"
            raise ServerFailed(
                f"has to run as user {account.name}, who may not enter {closed}; choose another "
                f"{where}, or another user with run-as"
            )

    def _launch(self) -> None:
        self._log_start = self._log.stat().st_size
        with self._log.open("ab") as log:
            self._process = self.site.guardian.start(
                self.command(), self._ending, stdin=subprocess.DEVNULL, **self._surroundings(log)
            )
        self._wait(self._process)

    def _surroundings(self, log: Any) -> dict[str, Any]:
        options: dict[str, Any] = {
            "stdout": log,
            "stderr": subprocess.STDOUT,
            # The TMPDIR of whoever runs us may not be for the server's user, and is left as it is.
            "env": {**os.environ, "LC_ALL": "C.UTF-8", "TMPDIR": str(self.directory)},
        }
        if self._account is not None:
            options |= {
                "user": self._account.uid,
                "group": self._account.gid,
                "extra_groups": [],
                "cwd": self.directory,
            }
        return options

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while process.poll() is None:
            if self.is_ready():
                return
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"was not ready within {START_TIMEOUT:.0f} s: {self.last_words()}"
                )
            time.sleep(0.05)
        raise ServerFailed(f"ended at once: {self.last_words()}")

    @property
    def _log(self) -> Path:
        return self.directory / LOG

    def _logged(self) -> str:
        with self._log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")
