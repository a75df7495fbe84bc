"""A server process of the run's own: started, waited for, stopped."""

from __future__ import annotations

import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from zodbshootout.config.configuration import Source
from zodbshootout.config.sections import ServerSection
from zodbshootout.guardian import Guardian, end_group
from zodbshootout.servers.address import accepts, split

START_TIMEOUT = 30.0
"""Seconds that a server may take until it accepts connections."""
LOG_LINES = 5


class ServerFailed(Exception):  # noqa: N818
    """A server did not come up.  The message ends with the last lines it logged."""


@dataclass(frozen=True)
class Site:
    """Where a server runs and what it is made from."""

    address: str
    """``host:port``."""
    directory: Path
    """Its own, not yet made."""
    source: Source
    names: Mapping[str, str]
    """What is defined in the source beside what it defines itself."""
    guardian: Guardian


class Server(ABC):
    """A server section.  What differs between servers is how each is configured and called."""

    def __init__(self, section: ServerSection) -> None:
        self.name = section.name
        self._site: Site | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self, site: Site) -> Sequence[str]:
        """Write what the server needs to its directory; return the command that starts it."""

    def start(self, site: Site) -> None:
        """Start the server and wait until it accepts connections.

        :raises ServerFailed: when it ends, or takes longer than :data:`START_TIMEOUT`
        """
        site.directory.mkdir()
        self._site = site
        with self._log.open("wb") as log:
            self._process = site.guardian.start(
                self.command(site),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait(site.address)

    @property
    def _log(self) -> Path:
        assert self._site is not None
        return self._site.directory / "server.log"

    def _wait(self, address: str) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT
        while not accepts(split(address)):
            if self._process.poll() is not None:
                raise ServerFailed(f"server {self.name} ended at once: {self.last_words()}")
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"server {self.name} accepted no connection within {START_TIMEOUT:.0f} s: "
                    f"{self.last_words()}"
                )
            time.sleep(0.05)

    def last_words(self) -> str:
        """Return the last lines of the server's log, as one line."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
        lines = [line.strip() for line in lines if line.strip()]
        return " / ".join(lines[-LOG_LINES:]) or "it logged nothing"

    def stop(self) -> None:
        """Stop the server and wait for its end; a server that is not running is left alone."""
        if self._process is None or self._site is None:
            return
        end_group(self._process.pid, reap=self._process.poll)
        self._process.wait()
        self._site.guardian.release_group(self._process.pid)
        self._process = None
