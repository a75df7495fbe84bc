"""Verdicts on the points of simulated histories, the chain of anchors, and hints."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.histories import Simulated, drift, packages, simulated, step

from tests.results.points import FIRST, with_trips
from tests.runs import in_rounds, noisy
from zodbshootout.results.anchor import Accepted
from zodbshootout.results.drift import FEWEST_POINTS, drift_of
from zodbshootout.results.history import (
    ANCHOR,
    CANDIDATE,
    POSITION,
    PREVIOUS,
    STEP,
    Package,
    Point,
    PointCell,
    named_now,
    point_cells,
    read_point,
    with_aliases,
    write_point,
)
from zodbshootout.results.result import CellResult
from zodbshootout.results.verdicts import Ratio
from zodbshootout.results.watching import (
    Finding,
    MachineHistory,
    canary_differs,
    changed_packages,
    findings_of,
    smallest_change,
)


def names_of(findings: Sequence[Finding], base: str = PREVIOUS) -> list[tuple[str, bool]]:
    return [(one.cell.name, one.is_better) for one in findings if one.base == base]


def test_nothing_is_found_in_a_history_without_changes() -> None:
    history = simulated("no change", points=30).history
    assert [names_of(findings) for findings in history.findings.values()] == [[]] * 30
    assert history.hints == []


def test_a_step_of_5_percent_is_found_at_its_point_and_ends_the_scan_there() -> None:
    history = simulated("a step", step(20), points=30).history
    changes = {point: names_of(findings) for point, findings in history.findings.items()}
    assert {point: ones for point, ones in changes.items() if ones} == {
        history.points[20].name: [(FIRST, False)]
    }
    assert sum(bool(names_of(history.findings[p.name], ANCHOR)) for p in history.points[20:]) >= 8
    assert history.hints == []


def test_faster_is_found_too() -> None:
    history = simulated("faster up", step(3, -0.05), points=4).history
    assert names_of(history.findings[history.newest.name]) == [(FIRST, True)]


def test_slow_drift_is_a_hint_since_about_the_middle_and_no_verdict() -> None:
    history = simulated("slow drift", drift(0.002), points=30).history
    assert not any(names_of(findings) for findings in history.findings.values())
    (hint,) = history.hints
    assert hint.cell.name == FIRST
    assert 0.95 < hint.ratio < 0.98
    assert history.points[8].name < hint.since < history.points[22].name


def test_a_few_points_have_no_hint() -> None:
    assert drift_of([0.0, 1.0] * (FEWEST_POINTS // 2 - 1)) is None
    assert drift_of([0.0] * 20) is None
    jump = drift_of([0.001 * (n % 3) for n in range(10)] + [1.0, 1.001, 1.0])
    assert jump is not None
    assert jump.start == 10
    assert jump.difference == pytest.approx(1.0, abs=0.01)


def test_a_point_whose_canary_differs_has_no_verdict_and_is_in_no_series() -> None:
    history = Simulated("canary", step(2))
    for _ in range(2):
        history.add()
    off = history.add(canary=0.05)
    history.add()
    watched = history.history
    assert watched.left_out == [off.name]
    assert watched.findings[off.name] == []
    assert [position.number for position in watched.series[FIRST][-1]] == [0, 1, 3]
    assert not canary_differs(history.points[0])


def replaced(gap: float, seed: str = "anchor") -> tuple[MachineHistory, Point]:
    history = Simulated(seed, step(3, 0.2))
    for _ in range(6):
        history.add()
    point = history.add(new_anchor=True, gap=gap)
    for _ in range(3):
        history.add()
    return history.history, point


def test_a_chain_of_anchors_goes_on_with_the_distance_from_the_first_one() -> None:
    history, point = replaced(0.0)
    assert history.open_chains[point.name] == {}
    (series,) = history.series[FIRST]
    logs = [position.log.mean for position in series]
    assert logs == pytest.approx([0.0] * 3 + [-0.2] * 7, abs=0.02)
    assert series[-1].log.variance > series[0].log.variance
    assert history.points[-1].cells[0].ratios[POSITION].value == pytest.approx(1, abs=0.02)


def test_a_chain_that_does_not_close_is_said_and_begins_a_new_series() -> None:
    history, point = replaced(0.1)
    chains = history.open_chains[point.name]
    assert set(chains) == {cell.name for cell in point.cells}
    direct, chain = chains[FIRST]
    assert math.log(chain.value / direct.value) == pytest.approx(-0.1, abs=0.03)
    before, after = history.series[FIRST]
    assert (len(before), len(after)) == (6, 4)


def test_other_code_begins_a_new_series_and_says_so() -> None:
    history = Simulated("code")
    for code in "aab":
        history.add(code=code)
    watched = history.history
    assert [len(series) for series in watched.series[FIRST]] == [2, 1]
    assert len(watched.new_series) == 8
    assert watched.new_series[0] == (
        f"{FIRST} begins a new series: the code of its benchmark has changed"
    )


def test_an_anchor_without_a_link_begins_new_series_and_says_so() -> None:
    history = Simulated("no link")
    history.add()
    history.add()
    replaced_elsewhere = {**history.points[-1].packages, ANCHOR: packages(7)}
    history.points[-1] = replace(history.points[-1], packages=replaced_elsewhere)
    watched = history.history
    assert [len(series) for series in watched.series[FIRST]] == [1, 1]
    (line,) = watched.new_series
    assert line.startswith("all series begin anew: the anchor has changed")


def test_other_parameters_begin_a_new_series_and_are_named() -> None:
    history = Simulated("parameters", cells=1)
    history.add()
    point = history.add()
    cell = replace(point.cells[0], name=f"{FIRST} processes-4", parameters={"clients": 4})
    history.points[-1] = replace(point, cells=[cell])
    assert history.history.new_series == [f"{FIRST} processes-4 begins a new series: clients - → 4"]


@pytest.mark.parametrize(
    ("candidate", "previous", "changes"),
    [([12, 12, 12], [11, 11, 11], [("trips", (12, 11), False)]),
     ([11, 11, 11], [12, 12, 12], [("trips", (11, 12), True)]),
     ([11, 11.5, 12], [12, 12, 12], []), ([0, 0, 0], [1, 1, 1], [("trips", (0, 1), True)])],
)  # fmt: skip
def test_round_trips_differ_exactly(
    candidate: list[float], previous: list[float], changes: list[Any]
) -> None:
    point = with_trips(simulated("trips", points=2).points[-1], candidate=candidate,
                       previous=previous, anchor=candidate)  # fmt: skip
    findings = findings_of(point)
    assert [(one.count, one.amounts, one.is_better) for one in findings] == changes


def test_an_accepted_change_is_silent_until_the_cell_is_even_farther_away() -> None:
    def course(point: int, cell: int) -> float:
        return -0.05 * (point >= 2) - 0.05 * (point >= 4) if cell == 0 else 0.0

    history = simulated("accepted", course, points=5)
    change = Accepted("benchmark0", "", history.points[2].name, "more checks")
    watched = MachineHistory("machine", history.points, [change])
    silent = [
        [(one.base, bool(one.accepted)) for one in watched.findings[point.name]]
        for point in history.points[2:]
    ]
    assert silent == [
        [(PREVIOUS, True), (ANCHOR, True)],
        [(ANCHOR, True)],
        [(PREVIOUS, False), (ANCHOR, False)],
    ]
    other = replace(change, benchmark="", cell="zeo: benchmark1")
    watched = MachineHistory("machine", history.points, [other])
    assert not any(one.accepted for one in watched.findings[history.points[2].name])


def test_an_accepted_change_says_nothing_of_the_distance_to_another_anchor() -> None:
    def course(point: int, cell: int) -> float:
        return -0.05 * (point >= 2) - 0.05 * (point >= 4) if cell == 0 else 0.0

    history = Simulated("another anchor", course)
    for number in range(6):
        history.add(new_anchor=number == 3)
    change = Accepted("benchmark0", "", history.points[2].name, "more checks")
    watched = MachineHistory("machine", history.points, [change])
    said = [
        [(one.base, bool(one.accepted)) for one in watched.findings[point.name]]
        for point in history.points[2:]
    ]
    assert said == [
        [(PREVIOUS, True), (ANCHOR, True)],
        [],
        [(PREVIOUS, False), (ANCHOR, False)],
        [(ANCHOR, False)],
    ]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the time zone be the one that is farthest from UTC."""
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
def test_a_point_has_its_time_in_utc_so_that_machines_are_in_order() -> None:
    before = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    name, date = named_now({"name": "machine"})
    after = datetime.datetime.now(datetime.timezone.utc)
    assert before <= datetime.datetime.fromisoformat(date) <= after
    assert date == f"{name[:19].replace('.', ':')}+00:00"


