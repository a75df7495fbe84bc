"""Start and control relays from another process, and read the traffic on each of their routes."""

from __future__ import annotations

import contextlib
import json
import operator
import select
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Union

Address = Union[tuple[str, int], str]
"""A host and a port, or the path of a Unix socket."""
ANSWER_TIMEOUT = 30.0
"""Seconds to wait for an answer of the relay, which may have to resolve the names of hosts."""
ENDED = "the relay between clients and servers has ended"
SILENT = "the relay between clients and servers does not answer"
PROGRAM = Path(__file__).with_name("relay.py")


class RelayError(Exception):
    """The relay has ended, does not answer, or cannot replace a server; the message is one line."""


@dataclass(frozen=True)
class Traffic:
    """The traffic between clients and a server."""

    trips: int = 0
    """Round trips: how often a client connected, or sent something after receiving something."""
    sent: int = 0
    """Bytes from clients to the server."""
    received: int = 0
    """Bytes from the server to clients."""
    connections: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*map(operator.add, astuple(self), astuple(other)))

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(*map(operator.sub, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Lateness:
    """The number of chunks that a relay sent to clients, and the chunks' lateness in seconds."""

    chunks: int
    mean: float
    p50: float


class Relay:
    """A process to which clients connect instead of their servers.

    The process ends with its owner.  Methods raise :class:`RelayError` if they fail.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._addresses: list[Address] = []

    @classmethod
    def start(cls) -> Relay:
        """Start a relay that has no routes.

        Linux gives each session a share of processor time, so the relay gets its own session.
        """
        return cls(
            subprocess.Popen(
                [sys.executable, "-I", "-S", str(PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        )

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def route(
        self, target: Address, rtt: float = 0.0, *, early: float = 0.0, directory: str = ""
    ) -> Address:
        """Make the relay listen in place of a server; return the address of the relay.

        :param target: the address of the server
        :param rtt: the round-trip time between clients and the server, in seconds
        :param early: the correction that :func:`~zodbshootout.network.calibration.calibrate` found
        :param directory: where to create the relay's socket if *target* is a Unix socket.  The
            relay's socket gets the file name of *target*, so *directory* must not contain a file
            with this name yet
        """
        answer = self._ask("add_route", target, rtt, early, directory)
        address = answer if isinstance(answer, str) else (answer[0], answer[1])
        self._addresses.append(address)
        return address

    def counts(self) -> dict[Address, Traffic]:
        """Return the traffic of each route, including everything sent so far."""
        return self._by_address(Traffic(*counts) for counts in self._ask("counts"))

    def lateness(self) -> dict[Address, Lateness]:
        """Return the lateness of the chunks on each route."""
        return self._by_address(Lateness(*figures) for figures in self._ask("lateness"))

    def check(self) -> None:
        """Raise :class:`RelayError` if the relay has ended."""
        if self.process.poll() is not None:
            raise RelayError(ENDED)

    def end(self) -> None:
        """End the relay and its connections, and remove the sockets that it created."""
        with self.process:
            self.process.terminate()
            try:
                self.process.wait(ANSWER_TIMEOUT)
            except subprocess.TimeoutExpired:
                self.process.kill()

    def _by_address(self, values: Iterable[Any]) -> dict[Address, Any]:
        return dict(zip(self._addresses, values))

    def _ask(self, word: str, *arguments: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps([word, *arguments]).encode() + b"\n")
        if not select.select([self.process.stdout], [], [], ANSWER_TIMEOUT)[0]:
            raise RelayError(SILENT)
        line = self.process.stdout.readline()
        if not line:
            raise RelayError(ENDED)
        answer = json.loads(line)
        if "error" in answer:
            target = arguments[0]
            name = target if isinstance(target, str) else f"{target[0]}:{target[1]}"
            raise RelayError(f"{name}: the relay cannot replace this server: {answer['error']}")
        return answer["answer"]
