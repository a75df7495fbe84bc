"""The relay: a program that copies, counts and delays bytes between clients and servers.

For each *route* the relay listens in place of a server.  In both directions, it passes chunks on
in order, each half a round-trip time after its arrival.  If the relay sends a request late, it
makes up for this by sending the answer early.  The relay does not inspect or drop chunks, or limit
the bandwidth.

The relay's owner writes orders to the relay's standard input.  An order is a JSON array on one
line, and the relay answers with one line.  The relay ends when its standard input is closed, so it
does not outlive a killed owner.  The program needs only the standard library:
``python -I -S relay.py``.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import heapq
import itertools
import json
import os
import resource
import select
import selectors
import signal
import socket
import struct
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

Chunk = Union[bytes, memoryview, None]
"""Bytes to send; empty after the peer's last bytes, ``None`` if the peer reset the connection."""
CHUNK_SIZE = 1 << 16
WINDOW = 4 << 20
"""The relay stops reading from one side while this many bytes are in transit to the other."""
LONGEST_SPIN = 0.0002
"""The relay stays awake for at most this many seconds before a chunk is due."""
SPIN_STEP = 2e-6
PUNCTUAL_SHARE = 0.75
"""The share of sleeps that should end before the next chunk is due."""
PR_SET_TIMERSLACK = 29
SO_TIMESTAMPNS = 35
"""A Linux option that delivers bytes together with the time of their arrival."""
TIMESPEC = struct.Struct("@ll")
RESETTING = struct.pack("ii", 1, 0)
"""The ``SO_LINGER`` value that makes closing a socket reset its connection."""


@dataclass
class Route:
    """A server, the listener that replaces it, and counts of the traffic through the listener."""

    listener: socket.socket
    targets: Sequence[Any]
    """The addresses of the server, from :func:`socket.getaddrinfo`, to try in turn."""
    rtt: float
    delay: float
    trips: int = 0
    sent: int = 0
    received: int = 0
    connections: int = 0
    lateness: Counter[int] = field(default_factory=Counter)
    """The number of chunks sent to clients, by their lateness in microseconds."""

    def summarize_lateness(self) -> list[float]:
        """Return the number of chunks, and the mean and median of their lateness in seconds."""
        number = sum(self.lateness.values())
        total = sum(value * times for value, times in self.lateness.items())
        left = number / 2
        for microseconds, times in sorted(self.lateness.items()):
            left -= times
            if left <= 0:
                return [number, 1e-6 * total / number, 1e-6 * microseconds]
        return [0, 0.0, 0.0]


class End:
    """One end of a connection, the client's or the server's, and a queue of chunks for it."""

    peer: End

    def __init__(self, route: Route, opened: float, client: socket.socket | None = None) -> None:
        self.route = route
        self.opened = opened
        """The earliest instant at which a chunk from this end counts as arrived.  For a client's
        end, it is one round trip after the client connected to the relay."""
        self.socket: Any = client
        """The socket; ``None`` for a server's end until the relay connects to it."""
        self.is_client = self.is_connected = client is not None
        self.targets = iter(route.targets)
        self.queue: deque[tuple[float, Chunk]] = deque()
        self.size = 0
        self.is_blocked = False
        self.is_read = self.is_written = False
        """``is_read``: nothing more comes from here.  ``is_written``: nothing more goes here."""
        self.has_received = True
        """Whether this end has received something since it last sent something."""
        self.lateness = 0.0
        """Seconds by which the relay sent the last chunk to this end late.  When the relay makes up
        for this lateness by sending an answer early, the attribute becomes 0."""
        self.events = 0

    def wanted_events(self) -> int:
        """Return what the selector should wait for."""
        is_wanted = self.is_connected and not self.is_read and self.peer.size < WINDOW
        return selectors.EVENT_READ * is_wanted | selectors.EVENT_WRITE * self.is_blocked

    def count(self, size: int) -> None:
        """Count bytes that came from this end."""
        if self.is_client:
            self.route.sent += size
            self.route.trips += self.has_received
            self.has_received = False
        else:
            self.route.received += size

    def note(self, lateness: float) -> None:
        """Record by how many seconds a chunk to this end is late."""
        self.lateness = lateness
        if self.is_client:
            self.route.lateness[round(1e6 * lateness)] += 1


