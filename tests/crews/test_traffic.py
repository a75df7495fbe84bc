"""The traffic of iterations with a known protocol, and their time at a distance."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import pytest

from tests.talking import ANSWER, REQUEST, TalkingType, serving
from zodbshootout.client import storage_types as storages
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.connections import peers
from zodbshootout.client.database import Database
from zodbshootout.client.preparation import populate
from zodbshootout.client.protocol import Call
from zodbshootout.crews.traffic import Counts, count, crew_at_distance
from zodbshootout.model.outcome import Failed, Unsupported
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    Endpoint,
    Parameters,
    Specification,
    Storage,
)
from zodbshootout.network.calibration import Calibration
from zodbshootout.network.relays import Lateness, Traffic
from zodbshootout.workers.worker import operate

ALONE = CrewShape(1, ClientKind.THREAD)
SERVICE = 0.020
"""Seconds that the server takes for an answer."""


@pytest.fixture(autouse=True)
def talking_type(monkeypatch: pytest.MonkeyPatch) -> None:
    known = (TalkingType, *storages.storage_types())
    monkeypatch.setattr(storages, "storage_types", lambda: known)


def exact(rtt: float) -> Calibration:
    """Return the calibration of a relay that needs no correction."""
    return Calibration(rtt, 0.0, rtt, rtt, Lateness(0, 0.0, 0.0))


def specification(
    place: Path, server: tuple[str, int], settings: str, *others: Endpoint, rtt: float = 0.0
) -> Specification:
    section = (
        f"%import tests.talking\n<zodb a>\n<talking>\nserver $main\n{settings}\n"
        f"<filestorage>\npath {place}/a.fs\n</filestorage>\n</talking>\n</zodb>\n"
    )
    servers = (Endpoint("main", server, rtt), *others)
    names = {name: value for one in servers for name, value in one.names.items()}
    storage = Storage(section, names, servers=servers)
    parameters = Parameters(CrewShape(1), objects=5, owner="a")
    made = Specification(storage, "update", parameters)
    with Database(storage) as database:
        populate(database, benchmarks()["update"].dataset, parameters)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "traffic"),
    [
        ("requests 1", Traffic(1, REQUEST, ANSWER)),
        ("requests 7", Traffic(7, 7 * REQUEST, 7 * ANSWER)),
        ("requests 0\npipelined 20", Traffic(1, 20 * REQUEST, 20 * ANSWER)),
        ("requests 2\npipelined 3", Traffic(3, 5 * REQUEST, 5 * ANSWER)),
    ],
)
def test_trips_and_bytes_are_exact(settings: str, traffic: Traffic, tmp_path: Path) -> None:
    with serving(SERVICE) as server:
        counted = count(specification(tmp_path, server, settings))
    assert counted == Counts({False: [traffic] * 2}, [], connections=1)


def test_a_connection_that_bypasses_the_relay_is_found(tmp_path: Path) -> None:
    with serving() as server, serving() as other:
        host, port = other
        counted = count(specification(tmp_path, server, f"other-server {host}:{port}"))
    assert counted.elsewhere == [other]


@pytest.mark.slow
def test_the_traffic_with_a_cache_is_apart(tmp_path: Path) -> None:
    with serving() as server, serving() as other:
        cache = Endpoint("cache", other, is_cache=True)
        counted = count(specification(tmp_path, server, "requests 7\ncache $cache", cache))
    assert counted.iterations == {
        False: [Traffic(7, 7 * REQUEST, 7 * ANSWER)] * 2,
        True: [Traffic(1, REQUEST, ANSWER)] * 2,
    }


@pytest.mark.parametrize(
    ("trips", "counted"),
    [
        ([5, 5], [5, 5]),
        ([9, 5, 5], [5, 5]),
        ([9, 5, 6, 5], [5, 6, 5]),
        ([9, 5, 6, 6], [6, 6]),
    ],
)
def test_iterations_are_counted_until_two_have_the_same_traffic(
    trips: list[int], counted: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list(trips)
    monkeypatch.setattr(
        "zodbshootout.crews.traffic._iteration",
        lambda _, relay: {route: Traffic(left.pop(0)) for route in relay.counts()},
    )
    with serving() as server:
        counts = count(specification(tmp_path, server, "requests 1"))
    assert [traffic.trips for traffic in counts.iterations[False]] == counted
    assert left == []


def test_a_server_that_is_gone_fails_the_count(tmp_path: Path) -> None:
    with serving() as server:
        made = specification(tmp_path, server, "requests 1")
    with pytest.raises(Failed):
        count(made)


@pytest.mark.slow
def test_an_iteration_takes_its_service_time_and_its_round_trips(tmp_path: Path) -> None:
    rtt, requests = 0.005, 6
    with serving(SERVICE) as server:
        far = specification(tmp_path, server, f"requests {requests}", rtt=rtt)
        with crew_at_distance(far, {rtt: exact(rtt)}) as crew:
            value = crew.measure(4).value
            delivered = crew.delivered()
    # No machine is too slow for a lower bound.
    assert value >= requests * (SERVICE + 0.95 * rtt)
    assert delivered.keys() == {Endpoint("main", server, rtt)}
    assert min(delivered.values()) >= 0.9 * rtt


def test_an_operation_of_another_process_is_at_the_distance_of_clients(tmp_path: Path) -> None:
    rtt = 0.001
    with serving() as server:
        made = specification(tmp_path, server, "requests 1", rtt=rtt)
        parameters = replace(made.parameters, revisions=2, garbage=0.5, crew=ALONE)
        far = replace(made, benchmark="pack", parameters=parameters)
        ours, theirs = Pipe()
        before = peers()

        def ask(name: str, *args: object) -> Any:
            ours.send(Call(name, args))
            return ours.recv()

        with ours, ThreadPoolExecutor() as pool:
            operating = pool.submit(operate, theirs, far.storage, {rtt: exact(rtt)})
            operating.add_done_callback(lambda _: theirs.close())  # if it fails, too
            ask("prepare_operation", far)
            addresses = {address for address, _ in peers() - before}
            ask("start_operation")
            while ask("operation_times") is None:
                time.sleep(0.01)
            assert ask("finish_operation")["operation_freed_objects"] > 0
            ours.close()
            operating.result()
    assert addresses
    assert server not in addresses


def test_servers_of_a_storage_have_distances_of_their_own(tmp_path: Path) -> None:
    near, far = 0.002, 0.004
    with serving() as first, serving() as second, serving() as third:
        others = [Endpoint("other", second, far), Endpoint("here", third)]
        settings = "cache $other\nother-server $here"
        made = specification(tmp_path, first, settings, *others, rtt=near)
        with crew_at_distance(made, {near: exact(near), far: exact(far)}) as crew:
            value = crew.measure(4).value
            delivered = crew.delivered()
    assert value >= 0.95 * (near + far)
    assert {server.name: server.rtt for server in delivered} == {"main": near, "other": far}
    assert all(seconds >= 0.9 * server.rtt for server, seconds in delivered.items())


def test_a_client_that_is_also_connected_elsewhere_is_not_put_at_a_distance(
    tmp_path: Path,
) -> None:
    with serving() as server, serving() as (host, port):
        made = specification(tmp_path, server, f"other-server {host}:{port}", rtt=0.001)
        wanted = f"cannot be put at a distance: it is also connected to {host}:{port}; write an <ex"
        with (
            pytest.raises(Unsupported, match=wanted),
            crew_at_distance(made, {0.001: exact(0.001)}),
        ):
            pass
