"""Costs of servers, round trips and sizes of databases in a shootout of fakes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.runs import contender, plan_of
from tests.scheduling.faked_shootout import (
    Site,
    far,
    run_shootout,
)
from zodbshootout.crews.cluster import Cluster
from zodbshootout.crews.traffic import Counts
from zodbshootout.model.outcome import State
from zodbshootout.network.relays import Traffic


def test_the_costs_of_servers_are_those_of_the_slices_of_their_contender() -> None:
    site = Site(served={"a"})
    outcome = run_shootout(plan_of("ab", ["add"], processes=1, loops=2, values=3), site)
    costs = {
        result.cell.contender: {
            key: value for key, value in result.metadata.items() if key.startswith("server_")
        }
        for result in outcome.results
    }
    # The three slices of a lap share what the servers have used.
    assert costs["a"]["server_cpu_s"] == "0.5 0.5 0.5"
    assert costs["a"]["server_written_bytes"] == "10 10 10"
    assert costs["a"]["server_memory_bytes"] == 1000
    assert costs["a"]["server_cpu_s_pg"] == "0.25 0.25 0.25"
    assert costs["a"]["server_written_bytes_cache"] == "5 5 5"
    assert costs["a"]["server_memory_bytes_cache"] == 100
    assert "server_cpu_s" not in costs["b"]


def test_a_server_of_several_contenders_is_read_after_each_slice() -> None:
    site = Site(served={"a", "b"})
    outcome = run_shootout(plan_of("abc", ["add"], processes=1, loops=2, values=3), site)
    costs = {r.cell.contender: r.metadata.get("server_cpu_s") for r in outcome.results}
    # Each reading finds 3 s more, and a slice has two iterations.
    assert costs == {"a": "1.5 1.5 1.5", "b": "1.5 1.5 1.5", "c": None}


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [None, Cluster("", [], here=True)])
def test_traffic_is_counted_once_for_each_cell_with_a_server_before_it_is_set_up(
    cluster: Cluster | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zodbshootout.scheduling.shootout.calibrations_for", lambda *_: {})
    outcome = run_shootout(plan_of([far("a", 0.0), "b"], ["add", "cold"]), cluster=cluster)
    calls = [event[:3] for event in outcome.site.did("count", "set up") if event.contender == "a"]
    assert calls[:2] == [("count", "add", "a"), ("set up", "add", "a")]
    assert {event[1:3] for event in outcome.site.did("count")} == {("add", "a"), ("cold", "a")}
    assert len(outcome.site.did("count")) == 2
    trips = {result.cell: result.metadata.get("trips") for result in outcome.results}
    assert {(cell.contender, text) for cell, text in trips.items()} == {("a", "2 2 2"), ("b", None)}


def test_traffic_is_not_counted_if_a_client_is_also_connected_elsewhere() -> None:
    site = Site(counts=Counts({False: [Traffic(2, 30, 4)]}, [("cache", 11211), "/run/socket"]))
    outcome = run_shootout(plan_of([far("a", 0.0)], ["add"]), site)
    for result in outcome.results:
        assert "trips" not in result.metadata
        assert result.metadata["traffic_not_counted"] == (
            "it is also connected to cache:11211 and /run/socket; write an <externalserver> with "
            "this address and refer to it by its name, or leave it out"
        )


def test_a_section_that_names_its_server_itself_is_told_what_to_write() -> None:
    own = replace(contender("a"), server_line="server $db", rtt=0.002)
    near, unreached = (
        replace(own, rtt=0.0),
        "its section refers to no section of a server: write ",
    )
    write = "<externalserver db> with 'address HOST:PORT', and refer to it by server $db"
    outcome = run_shootout(plan_of([near], ["add"]))
    assert outcome.site.did("count") == []
    for result in outcome.results:
        assert result.metadata["traffic_not_counted"] == f"{unreached}{write}"
    (refused,) = run_shootout(plan_of([own], ["add"])).results
    assert refused.state is State.UNSUPPORTED
    assert refused.reason == f"it cannot be put at a distance: {unreached}{write}"


def test_traffic_is_counted_once_for_crews_of_all_sizes() -> None:
    site, served = Site(), far("a", 0.0)
    plan = plan_of([served, "b"], ["add"], processes=2, concurrency=[1, 4])
    outcome = run_shootout(plan, site)
    assert len(site.did("count")) == 1
    trips = {
        (result.cell.contender, result.cell.parameters.crew.size): result.metadata.get("trips")
        for result in outcome.results
    }
    assert trips == {("a", 1): "2 2 2", ("a", 4): "2 2 2", ("b", 1): None, ("b", 4): None}
