"""Put a relay between clients and their servers, to add a distance or to count traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from zodbshootout.client.connections import peers
from zodbshootout.client.database import addresses_of
from zodbshootout.client.reachability import printable
from zodbshootout.client.routes import UDP
from zodbshootout.client.usage import not_helpers
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.local import plan_of
from zodbshootout.model.grouping import grouped
from zodbshootout.model.outcome import Failed, Failure, Unsupported
from zodbshootout.model.specification import Address, Distance, Specification, Storage
from zodbshootout.network.calibration import Calibration
from zodbshootout.network.relays import Lateness, Relay, RelayError, Traffic

HERE = Distance(0.0)
UNDELAYED = Calibration(0.0, 0.0, 0.0, 0.0, Lateness(0, 0.0, 0.0))
REPETITIONS = 3
"""The maximum number of iterations whose traffic is counted."""
NO_ADDRESSES = "its configuration contains no address of a server"


@contextmanager
def relayed(
    storage: Storage, delays: Mapping[Address, Calibration]
) -> Iterator[tuple[Storage, Relay]]:
    """Start a relay for a storage's servers; yield a storage that uses it, and the relay itself.

    *delays* maps the address of each server to a calibration, which contains the delay.

    :raises Failed: if the relay ends, or cannot replace a server
    """
    with TemporaryDirectory() as directory, Relay.start() as relay:
        not_helpers.add(relay.process.pid)
        try:
            routes: dict[Address, Address] = {}
            for address, delay in delays.items():
                # Two servers may have sockets with the same name.
                own = mkdtemp(dir=directory)
                routes[address] = relay.route(address, delay.rtt, early=delay.early, directory=own)
            with _cause_of_failures(relay):
                yield replace(storage, routes=routes), relay
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
    :raises Unsupported: if a relay cannot replace the storage's servers
    """
    distances = distances_of(specification.storage)
    with at_distance(specification.storage, distances, calibrations) as (storage, relay):
        specification = replace(specification, storage=storage)
        watch = relay.check if relay else None
        with plan_of(specification, profiles, clients, watch).started() as crew:
            if relay:
                crew.delivered = partial(_delivered, relay, distances, calibrations)
            yield crew


@contextmanager
def at_distance(
    storage: Storage,
    distances: Mapping[Address, Distance],
    calibrations: Mapping[float, Calibration],
) -> Iterator[tuple[Storage, Relay | None]]:
    """Start a relay for a storage's servers; yield a storage that uses it, and the relay itself.

    Without *distances*, yield the same storage and ``None``.

    :param distances: the result of :func:`distances_of`
    :param calibrations: those of relays on this machine, by round-trip time in seconds
    :raises Failed: if the relay fails
    """
    if not distances:
        yield storage, None
        return
    delays = {address: calibrations[distance.rtt] for address, distance in distances.items()}
    with relayed(storage, delays) as relayed_storage:
        yield relayed_storage


def distances_of(storage: Storage) -> dict[Address, Distance]:
    """Return the distances that a relay should add, by the addresses of the servers.

    :raises Unsupported: if a relay cannot replace one of the servers
    """
    if not any(distance.rtt for distance in storage.distances):
        return {}
    try:
        addresses = _relayed_addresses(storage)
    except Unsupported as error:
        raise Unsupported(f"it cannot be put at a distance: {error}") from None
    distances = {}
    for address in addresses:
        fitting = (distance for distance in storage.distances if distance.holds_for(address))
        distances[address] = next(fitting, HERE)
    return {address: distance for address, distance in distances.items() if distance.rtt}


def _relayed_addresses(storage: Storage) -> dict[Address, bool]:
    """Return the addresses of a storage's servers, and whether each server belongs to a cache.

    :raises Unsupported: if a relay cannot replace all servers
    """
    addresses = addresses_of(storage)
    if not addresses:
        raise Unsupported(NO_ADDRESSES)
    for address in addresses:
        if isinstance(address, str) and address.startswith(UDP):
            raise Unsupported(f"{address} is reached over UDP, which the relay does not support")
    return addresses


def _delivered(
    relay: Relay, distances: Mapping[Address, Distance], calibrations: Mapping[float, Calibration]
) -> dict[Distance, float]:
    """Return the mean seconds of a round trip so far, for each distance."""
    lateness = grouped(zip(distances.values(), relay.lateness().values()))
    return {
        distance: calibrations[distance.rtt].delivered(routes)
        for distance, routes in lateness.items()
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


def count(specification: Specification) -> Counts:
    """Have one client of a crew do single iterations; return the traffic of each.

    The first iteration may open connections.  It counts only if its traffic equals that of the
    second iteration.

    :raises Unsupported: if a relay cannot replace the storage's servers
    :raises Failed: if the client fails
    """
    storage = specification.storage
    addresses, before = _relayed_addresses(storage), peers()
    with relayed(storage, dict.fromkeys(addresses, UNDELAYED)) as (storage, relay):
        plan = plan_of(replace(specification, storage=storage), clients=[0], watch=relay.check)
        with plan.started() as crew:
            done = [_iteration(crew, relay)]
            while len(done) <= REPETITIONS and done[-2:-1] != done[-1:]:
                done.append(_iteration(crew, relay))
            (connected,) = crew.call("peers")
    others = {address for address, _ in connected - before} - {*storage.routes.values()}
    counted = done[-2:] if done[-2] == done[-1] else done[1:]
    iterations = {
        is_cache: [sum((traffic[route] for route in routes), Traffic()) for traffic in counted]
        for is_cache, routes in _routes(addresses, storage.routes).items()
    }
    return Counts(iterations, sorted(others, key=printable))


def _iteration(crew: Crew, relay: Relay) -> dict[Address, Traffic]:
    """Have the crew do an iteration; return the traffic of each route, by the route's address."""
    before, after = crew.single(relay.counts)
    return {route: after[route] - before[route] for route in after}


def _routes(
    addresses: Mapping[Address, bool], routes: Mapping[Address, Address]
) -> dict[bool, list[Address]]:
    """Return the addresses of a relay, separately for databases and for servers of a cache."""
    return grouped((is_cache, routes[address]) for address, is_cache in addresses.items())
