"""Times at a distance, measured and estimated, and the sentences and pictures of crossings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reports.results import cells_of
from tests.runs import cell, unpaired
from zodbshootout.model.specification import CrewShape, duration
from zodbshootout.model.titles import Release, Value, title_of
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.distance import (
    crossing_lines,
    distance_charts,
    measured_crossings,
    tables_of_times,
)
from zodbshootout.reports.drawing import draw
from zodbshootout.reports.tables import make_report
from zodbshootout.results.result import CellResult

NEAR = 0.010, 0.0101, 0.0099
"""Seconds of an iteration with few round trips, in three runs."""
QUICK = 0.004, 0.0041, 0.0039
RTTS = (0.0, 0.5e-3, 2e-3)


def timed(
    name: str, seconds: tuple[float, ...], size: int = 1, place: str = "elsewhere",
    rtt: float | None = None, **metadata: Any,
) -> CellResult:  # fmt: skip
    target = cell("update", name, crew=CrewShape(size), rtt=rtt)
    facts = {"server_place": place, **metadata} if place else metadata
    return unpaired(target, *([value] for value in seconds), **facts)


def at(rtt: float, trips: int, seconds: tuple[float, ...], name: str) -> CellResult:
    facts: dict[str, Any] = {"rtt_s": rtt} if rtt else {}
    there = tuple(value + trips * rtt for value in seconds)
    return timed(name, there, rtt=rtt, trips=f"{trips} {trips}", **facts)


def at_all(*sides: tuple[str, int, tuple[float, ...]]) -> list[CellResult]:
    return [at(rtt, trips, seconds, name) for name, trips, seconds in sides for rtt in RTTS]


def crossing_at_600_us() -> list[CellResult]:
    return at_all(("zeo", 2, NEAR), ("pg", 12, QUICK))


def test_contenders_cross_where_their_trips_outweigh_their_time() -> None:
    cells = cells_of([timed("zeo", NEAR, trips="2 2"), timed("pg", QUICK, trips="12 12")])
    (line,) = crossing_lines(cells)
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
    assert not list(crossing_lines(cells_of([timed("zeo", NEAR, **zeo), timed("pg", QUICK, **pg)])))


def test_a_crossing_is_measured_between_two_round_trip_times() -> None:
    (line,) = measured_crossings(cells_of(crossing_at_600_us()))
    assert line.startswith("update: pg is faster below 0.6 ms (")
    assert line.endswith(", zeo above")


def test_what_was_measured_at_0_alone_has_no_time_and_no_crossing_at_a_distance() -> None:
    cells = cells_of([*at_all(("zeo", 2, NEAR)), at(0.0, 12, QUICK, "pg")])
    assert measured_crossings(cells) == []
    (table,) = tables_of_times(cells)
    assert [[entry.line() for entry in row.entries] for row in table.rows] == [
        ["10", "4"], ["11 (11)", ""], ["14 (14)", ""]
    ]  # fmt: skip
    (chart,) = distance_charts(cells)
    assert [point.x for point in chart.of("pg")] == [0.0]
    served = timed("pg", QUICK, trips="12 12")  # its section sets the distance
    (table,) = tables_of_times(cells_of([*at_all(("zeo", 2, NEAR)), served]))
    assert [row.entries[1].line() for row in table.rows] == ["", "", "", "4"]


def test_equal_contenders_do_not_cross() -> None:
    other = tuple(seconds + shift for seconds, shift in zip(NEAR, (1e-5, -2e-5, 2e-5), strict=True))
    results = at_all(("one", 2, NEAR))
    results += [at(rtt, 2, other if rtt else NEAR[::-1], "two") for rtt in RTTS]
    results += [at(rtt, 2, NEAR if rtt else other, "three") for rtt in RTTS]
    assert measured_crossings(cells_of(results)) == []


def test_times_are_estimated_from_trips() -> None:
    local = timed("fs", QUICK, place="")
    cells = cells_of([timed("zeo", NEAR, trips="2 2"), local, timed("pg", QUICK)])
    (table,) = tables_of_times(cells)
    assert [row.title for row in table.rows] == [
        "update at 0.2 ms", "update at 1 ms", "update at 5 ms"
    ]  # fmt: skip
    assert [[entry.shown for entry in row.entries] for row in table.rows] == [
        ["10.4", "4", "-"],
        ["12", "4", "-"],
        ["20", "4", "-"],
    ]
    cached = cells_of([timed("zeo", NEAR, trips="2 2", cache_trips="1 1")])
    (table,) = tables_of_times(cached)
    assert table.rows[0].entries[0].text == "10.6"


@pytest.mark.parametrize("facts", [{"size": 4, "trips": "2 2"}, {"trips": "1 2"}])
def test_an_estimate_is_a_bound_if_requests_overlap(facts: dict[str, Any]) -> None:
    (table,) = tables_of_times(cells_of([timed("zeo", NEAR, **facts)]))
    assert table.rows[0].entries[0].text == "up to 10.4"


def test_measured_times_stand_beside_estimated_ones() -> None:
    results = [*crossing_at_600_us(), timed("fs", QUICK, place="")]
    (table,) = tables_of_times(cells_of(results))
    assert list(table.columns) == ["zeo", "pg", "fs"]
    assert [[row.title, *(entry.line() for entry in row.entries)] for row in table.rows] == [
        ["update at 0", "10", "4", "4"],
        ["update at 0.5 ms", "11 (11)", "10 (10)", "4"],
        ["update at 2 ms", "14 (14)", "28 (28)", "4"],
    ]


def test_a_table_has_a_row_for_each_round_trip_time() -> None:
    report = make_report([ResultSet(crossing_at_600_us())])
    (table,) = report.tables
    assert list(table.columns) == ["zeo", "pg"]
    assert [row.title for row in table.rows] == [
        "update at 0", "update at 0.5 ms", "update at 2 ms"
    ]  # fmt: skip
    assert [row.entries[0].ratio for row in table.rows] == [None] * 3
    ratios = [row.entries[1].ratio for row in table.rows]
    assert [ratio and ratio.value for ratio in ratios] == pytest.approx(
        [10 / 4, 11 / 10, 14 / 28], rel=0.01
    )


def test_contenders_are_compared_at_the_same_round_trip_time() -> None:
    notes = [str(note) for note in make_report([ResultSet(crossing_at_600_us())]).notes]
    sentences = [note for note in notes if " times as fast as " in note]
    assert [sentence.split(" (")[0] for sentence in sentences] == [
        "pg is 2.5 times as fast as zeo",
        "pg is 1.10 times as fast as zeo",
        "zeo is 2.00 times as fast as pg",
    ]
    assert [sentence.split(") ")[1] for sentence in sentences] == ["at 0", "at 0.5 ms", "at 2 ms"]


@pytest.mark.slow
def test_the_curves_of_a_chart_are_the_contenders_and_its_mark_the_crossing() -> None:
    cells = cells_of(crossing_at_600_us())
    (chart,) = distance_charts(cells)
    assert chart.drawn() == ["zeo", "pg"]
    assert [(point.x, point.low is not None) for point in chart.of("pg")] == [
        (0.0, True), (0.5, True), (2.0, True)
    ]  # fmt: skip
    (mark,) = chart.marks
    assert (mark.x, mark.y) == pytest.approx((0.6, 0.0112), rel=0.01)
    assert mark.text == "0.6 ms"
    assert mark.sentence in chart.summary()
    assert not chart.estimated
    draw(chart).to_dict()


def test_estimated_curves_are_dashed() -> None:
    cells = cells_of([timed("zeo", NEAR, trips="2 2"), timed("pg", QUICK, trips="12 12")])
    (chart,) = distance_charts(cells)
    assert chart.estimated
    assert "estimate" in chart.y.title
    # The lines end beyond the crossing at 0.6 ms.
    assert [point.x for point in chart.of("pg")] == pytest.approx([0.0, 0.2, 1.0])
    assert [point.y for point in chart.of("pg")] == pytest.approx([0.004, 0.0064, 0.016])
    assert "strokeDash" in str(draw(chart).to_dict())


def test_storages_without_round_trips_have_no_chart() -> None:
    assert not list(distance_charts(cells_of([timed("fs", QUICK, place="")])))


@pytest.mark.parametrize(
    ("variant", "title"),
    [
        ({}, "pg [0.5ms]"),
        ({"cache": "1, 2"}, "pg [cache=1, 2, 0.5ms]"),
        ({"release": Release("relstorage", "4.0.0")}, "pg@relstorage==4.0.0 [0.5ms]"),
        ({"release": Release("relstorage", commit="1a2b")}, "pg@relstorage@1a2b [0.5ms]"),
        ({"environment": "pypy3"}, "pg@pypy3 [0.5ms]"),
    ],
)
def test_a_title_has_all_that_distinguishes_a_variant(
    variant: dict[str, Value], title: str
) -> None:
    assert title_of("pg", variant, 500e-6) == title


def test_durations_are_read_back() -> None:
    texts = ["0", "50us", "0.2ms", "2ms", "1s"]
    assert [duration(seconds) for seconds in (0, 50e-6, 0.2e-3, 2e-3, 1.0)] == texts


def test_a_round_trip_time_that_was_not_delivered_is_told_with_its_cells() -> None:
    def notes(**metadata: Any) -> list[str]:
        far = timed("pg", NEAR, rtt=0.002, rtt_s=0.002, **metadata)
        also = timed("zeo", QUICK, rtt=0.002, rtt_s=0.002, rtt_delivered_s=0.0026)
        exact = timed("pg", NEAR, rtt=0.0005, rtt_s=0.0005, rtt_delivered_s=0.00052)
        report = make_report([ResultSet([timed("pg", NEAR, rtt=0.0), far, also, exact])])
        return [note for note in map(str, report.notes) if "took" in note]

    reason = "round trips of 2 ms took 2.3 to 2.6 ms: the machine was too slow or too busy"
    assert notes(rtt_delivered_s=0.0023) == [f"pg, zeo: {reason} to deliver them"]
    assert notes(rtt_delivered_s=0.00209)[0].startswith("zeo: round trips of 2 ms took 2.6 ms: ")
    assert notes()[0].startswith("zeo: ")  # a file of a release that did not note it


def test_a_distance_to_one_server_that_was_not_delivered_is_told() -> None:
    result = timed("pg", NEAR, server_rtts_s='{"main": [0.002, 0.003]}')
    (note,) = [note for note in map(str, make_report([ResultSet([result])]).notes) if "ms" in note]
    assert note.startswith("pg: round trips of 2 ms took 3 ms: ")
