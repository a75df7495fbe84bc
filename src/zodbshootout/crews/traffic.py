"""Put a relay between clients and their servers, to add a distance or to count traffic."""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from zodbshootout.client.connections import Peer, peers
from zodbshootout.client.reachability import printable
from zodbshootout.client.usage import not_helpers
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.local import plan_of
from zodbshootout.model.grouping import grouped
from zodbshootout.model.outcome import Failed, Failure, Unsupported
from zodbshootout.model.specification import Address, Endpoint, Specification, Storage
from zodbshootout.network.calibration import Calibration
from zodbshootout.network.relays import Lateness, Relay, RelayError, Traffic

UNDELAYED = Calibration(0.0, 0.0, 0.0, 0.0, Lateness(0, 0.0, 0.0))
REPETITIONS = 3
"""The maximum number of iterations whose traffic is counted."""


@contextmanager
def relayed(
    storage: Storage, delays: Mapping[Endpoint, Calibration]
) -> Iterator[tuple[Storage, Relay]]:
    """Start a relay for a storage's servers; yield a storage that uses it, and the relay itself.

    *delays* maps each server to a calibration, which contains the delay.  In the yielded storage,
    these servers have the addresses of the relay, in the same order.

    :raises Failed: if the relay ends, or cannot replace a server
    """
    with TemporaryDirectory() as directory, Relay.start() as relay:
        not_helpers.add(relay.process.pid)
        try:
            routes = {
                server: relay.route(
                    # Two servers may have sockets with the same name.
                    server.address, delay.rtt, early=delay.early, directory=mkdtemp(dir=directory)
                )
                for server, delay in delays.items()
            }  # fmt: skip
            servers = tuple(
                replace(server, address=routes.get(server, server.address))
                for server in storage.servers
            )
            names = {**storage.names, **dict(chain(*(server.names.items() for server in servers)))}
            with _cause_of_failures(relay):
                yield replace(storage, names=names, servers=servers), relay
        except RelayError as error:
            raise Failed(Failure(str(error))) from error


@contextmanager
def _cause_of_failures(relay: Relay) -> Iterator[None]:
    """If a relay has ended, raise the relay's error instead of exceptions that its end caused."""
    try:
        yield
    except Exception:
        relay.check()
        raise


@contextmanager
def crew_at_distance(
    specification: Specification,
    calibrations: Mapping[float, Calibration],
    profiles: Path | None = None,
    clients: Sequence[int] | None = None,
) -> Iterator[Crew]:
    """Start a crew planned by :func:`~zodbshootout.crews.local.plan_of`.

    If the storage has distances, a relay adds them.

    :param calibrations: those of relays on this machine, by round-trip time in seconds
    :raises Failed: if a client or the relay fails
    :raises Unsupported: if a client is also connected to something without the distance
    """
    before = peers()
    with at_distance(specification.storage, calibrations) as (storage, relay):
        plan = plan_of(
            replace(specification, storage=storage),
            profiles,
            clients,
            relay.check if relay else None,
        )
        with plan.started() as crew:
            with suppress(OSError):  # clients cannot be connected to a name that does not exist
                crew.servers = {
                    address: server.name
                    for server in storage.servers
                    for address in _resolved(server.address)
                }
            if relay is None:
                yield crew
                return
            _check_connections(crew, storage, before)
            crew.delivered = partial(
                _delivered, relay, specification.storage, storage, calibrations
            )
            yield crew
            _check_connections(crew, storage, before)


@contextmanager
def at_distance(
    storage: Storage, calibrations: Mapping[float, Calibration]
) -> Iterator[tuple[Storage, Relay | None]]:
    """Start a relay for a storage's servers; yield a storage that uses it, and the relay itself.

    If no server is at a distance, yield the same storage and ``None``.

    :param calibrations: those of relays on this machine, by round-trip time in seconds
    :raises Failed: if the relay fails
    """
    delays = {server: calibrations[server.rtt] for server in storage.servers if server.rtt}
    if not delays:
        yield storage, None
        return
    with relayed(storage, delays) as relayed_storage:
        yield relayed_storage


def _check_connections(crew: Crew, storage: Storage, before: Collection[Peer]) -> None:
    """Raise Unsupported if clients are connected to other addresses than *storage* names."""
    if others := _elsewhere(crew, storage, before):
        raise Unsupported(f"it cannot be put at a distance: {also_connected_to(others)}")


def also_connected_to(others: Sequence[Address]) -> str:
    """Return what to write if a client is also connected to *others*."""
    names = " and ".join(map(printable, others))
    return (
        f"it is also connected to {names}; write an <externalserver> with this address and refer "
        "to it by its name, or leave it out"
    )


def _elsewhere(crew: Crew, storage: Storage, before: Collection[Peer]) -> list[Address]:
    """Return the addresses that a crew is connected to, apart from those that *storage* names."""
    named = {address for server in storage.servers for address in _resolved(server.address)}
    connected = {address for connected in crew.call("peers") for address, _ in connected - before}
    return sorted(connected - named, key=printable)


def _resolved(address: Address) -> set[Address]:
    """Return an address as a connected socket shows it."""
    if isinstance(address, str):
        return {address}
    found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    return {(str(one[0]), int(one[1])) for *_, one in found}


def _delivered(
    relay: Relay, storage: Storage, far: Storage, calibrations: Mapping[float, Calibration]
) -> dict[Endpoint, float]:
    """Return the mean seconds of a round trip so far, for each server at a distance."""
    lateness = relay.lateness()
    return {
        server: calibrations[server.rtt].delivered([lateness[there.address]])
        for server, there in zip(storage.servers, far.servers)
        if server.rtt
    }


@dataclass(frozen=True)
class Counts:
    """The traffic of each counted iteration.

    If two successive iterations had the same traffic, only these two are counted.  Otherwise, three
    iterations are counted.
    """

    iterations: Mapping[bool, Sequence[Traffic]]
    """The traffic with databases (key ``False``) and with cache servers (key ``True``)."""
    elsewhere: Sequence[Address] = ()
    """Other addresses that the client is connected to, whose traffic is not counted."""
    connections: int = 0
    """The number of connections of the client after its iterations."""


def count(specification: Specification) -> Counts:
    """Have one client of a crew do single iterations; return the traffic of each.

    The first iteration may open connections.  It counts only if its traffic equals that of the
    second iteration.

    :raises Failed: if the client fails
    """
    before, storage = peers(), specification.storage
    with relayed(storage, dict.fromkeys(storage.servers, UNDELAYED)) as (storage, relay):
        plan = plan_of(replace(specification, storage=storage), clients=[0], watch=relay.check)
        with plan.started() as crew:
            done = [_iteration(crew, relay)]
            while len(done) <= REPETITIONS and done[-2:-1] != done[-1:]:
                done.append(_iteration(crew, relay))
            others = _elsewhere(crew, storage, before)
            (connected,) = crew.call("sockets")
    counted = done[-2:] if done[-2] == done[-1] else done[1:]
    routes = grouped((server.is_cache, server.address) for server in storage.servers)
    iterations = {
        is_cache: [sum((traffic[one] for one in addresses), Traffic()) for traffic in counted]
        for is_cache, addresses in routes.items()
    }
    known = {address for address, _ in before}
    own = [address for address in connected.values() if address not in known]
    return Counts(iterations, others, len(own))


def _iteration(crew: Crew, relay: Relay) -> dict[Address, Traffic]:
    """Have the crew do an iteration; return the traffic of each route, by the route's address."""
    before, after = crew.single(relay.counts)
    return {route: after[route] - before[route] for route in after}