class Loop:
    """The loop that waits until bytes or an order arrive, or a chunk is due."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.selector = selectors.DefaultSelector()
        self.oversleep = 0.0
        """The seconds by which sleeps last too long, learned from earlier sleeps."""
        self._routes: list[Route] = []
        self._clients: set[End] = set()
        self._instants: list[tuple[float, int, End]] = []
        self._serial = itertools.count()

    def add_route(self, target: Any, rtt: float, early: float, directory: str) -> Any:
        """Listen in place of a server; return the address.

        :param target: a host and a port, or the path of a Unix socket
        :param rtt: the round-trip time in seconds
        :param early: the correction in seconds: each chunk is held back for *rtt* / 2 - *early*
        :param directory: where to create the socket that replaces a Unix socket of the same name
        :raises OSError: if the host is unknown, or the relay cannot listen
        """
        targets: Sequence[Any]
        if isinstance(target, str):
            targets = [(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", target)]
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(os.path.join(directory, os.path.basename(target)))  # noqa: PTH118, PTH119
            listener.listen(socket.SOMAXCONN)
        else:
            host, port = target
            targets = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            listener = socket.create_server(("127.0.0.1", 0), backlog=socket.SOMAXCONN)
        listener.setblocking(False)
        route = Route(listener, targets, rtt, rtt / 2 - early)
        self._routes.append(route)
        self.selector.register(listener, selectors.EVENT_READ, lambda _: self._accept(route))
        return listener.getsockname()

    def counts(self) -> list[list[int]]:
        """Return each route's round trips, bytes sent, bytes received and connections.

        The counts include all bytes that have arrived, unless :data:`WINDOW` prevents reading them.
        """
        reading = selectors.EVENT_READ
        while ready := [key for key, events in self.selector.select(0) if events & reading]:
            for key in ready:
                key.data(reading)
        return [
            [route.trips, route.sent, route.received, route.connections] for route in self._routes
        ]

    def lateness(self) -> list[list[float]]:
        """Return :meth:`Route.summarize_lateness` for each route."""
        return [route.summarize_lateness() for route in self._routes]

    def close(self) -> None:
        """Close all connections, and remove the Unix sockets that the loop created."""
        for client in tuple(self._clients):
            self._close(client)
        for route in self._routes:
            if route.listener.family == socket.AF_UNIX:
                with contextlib.suppress(OSError):
                    os.unlink(route.listener.getsockname())  # noqa: PTH108
            route.listener.close()
        self.selector.close()

    def step(self) -> None:
        """Wait until something happens or is due, and handle it."""
        for key, events in self._ready():
            key.data(events)
        while self._instants and self._instants[0][0] <= self.clock():
            instant, _, end = heapq.heappop(self._instants)
            if not (end.is_blocked or end.is_written):
                end.note(self.clock() - instant)
                (self._send if end.is_connected else self._connect)(end)

    def _ready(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events, or until shortly before the next chunk is due; return the events."""
        if not self._instants:
            return self.selector.select()
        start = self.clock()
        seconds = self._instants[0][0] - start - self.oversleep
        if seconds > 0:
            # epoll's own timeout has a resolution of one millisecond.
            ready, _, _ = select.select([self.selector.fileno()], [], [], seconds)
            if not ready:
                self._learn(self.clock() - start - seconds)
        return self.selector.select(0)

    def _learn(self, oversleep: float) -> None:
        step = SPIN_STEP * (PUNCTUAL_SHARE - (oversleep <= self.oversleep))
        self.oversleep = min(max(0.0, self.oversleep + step), LONGEST_SPIN)

    def _accept(self, route: Route) -> None:
        try:
            connection, _ = route.listener.accept()
        except (BlockingIOError, ConnectionError):  # the client is gone
            return
        _prepare(connection)
        now = self.clock()
        client, server = End(route, now + route.rtt, connection), End(route, now)
        client.peer, server.peer = server, client
        self._clients.add(client)
        route.connections += 1
        route.trips += 1
        self._watch(client)
        self._call(client.opened + route.delay, server)

    def _call(self, instant: float, end: End) -> None:
        heapq.heappush(self._instants, (instant, next(self._serial), end))

    def _watch(self, end: End) -> None:
        events = end.wanted_events()
        if events == end.events:
            return
        if end.events:
            self.selector.unregister(end.socket)
        if events:
            self.selector.register(end.socket, events, functools.partial(self._handle, end))
        end.events = events

    def _handle(self, end: End, events: int) -> None:
        if events & end.events & selectors.EVENT_WRITE:
            self._unblock(end)
        if events & end.events & selectors.EVENT_READ:
            self._receive(end)

    def _connect(self, end: End) -> None:
        """Connect to the server's next address; if none is left, reset the client's connection."""
        for family, kind, protocol, _, address in end.targets:
            if end.socket is not None:
                end.socket.close()
            try:
                end.socket = socket.socket(family, kind, protocol)
                _prepare(end.socket)
                end.socket.connect(address)
            except BlockingIOError:
                end.is_blocked = True
                self._watch(end)
            except OSError:
                continue
            else:
                end.is_connected = True
                self._send(end)
            return
        self._reset(end)

    def _unblock(self, end: End) -> None:
        end.is_blocked = False
        if not end.is_connected and end.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._watch(end)
            self._connect(end)
        else:
            end.is_connected = True
            self._send(end)

    def _receive(self, end: End) -> None:
        chunk: Chunk
        ancillary: Iterable[Any]
        try:
            chunk, ancillary, _, _ = end.socket.recvmsg(CHUNK_SIZE, 64)
        except BlockingIOError:
            return
        except OSError:
            chunk, ancillary = None, ()
        peer = end.peer
        instant = max(end.opened, self._arrival(ancillary)) + end.route.delay
        if not end.is_client:  # an answer makes up for its request's lateness
            instant -= end.lateness
            end.lateness = 0.0
        peer.queue.append((instant, chunk))
        if chunk:
            end.count(len(chunk))
            peer.size += len(chunk)
        else:
            end.is_read = True
        self._watch(end)
        self._call(instant, peer)

    def _arrival(self, ancillary: Iterable[Any]) -> float:
        """Return the instant at which bytes arrived, by the kernel's timestamp if there is one."""
        age = 0.0
        for _, _, stamp in ancillary:
            seconds, nanoseconds = TIMESPEC.unpack(stamp)
            age = max(0.0, time.time() - seconds - 1e-9 * nanoseconds)
        return self.clock() - age

    def _send(self, end: End) -> None:
        """Send the chunks that are due, as far as the socket accepts them."""
        while end.queue and end.queue[0][0] <= self.clock():
            instant, chunk = end.queue.popleft()
            if chunk is None:
                self._reset(end)
                return
            try:
                taken = end.socket.send(chunk) if chunk else end.socket.shutdown(socket.SHUT_WR)
            except BlockingIOError:
                taken = 0
            except OSError:  # the end accepts no more, but may still be read
                chunk = None
                end.queue.clear()
                end.size = 0
            if not chunk:
                self._finish(end)
                return
            end.size -= taken
            end.has_received = end.has_received or taken > 0
            if taken < len(chunk):
                end.queue.appendleft((instant, memoryview(chunk)[taken:]))
                end.is_blocked = True
                break
        self._watch(end)
        self._watch(end.peer)

    def _finish(self, end: End) -> None:
        end.is_written = True
        if end.peer.is_written:
            self._close(end)
        else:
            self._watch(end)
            self._watch(end.peer)

    def _reset(self, end: End) -> None:
        for one in (end, end.peer):
            if one.is_connected:
                one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETTING)
        self._close(end)

    def _close(self, end: End) -> None:
        self._clients -= {end, end.peer}
        for one in (end, end.peer):
            one.is_read = one.is_written = True
            one.is_blocked = False
            one.queue.clear()
            if one.socket is not None:
                self._watch(one)
                one.socket.close()


def _prepare(connection: socket.socket) -> None:
    connection.setblocking(False)
    if connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform == "linux":
            connection.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)


def main() -> None:
    """Relay until the standard input is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner handles Ctrl-C
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    _hurry()
    loop = Loop()
    loop.selector.register(sys.stdin, selectors.EVENT_READ, lambda _: _obey(loop))
    try:
        while True:
            loop.step()
    finally:
        loop.close()


def _obey(loop: Loop) -> None:
    """Carry out the order that has arrived; exit if there will be no more orders."""
    text = os.read(sys.stdin.fileno(), CHUNK_SIZE)  # short lines are written and read as a whole
    if not text:
        sys.exit()
    word, *arguments = json.loads(text)
    try:
        answer = {"answer": getattr(loop, word)(*arguments)}
    except (OSError, ValueError) as error:
        answer = {"error": getattr(error, "strerror", None) or str(error)}
    os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")


def _hurry() -> None:
    """Ask the system for punctual wake-ups and many open files; continue if it refuses."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
        with contextlib.suppress(OSError):  # not privileged
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


if __name__ == "__main__":
    main()