def test_the_smallest_change_is_found_in_most_points() -> None:
    typical = simulated("power", points=2).points[-1].cells[0].ratios[STEP]
    size = smallest_change(typical, 16)
    assert size is not None
    assert 1.02 < size < 1.06
    detected = sum(
        (FIRST, False)
        in names_of(findings_of(simulated(f"power {n}", step(1, math.log(size)), 2).points[-1]))
        for n in range(40)
    )
    assert detected >= 30
    assert smallest_change(Ratio(replace(typical.log, df=0), 2), 16) is None


def roles(machine: float = 1.0, candidate: float = 1.0) -> dict[str, list[CellResult]]:
    """Return the results of three roles, of which only the candidate changes."""
    slower = {CANDIDATE: candidate, ANCHOR: 1.0, "twin": 1.0, PREVIOUS: 1.0}
    return {
        role: [
            in_rounds(
                role if role != CANDIDATE else "zeo",
                [[machine * value for value in run] for run in noisy(number, slower[role])],
                benchmark_code="abc", durability="synced", trips="3", python_version="3.13.1",
            )
        ]
        for number, role in enumerate(slower)
    }  # fmt: skip


def point_of(name: str, **how: float) -> Point:
    known = {role: packages(0) for role in (ANCHOR, PREVIOUS)}
    return Point(
        name, "2026-01-01T00:00:00+00:00", {"name": "machine"}, "cpython 3.13.1",
        {CANDIDATE: packages(1), **known}, point_cells(roles(**how)),
    )  # fmt: skip


