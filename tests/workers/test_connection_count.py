from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zodbshootout.client.connections import Socket
from zodbshootout.model.specification import Address
from zodbshootout.workers.connection_count import ConnectionCount

PG: Address = ("127.0.0.1", 5432)
CACHE: Address = ("127.0.0.1", 11211)


class Crew:
    """A crew of two clients, whose connections are those of a list, each time that it is asked."""

    servers = {PG: "pg", CACHE: "cache"}  # noqa: RUF012

    def __init__(self, *looks: Sequence[dict[int, Address]]) -> None:
        self._looks = list(looks)
        self.hosts: dict[str, Sequence[int]] = {}

    def call(self, name: str) -> list[dict[Socket, Address]]:
        assert name == "sockets"
        clients = self._looks.pop(0)
        return [{(one, str(one)): there for one, there in client.items()} for client in clients]


def counted(*looks: Any, whole: bool = True, hosts: Any = None) -> Any:
    crew: Any = Crew(*looks)
    crew.hosts = hosts or {}
    count = ConnectionCount(crew)
    for _ in range(len(looks) // 2):
        count.before()
        count.after(is_whole=whole)
    return count.metadata()


def test_the_largest_number_of_connections_is_counted_in_all_and_by_server() -> None:
    one, two = [{1: PG}, {2: PG}], [{1: PG, 3: CACHE}, {2: PG, 4: CACHE}]
    assert counted(one, one) == {"connections": 2}
    numbers = {"connections": 4, "connections_pg": 2, "connections_cache": 2}
    assert counted(one, two, one, one) == numbers


def test_clients_of_a_process_share_its_connections() -> None:
    both = {1: PG, 2: PG}
    assert counted([both, both], [both, both]) == {"connections": 2}


def test_a_connection_in_place_of_one_to_the_same_address_was_made_again() -> None:
    looks = [{1: PG}, {2: PG}], [{5: PG}, {2: PG, 6: CACHE}]
    assert counted(*looks)["reconnections"] == 1
    assert "reconnections" not in counted(*looks, whole=False)
    # One that is only closed, or only opened, was not.
    assert "reconnections" not in counted([{1: PG}], [{}])
    assert "reconnections" not in counted([{1: PG}], [{2: CACHE}])


def test_connections_of_hosts_are_not_counted_because_some_lead_to_the_coordinator() -> None:
    assert counted([{1: PG}], [{2: PG}], hosts={"there": [0]}) == {"reconnections": 1}
    assert counted([{}], [{}]) == {}
