"""Simulated histories: how often they give false verdicts, and how soon true ones.

A simulated point has eight cells.  In each of twelve rounds, every contender has its true speed
times its own noise; the machine's speed affects all contenders of a round, hence no ratio.
The command's own code judges the points: :mod:`zodbshootout.results.watching`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from benchmarks.figure import Figure, at_least, at_most, info
from zodbshootout.results.estimate import mean_of
from zodbshootout.results.history import (
    ANCHOR,
    CANARY,
    CANDIDATE,
    CLOSURE,
    FORMER,
    LINK,
    POSITION,
    PREVIOUS,
    STEP,
    Package,
    Packages,
    Point,
    PointCell,
)
from zodbshootout.results.verdicts import Ratio
from zodbshootout.results.watching import MachineHistory, canary_differs

CELLS, ROUNDS, NOISE = 8, 12, 0.015
"""The cells and rounds of a point, and the standard deviation of a contender in a round."""
POINTS = 50
STEP_OF_5 = 0.05
Course = Callable[[int, int], float]
"""Return the logarithm of the true speed of a cell at a point, by their numbers."""


def steady(point: int, cell: int) -> float:  # noqa: ARG001
    """Return a speed that does not change."""
    return 0.0


def step(place: int, size: float = STEP_OF_5) -> Course:
    """Return a course in which the first cell becomes slower at a point."""
    return lambda point, cell: -size if cell == 0 and point >= place else 0.0


def drift(size: float) -> Course:
    """Return a course in which the first cell becomes slower from point to point."""
    return lambda point, cell: -size * point if cell == 0 else 0.0


def packages(version: int) -> Packages:
    """Return the packages of a fictitious release."""
    return {"RelStorage": Package(f"4.{version}.0")}


class Simulated:
    """Points that are simulated in sequence, each with a new candidate."""

    def __init__(self, seed: object, course: Course = steady, cells: int = CELLS) -> None:
        self.chance = random.Random(str(seed))  # noqa: S311
        self.course = course
        self.cells = cells
        self.points: list[Point] = []
        self.anchor = 0
        """The number of the point whose candidate is the anchor."""

    def add(
        self, *, canary: float = 0.0, new_anchor: bool = False, gap: float = 0.0, code: str = "a"
    ) -> Point:
        """Measure another point.

        *canary* is the logarithm of the speed of the anchor's twin.  *gap* is the logarithm of the
        former anchor's gain in speed since the previous point.  *new_anchor* makes the candidate
        the anchor.
        """
        number = len(self.points)
        former = self.anchor
        self.anchor = number if new_anchor else self.anchor
        roles = {CANDIDATE: number, ANCHOR: self.anchor, PREVIOUS: number - 1, FORMER: former}
        if number == 0:
            del roles[PREVIOUS]
        if not new_anchor:
            del roles[FORMER]
        extra = {"twin": canary, FORMER: gap}
        cells = [
            PointCell(
                f"zeo: benchmark{cell}", f"benchmark{cell}", "zeo", "", {}, code, "synced", 1000.0,
                self._ratios(
                    {role: self.course(which, cell) + extra.get(role, 0.0)
                     for role, which in {**roles, "twin": self.anchor}.items()}
                ),
            )
            for cell in range(self.cells)
        ]  # fmt: skip
        point = Point(
            f"2026-01-01T{number:04}",
            f"2026-01-{1 + number % 28:02}T00:00:00+00:00",
            {"name": "machine"},
            "cpython 3.13",
            {role: packages(which) for role, which in roles.items()},
            cells,
            previous=self.points[-1].name if self.points else "",
        )
        self.points.append(point)
        return point

    def _ratios(self, truth: dict[str, float]) -> dict[str, Ratio]:
        logs = {
            role: [speed + self.chance.gauss(0, NOISE) for _ in range(ROUNDS)]
            for role, speed in truth.items()
        }
        pairs = [name.split("/") for name in (POSITION, STEP, CANARY, LINK, CLOSURE)]
        return {
            f"{new}/{base}": Ratio(
                mean_of([a - b for a, b in zip(logs[new], logs[base], strict=True)]), ROUNDS, True
            )
            for new, base in pairs
            if new in logs and base in logs
        }

    @property
    def history(self) -> MachineHistory:
        return MachineHistory("machine", self.points)


def simulated(seed: object, course: Course = steady, points: int = POINTS) -> Simulated:
    """Return a history whose points each have a new candidate."""
    history = Simulated(seed, course)
    for _ in range(points):
        history.add()
    return history


def figures(times: int) -> Iterator[Figure]:
    """Yield the error rates of *times* histories of each kind."""
    yield from _steady([simulated(f"steady {n}").history for n in range(times)])
    yield from _stepping([simulated(f"step {n}", step(25), 30).history for n in range(times)])
    yield from _drifting([simulated(f"drift {n}", drift(0.005), 30).history for n in range(times)])
    yield from _canaries(times * POINTS)
    yield from _replaced(times * POINTS // 5)


def _steady(histories: Sequence[MachineHistory]) -> Iterator[Figure]:
    points = [point for history in histories for point in history.findings.values()]
    hints = sum(bool(history.hints) for history in histories)
    yield at_most(
        "error_rates: history, steady, points with a verdict", _part(points), 0.015, "{:.2%}"
    )
    hinted = hints / len(histories)
    yield at_most("error_rates: history, steady, series of 50 with a hint", hinted, 0.03, "{:.1%}")


def _stepping(histories: Sequence[MachineHistory]) -> Iterator[Figure]:
    name = "zeo: benchmark0"
    detected = [
        any(one.base == PREVIOUS and one.cell.name == name and not one.is_better
            for one in history.findings[history.points[25].name])
        for history in histories
    ]  # fmt: skip
    wrong = [
        any(one.base == PREVIOUS for one in findings)
        for history in histories
        for point, findings in history.findings.items()
        if point != history.points[25].name
    ]
    yield at_least(
        "error_rates: history, step of 5 %, found at its point", _part(detected), 0.95, "{:.1%}"
    )
    yield at_most(
        "error_rates: history, step of 5 %, found at others", _part(wrong), 0.01, "{:.2%}"
    )


def _drifting(histories: Sequence[MachineHistory]) -> Iterator[Figure]:
    of_previous = [
        any(one.base == PREVIOUS for one in findings)
        for history in histories
        for findings in history.findings.values()
    ]
    name = "zeo: benchmark0"
    first = [
        next((number for number, findings in enumerate(history.findings.values())
              if any(one.base == ANCHOR and one.cell.name == name for one in findings)), 30)
        for history in histories
    ]  # fmt: skip
    noticed = [
        any(hint.cell.name == name for hint in history.hints)
        or any(one.base == PREVIOUS and one.cell.name == name
               for findings in history.findings.values() for one in findings)
        for history in histories
    ]  # fmt: skip
    yield info(
        "error_rates: history, drift of 0.5 % a point, steps with a verdict",
        _part(of_previous),
        "{:.2%}",
    )
    yield info(
        "error_rates: history, drift, points until the anchor tells",
        sum(first) / len(first),
        "{:.1f}",
    )
    yield at_least(
        "error_rates: history, drift, hint or step after 30 points", _part(noticed), 0.95, "{:.1%}"
    )


def _canaries(points: int) -> Iterator[Figure]:
    equal, off = Simulated("canary"), Simulated("canary off")
    kept_out = [canary_differs(equal.add()) for _ in range(points)]
    caught = [canary_differs(off.add(canary=0.05)) for _ in range(points)]
    yield at_most(
        "error_rates: history, canary, left out by chance", _part(kept_out), 0.015, "{:.2%}"
    )
    yield at_least(
        "error_rates: history, canary that is 5 % off, left out", _part(caught), 0.95, "{:.1%}"
    )


def _replaced(times: int) -> Iterator[Figure]:
    """Replace the anchor with and without closure."""
    open_chains: dict[float, list[bool]] = {0.0: [], 0.05: []}
    for gap, outcomes in open_chains.items():
        for number in range(times):
            history = simulated(f"replaced {gap} {number}", points=2)
            point = history.add(new_anchor=True, gap=gap)
            outcomes.append(bool(history.history.open_chains[point.name]))
    closed, opened = open_chains.values()
    yield at_most(
        "error_rates: history, anchor replaced, said not to close", _part(closed), 0.015, "{:.2%}"
    )
    yield at_least(
        "error_rates: history, anchor changed by 5 %, said so", _part(opened), 0.95, "{:.1%}"
    )


def _part(outcomes: Sequence[object]) -> float:
    return sum(map(bool, outcomes)) / len(outcomes)
