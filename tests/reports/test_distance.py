"""The tables of estimates at a distance, and the sentences about crossings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runs import cell_with, measured
from zodbshootout.model.specification import CrewShape, Parameters, duration
from zodbshootout.reports.distance import crossings, estimate_tables, measured_crossings
from zodbshootout.reports.headings import Columned

NEAR = 0.010, 0.0101, 0.0099
"""Seconds of an iteration with few round trips, in three runs."""
QUICK = 0.004, 0.0041, 0.0039


def columned(
    name: str, seconds: tuple[float, ...], size: int = 1, place: str = "elsewhere", **metadata: Any
) -> Columned:
    cell = cell_with("update", name, Parameters(CrewShape(size)))
    facts = {"server_place": place, **metadata} if place else metadata
    return name, measured(cell, *([value] for value in seconds), **facts)


def at(rtt: float, trips: int, seconds: tuple[float, ...], name: str) -> Columned:
    text = duration(rtt)
    distance: dict[str, Any] = {"rtt_s": rtt} if rtt else {}
    there = tuple(value + trips * rtt for value in seconds)
    definitions = f'{{"rtt": "{text}"}}'
    return columned(f"{name} [{text}]", there, definitions=definitions, **distance)


def test_contenders_cross_where_their_trips_outweigh_their_time() -> None:
    cells = [columned("zeo", NEAR, trips="2 2"), columned("pg", QUICK, trips="12 12")]
    (line,) = crossings(cells)
    # 6 ms / 10 trips
    assert line == "estimate: update: pg is faster below 0.6 ms (0.58 to 0.62), zeo above"
    assert list(measured_crossings(cells)) == []


@pytest.mark.parametrize(
    ("zeo", "pg"),
    [
        ({"trips": "2"}, {"trips": "2"}),  # equally far
        ({"trips": "12"}, {"trips": "2"}),  # the faster one is so everywhere
        ({"trips": "2"}, {}),  # not counted
        ({"trips": "2"}, {"trips": "3"}),  # at 6 ms
    ],
)
def test_without_a_crossing_within_reach_nothing_is_said(
    zeo: dict[str, Any], pg: dict[str, Any]
) -> None:
    assert not list(crossings([columned("zeo", NEAR, **zeo), columned("pg", QUICK, **pg)]))


def test_a_crossing_is_measured_between_two_round_trip_times() -> None:
    cells = [at(rtt, 2, NEAR, "zeo") for rtt in (0.0, 0.5e-3, 2e-3)]
    cells += [at(rtt, 12, QUICK, "pg") for rtt in (0.0, 0.5e-3, 2e-3)]
    (line,) = measured_crossings(cells)
    assert line.startswith("update: pg is faster below 0.6 ms (")
    assert line.endswith(", zeo above")


def test_times_are_estimated_from_trips() -> None:
    local = columned("fs", QUICK, place="")
    cells = [columned("zeo", NEAR, trips="2 2"), local, columned("pg", QUICK)]
    (table,) = estimate_tables(cells)
    assert [row.title for row in table.rows] == [
        "update at 0.2ms", "update at 1ms", "update at 5ms"
    ]  # fmt: skip
    assert [[entry.text for entry in row.entries] for row in table.rows] == [
        ["10.4 ms", "4 ms", "-"],
        ["12 ms", "4 ms", "-"],
        ["20 ms", "4 ms", "-"],
    ]
    cached = [columned("zeo", NEAR, trips="2 2", cache_trips="1 1")]
    (table,) = estimate_tables(cached)
    assert table.rows[0].entries[0].text == "10.6 ms"
    threads = [columned("zeo", NEAR, size=4, trips="2 2")]
    (table,) = estimate_tables(threads)
    assert table.rows[0].entries[0].text == "up to 10.4 ms"


def test_durations_are_read_back() -> None:
    texts = ["0", "50us", "0.2ms", "2ms", "1s"]
    assert [duration(seconds) for seconds in (0, 50e-6, 0.2e-3, 2e-3, 1.0)] == texts
