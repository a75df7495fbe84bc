"""Measure the round-trip time of echoes through a relay, and correct the relay's delay.

A relay delays a chunk longer than it intends: it has to receive and send the chunk, and a sleep
does not end exactly on time.
"""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Thread

from zodbshootout.network.relays import (
    ANSWER_TIMEOUT,
    SILENT,
    Address,
    Lateness,
    Relay,
    RelayError,
)

TOLERANCE = 0.05
LEAST_TOLERANCE = 30e-6
"""The smallest tolerance, in seconds."""
TRIES = 3
CLOSE_ENOUGH = LEAST_TOLERANCE / 2
"""The error in seconds below which a correction is not improved further."""
MOST_EARLY = 200e-6
"""The maximum correction in seconds.  If a larger correction seems necessary, something other than
the relay makes round trips longer."""
SECONDS = 0.6
"""The intended duration of a try, in seconds."""
LEAST_ECHOES, MOST_ECHOES = 60, 300


@dataclass(frozen=True)
class Calibration:
    """The round-trip time that a relay delivers with one correction."""

    rtt: float
    """The requested round-trip time in seconds."""
    early: float
    """The correction in seconds: the relay holds each chunk back for *rtt* / 2 - *early*."""
    p10: float
    """The 10th percentile of the delivered times, in seconds; other programs hardly affect it."""
    p50: float
    lateness: Lateness

    @property
    def is_delivered(self) -> bool:
        """Whether the median is within the tolerance."""
        return is_within(self.p50, self.rtt)

    def delivered(self, routes: Sequence[Lateness]) -> float:
        """Estimate the mean seconds of a round trip, given the lateness of chunks on *routes*."""
        chunks = sum(route.chunks for route in routes)
        late = sum(route.mean * route.chunks for route in routes)
        return self.p50 + late / chunks - self.lateness.p50 if chunks else self.p50


def is_within(delivered: float, rtt: float) -> bool:
    """Return whether a delivered round-trip time is close enough to the requested one."""
    return abs(delivered - rtt) <= max(TOLERANCE * rtt, LEAST_TOLERANCE)


def calibrations(rtts: Iterable[float]) -> dict[float, Calibration]:
    """Return a calibration of a relay on this machine for each round-trip time.

    :raises OSError: if the relay cannot be started
    :raises RelayError: if the relay ends or does not answer
    """
    with Relay.start() as relay:
        return {rtt: calibrate(relay, rtt) for rtt in rtts}


def longest(rtts: Iterable[float]) -> float:
    """Return the seconds that :func:`calibrations` takes at most, unless something hangs."""
    return sum((1 + TRIES) * (ANSWER_TIMEOUT + MOST_ECHOES * rtt) for rtt in rtts)


def calibrate(relay: Relay, rtt: float) -> Calibration:
    """Find the correction with which a relay best delivers a round-trip time."""
    result = measure(relay, rtt, 0.0)
    for _ in range(TRIES):
        missing = result.p10 - rtt
        if abs(missing) < CLOSE_ENOUGH:
            break
        early = min(max(0.0, result.early + missing / 2), MOST_EARLY)
        result = measure(relay, rtt, early)
    return result


def measure(relay: Relay, rtt: float, early: float) -> Calibration:
    """Measure the round-trip time that a relay delivers with a given correction.

    :raises RelayError: if the relay ends or does not answer
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = relay.route(server.getsockname(), rtt, early=early)
        try:
            pairs = _echoes(server, address, rtt)
        except TimeoutError as error:
            raise RelayError(SILENT) from error
    direct, relayed = zip(*pairs[len(pairs) // 10 :])
    (p10, p50), (fast, usual) = (
        statistics.quantiles(times, n=10)[:5:4] for times in (relayed, direct)
    )
    return Calibration(rtt, early, p10 - fast, p50 - usual, relay.lateness()[address])


def _echoes(server: socket.socket, relay: Address, rtt: float) -> list[list[float]]:
    """Return pairs of durations in seconds: of a direct echo, and of an echo through the relay."""
    count = min(max(LEAST_ECHOES, round(SECONDS / max(rtt, 1e-6))), MOST_ECHOES)
    patience = ANSWER_TIMEOUT + rtt
    server.settimeout(patience)
    clients = []
    with ExitStack() as stack:
        for one in (server.getsockname(), relay):
            assert isinstance(one, tuple)
            clients.append(stack.enter_context(_connected(one, patience)))
            Thread(target=_echo, args=(server.accept()[0],), daemon=True).start()
        return [[_seconds(client) for client in clients] for _ in range(count)]


def _connected(address: tuple[str, int], patience: float) -> socket.socket:
    connection = socket.create_connection(address, patience)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _seconds(client: socket.socket) -> float:
    start = time.perf_counter()
    client.sendall(b"echo")
    client.recv(64)
    return time.perf_counter() - start


def _echo(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        while received := connection.recv(64):
            connection.sendall(received)
