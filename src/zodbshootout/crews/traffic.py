"""Count the round trips and the bytes of single iterations, off the clock, through a relay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory

from zodbshootout.client.database import addresses_of
from zodbshootout.crews.local import plan_of
from zodbshootout.model.specification import Address, Specification, Storage
from zodbshootout.network.relays import Relay, Traffic

REPETITIONS = 4
"""The iterations that are counted."""


@contextmanager
def relayed(storage: Storage, rtt: float = 0.0) -> Iterator[tuple[Storage, Relay]]:
    """Start a relay for all servers of a storage; yield the storage that connects through it.

    *rtt* is the round-trip time in seconds that the relay adds.

    :raises RelayError: if the relay cannot stand in for a server
    """
    with TemporaryDirectory() as directory, Relay.start() as relay:
        routes: Mapping[Address, Address] = {
            address: relay.route(address, rtt, directory=directory)
            for address in addresses_of(storage)
        }
        yield replace(storage, routes=routes), relay


def count(specification: Specification) -> list[Traffic]:
    """Have one client of a crew do single iterations; return the traffic of each.

    There is none if the storage has no servers.  The first iteration of a client opens connections,
    and is left out.

    :raises Failed: if the client fails
    """
    with relayed(specification.storage) as (storage, relay):
        if not storage.routes:
            return []
        plan = plan_of(replace(specification, storage=storage), clients=[0])
        with plan.started() as crew:

            def so_far() -> Traffic:
                return sum(relay.counts().values(), Traffic())

            crew.single(so_far)
            return [_difference(crew.single(so_far)) for _ in range(REPETITIONS)]


def _difference(ends: tuple[Traffic, Traffic]) -> Traffic:
    before, after = ends
    return after - before
