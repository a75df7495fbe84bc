"""Distance: the round-trip time that a relay delivers, next to a process that is never idle.

Clients in separate processes use an echo server: one client that does not pause, and sixteen that
do, because otherwise sixteen would saturate two processors even without a relay.  Each client sends
the same message to the server directly and through a relay for each round-trip time, in turn; the
relay delivers the difference between the medians of all clients.  It was calibrated before, as
before a run.

The relay's own figures follow: how late it was, and the mean round-trip time according to that.
They should show it if a machine cannot deliver a round-trip time.
"""

from __future__ import annotations

import itertools
import multiprocessing
import random
import select
import socket
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager

from benchmarks.line import Line, at_most, info
from zodbshootout.network.calibration import LEAST_TOLERANCE, TOLERANCE, calibrate
from zodbshootout.network.relays import Address, Relay

RTTS = (0.0002, 0.001, 0.005)
CLIENTS = (1, 16)
ECHOES = 1600
"""The number of echoes per distance, by all clients together."""
PAUSES = {1: 0.0, 16: 0.02}
"""The mean pause between echoes of a client in seconds, by the number of clients."""


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the delivered time for each number of clients and round-trip time."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=100))
        stack.enter_context(_process(_echo, listener))
        stack.enter_context(_process(_compute))
        for clients in CLIENTS:
            with Relay.start() as relay:
                echoes = (64 if quick else ECHOES) // clients
                yield from _delivered(relay, listener.getsockname(), clients, echoes)


def _delivered(relay: Relay, server: Address, clients: int, echoes: int) -> Iterator[Line]:
    calibrations = [calibrate(relay, rtt) for rtt in RTTS]
    routes = [relay.route(server, one.rtt, early=one.early) for one in calibrations]
    direct, *relayed = _round_trips([server, *routes], clients, echoes)
    lateness = relay.lateness()
    usual = statistics.median(direct)
    crew = "one client" if clients == 1 else f"{clients} clients"
    yield info(f"distance: {crew}, directly", 1e6 * usual, "{:,.0f} us")
    for one, route, seconds in zip(calibrations, routes, relayed, strict=True):
        delivered = statistics.median(seconds) - usual
        limit = max(TOLERANCE * one.rtt, LEAST_TOLERANCE)
        name = f"distance: {crew}, {1e3 * one.rtt:g} ms"
        yield info(name, 1e6 * delivered, "{:,.0f} us")
        yield at_most("  error", 1e6 * abs(delivered - one.rtt), 1e6 * limit, "{:,.0f} us")
        yield info("  p90", 1e6 * (statistics.quantiles(seconds, n=10)[-1] - usual), "{:,.0f} us")
        yield info("  calibrated", 1e6 * one.p50, "{:,.0f} us")
        yield info("  p50 of lateness", 1e6 * lateness[route].p50, "{:,.0f} us")
        yield info("  mean by lateness", 1e6 * one.delivered([lateness[route]]), "{:,.0f} us")


@contextmanager
def _process(program: Callable[..., None], *arguments: object) -> Iterator[None]:
    process = multiprocessing.get_context("fork").Process(target=program, args=arguments)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _compute() -> None:
    for _ in itertools.count():
        pass


def _echo(listener: socket.socket) -> None:
    connections: list[socket.socket] = []
    while True:
        for ready in select.select([listener, *connections], [], [])[0]:
            if ready is listener:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connections.append(connection)
            elif received := ready.recv(64):
                ready.sendall(received)
            else:
                connections.remove(ready)
                ready.close()


def _round_trips(addresses: Sequence[Address], clients: int, echoes: int) -> list[list[float]]:
    """Return the seconds of all clients' echoes, by address."""
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(clients, mp_context=context) as pool:
        futures = [pool.submit(_client, addresses, echoes, PAUSES[clients]) for _ in range(clients)]
        by_client = [future.result() for future in futures]
    return [list(itertools.chain(*times)) for times in zip(*by_client, strict=True)]


def _client(addresses: Sequence[Address], echoes: int, pause: float) -> list[list[float]]:
    times: list[list[float]] = [[] for _ in addresses]
    with ExitStack() as stack:
        connections = []
        for address in addresses:
            assert isinstance(address, tuple)
            connection = stack.enter_context(socket.create_connection(address))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connections.append(connection)
        for _ in range(echoes):
            for connection, seconds in zip(connections, times, strict=True):
                if pause:
                    time.sleep(random.expovariate(1 / pause))
                start = time.perf_counter()
                connection.sendall(b"echo")
                connection.recv(64)
                seconds.append(time.perf_counter() - start)
    return times
