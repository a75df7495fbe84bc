"""Count the round trips and the bytes of single iterations, off the clock, through a relay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory

from zodbshootout.client.database import addresses_of
from zodbshootout.crews.local import plan_of
from zodbshootout.model.outcome import Failed, Failure, Unsupported
from zodbshootout.model.specification import Address, Distance, Specification, Storage
from zodbshootout.network.relays import Relay, RelayError, Traffic

Delivered = Callable[[], float]
NO_DISTANCE = Distance()
REPETITIONS = 3
"""The iterations that are counted."""


@contextmanager
def relayed(storage: Storage, distance: Distance = NO_DISTANCE) -> Iterator[tuple[Storage, Relay]]:
    """Start a relay for all servers of a storage; yield the storage that connects through it.

    The relay adds a *distance*, that of the storage itself left aside.

    :raises Failed: if the relay ends, or cannot stand in for a server
    """
    with TemporaryDirectory() as directory, Relay.start() as relay:
        try:
            routes: Mapping[Address, Address] = {
                address: relay.route(
                    address, distance.rtt, early=distance.early, directory=directory
                )
                for address in addresses_of(storage)
            }
            yield replace(storage, routes=routes), relay
        except RelayError as error:
            raise Failed(Failure(str(error))) from error
        except Failed as error:
            if relay.process.poll() is None:
                raise
            raise Failed(Failure("the relay between clients and servers has ended")) from error


@contextmanager
def at_distance(specification: Specification) -> Iterator[tuple[Specification, Delivered]]:
    """Put the distance of a storage between its clients and its servers.

    Yield the specification for the clients, and a function that returns the mean round-trip time in
    seconds that was added so far; 0 without a distance.

    :raises Failed: if the relay ends, or cannot stand in for a server
    """
    distance = specification.storage.distance
    if not distance.rtt:
        yield specification, lambda: 0.0
        return

    def delivered() -> float:
        chunks = [late for late in relay.lateness().values() if late.chunks]
        number = sum(late.chunks for late in chunks)
        mean = sum(late.mean * late.chunks for late in chunks) / number if number else 0.0
        return distance.delivered + mean - distance.lateness

    with relayed(specification.storage, distance) as (storage, relay):
        yield replace(specification, storage=storage), delivered


def count(specification: Specification) -> list[Traffic]:
    """Have one client of a crew do single iterations; return the traffic of each.

    The first iteration of a client opens connections, and is left out.

    :raises Unsupported: if the storage has no server whose address is known
    :raises Failed: if the client fails
    """
    with relayed(specification.storage) as (storage, relay):
        if not storage.routes:
            raise Unsupported("the types of its storages do not name the addresses of servers")
        plan = plan_of(replace(specification, storage=storage), clients=[0])
        with plan.started() as crew:

            def so_far() -> Traffic:
                return sum(relay.counts().values(), Traffic())

            crew.single(so_far)
            ends = [crew.single(so_far) for _ in range(REPETITIONS)]
    return [after - before for before, after in ends]