def test_a_machine_that_gets_20_percent_faster_raises_no_verdict() -> None:
    slow, fast = point_of("1"), replace(point_of("2", machine=1 / 1.2), previous="1")
    assert fast.cells[0].figure == pytest.approx(1.2 * slow.cells[0].figure)
    assert findings_of(fast) == []
    assert [one.base for one in findings_of(point_of("3", machine=1 / 1.2, candidate=1.05))] == [
        PREVIOUS, ANCHOR,
    ]  # fmt: skip


def test_a_point_is_read_as_it_was_written(tmp_path: Path) -> None:
    point = point_of("2026-01-01T00.00.00-abcdef", candidate=1.05)
    path = write_point(point, tmp_path / "new")
    read = read_point(path)
    assert read.cells[0].ratios[POSITION].interval == pytest.approx(
        point.cells[0].ratios[POSITION].interval
    )
    assert read.cells[0].costs == point.cells[0].costs == {
        "trips": {role: [3.0, 3.0, 3.0] for role in (CANDIDATE, ANCHOR, PREVIOUS)}
    }  # fmt: skip
    assert read.packages == point.packages
    assert read.cells[0].series == point.cells[0].series
    assert [str(one.point) for one in findings_of(read)] == [point.name] * 2


def test_a_previous_candidate_that_is_the_anchor_has_its_ratios() -> None:
    point = replace(point_of("1"), packages={CANDIDATE: packages(1), ANCHOR: packages(0)})
    cell = replace(point.cells[0], ratios={POSITION: point.cells[0].ratios[POSITION]})
    known = {**point.packages, PREVIOUS: packages(0)}
    same = with_aliases(replace(point, cells=[cell], packages=known))
    assert same.cells[0].ratios[STEP] == cell.ratios[POSITION]
    absent = replace(point, cells=[cell], packages=known, absent={PREVIOUS: "gone"})
    assert STEP not in with_aliases(absent).cells[0].ratios


def test_changed_packages_are_named_with_both_versions() -> None:
    first, second = simulated("packages", points=2).points
    commit = {"RelStorage": Package("4.2.0", "0123456789abcdef", "file:///x", modified=True)}
    second = replace(second, packages={**second.packages, CANDIDATE: commit}, python="cpython 3.14")
    assert changed_packages(second, first) == [
        "RelStorage 4.0.0 → 4.2.0 (git 0123456789ab, modified)",
        "Python cpython 3.13 → cpython 3.14",
    ]
    assert changed_packages(first, None) == []


def test_the_cell_of_a_point_leaves_out_parameters_with_their_defaults() -> None:
    cell: PointCell = point_of("1").cells[0]
    assert cell.parameters == {"clients": 2, "client_kind": "thread", "shared_db": True}
