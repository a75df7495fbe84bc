"""The owner's end of a relay: its routes, and what was counted on each of them."""

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
"""The maximum time in seconds for an answer of the relay, which looks up the names of hosts."""
ENDED = "the relay between clients and servers has ended"
PROGRAM = Path(__file__).with_name("relay.py")


class RelayError(Exception):
    """The relay has ended, does not answer, or cannot stand in for a server; one line."""


@dataclass(frozen=True)
class Traffic:
    """The traffic between clients and a server."""

    trips: int = 0
    """Round trips: how often a client has connected, or sent something after it had received."""
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
    """The seconds by which a relay has sent chunks later than they were due."""

    chunks: int
    mean: float
    p50: float


class Relay:
    """A process that clients connect to instead of to their servers; it ends when its owner does.

    An order that it cannot carry out raises :class:`RelayError`.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._addresses: list[Address] = []

    @classmethod
    def start(cls) -> Relay:
        """Start a relay that has no routes.

        It has a session of its own because Linux divides processor time among sessions first.
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
        """Have the relay listen in a server's place, and return the address where it does.

        :param target: the address of the server
        :param rtt: the round-trip time in seconds between its clients and the server
        :param early: the correction that :func:`~zodbshootout.network.calibration.calibrate` found
        :param directory: where the relay makes a socket that stands in for a Unix socket; the name
            is that of the server's socket, so no other one of the directory may have it
        """
        answer = self._ask("add_route", target, rtt, early, directory)
        address = answer if isinstance(answer, str) else (answer[0], answer[1])
        self._addresses.append(address)
        return address

    def counts(self) -> dict[Address, Traffic]:
        """Return the traffic of each route, with everything that was sent before."""
        return self._by_address(Traffic(*counts) for counts in self._ask("counts"))

    def lateness(self) -> dict[Address, Lateness]:
        """Return by how much the chunks of each route were late."""
        return self._by_address(Lateness(*figures) for figures in self._ask("lateness"))

    def check(self) -> None:
        """Raise :class:`RelayError` if the relay has ended."""
        if self.process.poll() is not None:
            raise RelayError(ENDED)

    def end(self) -> None:
        """End the relay, its connections and the sockets that it has made."""
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
            raise RelayError("the relay between clients and servers does not answer")
        line = self.process.stdout.readline()
        if not line:
            raise RelayError(ENDED)
        answer = json.loads(line)
        if "error" in answer:
            target = arguments[0]
            name = target if isinstance(target, str) else f"{target[0]}:{target[1]}"
            raise RelayError(f"{name}: the relay cannot stand in for it: {answer['error']}")
        return answer["answer"]
