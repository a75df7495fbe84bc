"""Conclusions from a history: verdicts on points, the chain of anchors, and hints of slow drift.

A point is a run that compares a candidate with the previous point's candidate and with an anchor.
The anchor stays until the user replaces it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from zodbshootout.results.anchor import Accepted
from zodbshootout.results.drift import FEWEST_POINTS, drift_of
from zodbshootout.results.estimate import Estimate
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
    Point,
    PointCell,
)
from zodbshootout.results.probabilities import t_quantile
from zodbshootout.results.verdicts import FALSE_CALLS, SIGNIFICANT, Ratio, verdicts

BASES = {STEP: PREVIOUS, POSITION: ANCHOR}
"""The names of the ratios that have verdicts, and the candidate's base in each ratio."""
DETECTED = 0.95
"""The probability that a point detects a change of the size in :func:`smallest_change`."""


@dataclass(frozen=True)
class Finding:
    """A significant change of one cell."""

    point: str
    cell: PointCell
    base: str
    """The base with which the candidate is compared: ``previous`` or ``anchor``."""
    ratio: Ratio
    """The candidate's speed as a multiple of the base's speed; for a count, the base's amount as a
    multiple of the candidate's amount."""
    count: str = ""
    """The counted cost that differs; empty for the speed."""
    amounts: tuple[float, float] = (0.0, 0.0)
    """The candidate's and the base's amount of the counted cost."""
    accepted: str = ""
    """The reason why the change was accepted and is not reported; empty if it is reported."""

    @property
    def is_better(self) -> bool:
        return self.ratio.value > 1

    def is_beyond(self, limit: float) -> bool:
        """Return whether time or cost certainly rose by more than *limit*; 0.1 means 10 %."""
        return self.ratio.interval[1] < 1 / (1 + limit)


@dataclass(frozen=True)
class Hint:
    """A slow drift of one cell, which no single point shows."""

    cell: PointCell
    since: str
    """The first point after the most probable place of the change."""
    ratio: float
    """The speed after the change as a multiple of the speed before."""


@dataclass(frozen=True)
class Position:
    """The speed of a cell at a point, relative to the first anchor of the series."""

    point: Point
    number: int
    """The number of the point among the points of the machine, from 0 on."""
    cell: PointCell
    log: Estimate
    """The logarithm of the ratio to the first anchor."""


def findings_of(
    point: Point, accepted: Sequence[Accepted] = (), earlier: Mapping[str, Point] | None = None
) -> list[Finding]:
    """Return the significant changes at a point, including accepted changes.

    The finding of an accepted change contains the reason why the change was accepted.  One false
    discovery rate holds for all ratios of the point together.  If the anchor and its twin differ
    significantly (see :func:`canary_differs`), the point has no findings.
    """
    if canary_differs(point):
        return []
    tested = [
        (cell, name, cell.ratios[name])
        for cell in point.cells for name in BASES if name in cell.ratios
    ]  # fmt: skip
    judged = verdicts([ratio for _, _, ratio in tested])
    findings = [
        Finding(point.name, cell, BASES[name], ratio)
        for (cell, name, ratio), verdict in zip(tested, judged, strict=True)
        if verdict in SIGNIFICANT
    ]
    findings += _counts(point)
    return [
        replace(finding, accepted=_reason(finding, accepted, earlier or {})) for finding in findings
    ]


def _counts(point: Point) -> Iterator[Finding]:
    for cell in point.cells:
        for base in BASES.values():
            for name, new, old in cell.differing_counts(base):
                log = math.log(old / new) if new and old else math.copysign(math.inf, old - new)
                exact = Ratio(Estimate(log, 0.0, math.inf), 1)
                yield Finding(point.name, cell, base, exact, name, (new, old))


def _reason(finding: Finding, accepted: Sequence[Accepted], points: Mapping[str, Point]) -> str:
    """Return the reason why a finding is not to be reported; empty if it is to be reported.

    An accepted change is not reported at its own point.  At later points with the same anchor,
    the cell's difference from the anchor is reported only if the difference has grown.
    """
    for change in accepted:
        if not change.covers(finding.cell) or change.point > finding.point:
            continue
        if change.point == finding.point:
            return change.reason
        then, now = points.get(change.point), points.get(finding.point)
        is_same = then and now and then.packages.get(ANCHOR) == now.packages.get(ANCHOR)
        if finding.base == ANCHOR and is_same and not _is_farther(finding, then):
            return change.reason
    return ""


def _is_farther(finding: Finding, point: Point | None) -> bool:
    """Return whether the cell's distance from the anchor has grown since *point*."""
    cell = next((c for c in point.cells if c.name == finding.cell.name), None) if point else None
    if point is None or cell is None:
        return True
    if finding.count:
        then = {name: new for name, new, _ in cell.differing_counts(ANCHOR)}.get(finding.count)
        return then is None or abs(finding.amounts[0] - finding.amounts[1]) > abs(
            then - finding.amounts[1]
        )
    if POSITION not in cell.ratios:
        return True
    difference = finding.ratio.log - cell.ratios[POSITION].log
    outwards = difference.mean * finding.ratio.log.mean > 0
    return outwards and difference.p_value <= FALSE_CALLS


def canary_differs(point: Point) -> bool:
    """Return whether the anchor and its twin differ significantly in any cell."""
    canaries = [cell.ratios[CANARY] for cell in point.cells if CANARY in cell.ratios]
    return not SIGNIFICANT.isdisjoint(verdicts(canaries))


def smallest_change(ratio: Ratio, tested: int) -> float | None:
    """Return the smallest change that is detected in 95 of 100 cases: new time divided by old.

    *tested* is the number of ratios that share the limit of false discoveries.  The result is
    ``None`` if there were too few runs.
    """
    if ratio.log.df <= 0:
        return None
    levels = (FALSE_CALLS / 2 / max(1, tested), 1 - DETECTED)
    quantiles = sum(t_quantile(ratio.log.df, level) for level in levels)
    return math.exp(quantiles * math.sqrt(ratio.log.variance))


@dataclass(frozen=True)
class MachineHistory:
    """The points of one kind of machine, the oldest first, with the conclusions from the points."""

    name: str
    points: Sequence[Point]
    accepted: Sequence[Accepted] = ()

    @property
    def newest(self) -> Point:
        return self.points[-1]

    @cached_property
    def findings(self) -> dict[str, list[Finding]]:
        """The findings of every point, by the name of the point."""
        return {
            point.name: findings_of(point, self.accepted, self.by_name) for point in self.points
        }

    @cached_property
    def left_out(self) -> list[str]:
        """The names of the points whose canary differs."""
        return [point.name for point in self.points if canary_differs(point)]

    @cached_property
    def by_name(self) -> dict[str, Point]:
        return {point.name: point for point in self.points}

    @cached_property
    def _cells(self) -> list[dict[str, PointCell]]:
        return [{cell.name: cell for cell in point.cells} for point in self.points]

    @cached_property
    def series(self) -> dict[str, list[list[Position]]]:
        """Series of positions, the oldest series first, for each cell of the newest point.

        A series of comparable positions ends if the code or the parameters of the benchmark change.
        It also ends if a new anchor was not compared with the former anchor, or if comparisons
        contradict each other; see :attr:`open_chains`.
        """
        return {cell.name: self._series_of(cell.name) for cell in self.newest.cells}

    def _series_of(self, name: str) -> list[list[Position]]:
        series: list[list[Position]] = [[]]
        chain = Estimate(0.0, 0.0, math.inf)
        anchor, kind = None, None
        for number, point in enumerate(self.points):
            cell = self._cells[number].get(name)
            if cell is None or POSITION not in cell.ratios:
                continue
            if series[-1] and cell.series != kind:
                series.append([])
                chain = Estimate(0.0, 0.0, math.inf)
            elif series[-1] and point.packages[ANCHOR] != anchor:
                if LINK in cell.ratios and name not in self.open_chains[point.name]:
                    chain = _added(chain, cell.ratios[LINK].log)
                else:
                    series.append([])
                    chain = Estimate(0.0, 0.0, math.inf)
            anchor, kind = point.packages[ANCHOR], cell.series
            if point.name not in self.left_out:
                log = _added(chain, cell.ratios[POSITION].log)
                series[-1].append(Position(point, number, cell, log))
        return series

    @cached_property
    def open_chains(self) -> dict[str, dict[str, tuple[Ratio, Ratio]]]:
        """The chains of anchors that do not close, each with the two ratios that differ.

        The keys are the names of points; the keys of their values are the names of cells.

        The ratio of a candidate to an anchor is measured at the candidate's point.  If the next
        point replaces the anchor, it measures the ratio of the same candidate to the former anchor
        again.  The chain closes unless the two ratios differ significantly.
        """
        return {point.name: self._open_chains_at(point) for point in self.points}

    def _open_chains_at(self, point: Point) -> dict[str, tuple[Ratio, Ratio]]:
        before = self.by_name.get(point.previous)
        if before is None or FORMER not in point.packages:
            return {}
        earlier = {cell.name: cell for cell in before.cells}
        compared = [
            (cell.name, earlier[cell.name].ratios[POSITION], cell.ratios[CLOSURE])
            for cell in point.cells
            if CLOSURE in cell.ratios and cell.name in earlier
            and POSITION in earlier[cell.name].ratios
            and earlier[cell.name].series == cell.series
        ]  # fmt: skip
        differences = [Ratio(again.log - once.log, again.runs) for _, once, again in compared]
        return {
            name: (once, again)
            for (name, once, again), verdict in zip(compared, verdicts(differences), strict=True)
            if verdict in SIGNIFICANT
        }

    @cached_property
    def new_series(self) -> list[str]:
        """Sentences that explain why series begin with the newest point."""
        before = self.by_name.get(self.newest.previous)
        if before is None:
            return []
        changes = []
        is_linked = any(LINK in cell.ratios for cell in self.newest.cells)
        if before.packages[ANCHOR] != self.newest.packages[ANCHOR] and not is_linked:
            changes.append(
                "all series begin anew: the anchor has changed, and was not measured in turn with "
                "the former one on this kind of machine"
            )
        for cell in self.newest.cells:
            others = [c for c in before.cells
                      if (c.benchmark, c.contender, c.measure) == _kind(cell)]  # fmt: skip
            if others and cell.series not in {other.series for other in others}:
                changes.append(f"{cell.name} begins a new series: {_difference(cell, others[0])}")
        return changes

    @cached_property
    def hints(self) -> list[Hint]:
        """Slow drifts since the last significant step, at most one per cell of the newest point."""
        stretches = {
            name: stretch
            for name, series in self.series.items()
            if len(stretch := self._undisturbed(series[-1])) >= FEWEST_POINTS
        }
        hints = []
        for stretch in stretches.values():
            drift = drift_of([position.log.mean for position in stretch], len(stretches))
            if drift is not None:
                cell = stretch[-1].cell
                since = stretch[drift.start].point.name
                hints.append(Hint(cell, since, math.exp(drift.difference)))
        return hints

    @cached_property
    def steps(self) -> set[tuple[str, str]]:
        """The significant changes of speed between points, as names of a point and a cell."""
        return {
            (one.point, one.cell.name)
            for findings in self.findings.values()
            for one in findings
            if one.base == PREVIOUS and not one.count
        }

    def _undisturbed(self, series: Sequence[Position]) -> list[Position]:
        """Return the part of a series from the last significant step on."""
        places = [
            place
            for place, position in enumerate(series)
            if (position.point.name, position.cell.name) in self.steps
        ]
        return list(series[places[-1] if places else 0 :])


def _kind(cell: PointCell) -> tuple[str, str, str]:
    return cell.benchmark, cell.contender, cell.measure


def _difference(cell: PointCell, other: PointCell) -> str:
    """Return the differences between two cells of the same benchmark."""
    differing = [
        f"{key} {other.parameters.get(key, '-')} → {value}"
        for key, value in {**dict.fromkeys(other.parameters, "-"), **cell.parameters}.items()
        if other.parameters.get(key, "-") != value
    ]
    return ", ".join(differing) or "the code of its benchmark has changed"


def _added(one: Estimate, other: Estimate) -> Estimate:
    """Return the sum of two independent logarithms."""
    return one - replace(other, mean=-other.mean)


def machine_histories(
    machines: Mapping[str, Sequence[Point]], accepted: Sequence[Accepted]
) -> list[MachineHistory]:
    """Return the history of each machine; the history with the newest point comes first."""
    histories = [MachineHistory(name, points, accepted) for name, points in machines.items()]
    return sorted(histories, key=lambda history: history.newest.name, reverse=True)


def changed_packages(point: Point, before: Point | None) -> list[str]:
    """Return the changes of packages, Python and servers, such as ``RelStorage 4.2.0 → 4.3.0``."""
    if before is None:
        return []
    facts = [_facts(before), _facts(point)]
    names = dict.fromkeys([*facts[0], *facts[1]])
    return [
        f"{name} {facts[0].get(name, '-')} → {facts[1].get(name, '-')}"
        for name in names
        if facts[0].get(name) != facts[1].get(name)
    ]


def _facts(point: Point) -> dict[str, str]:
    packages = {name: str(package) for name, package in point.packages[CANDIDATE].items()}
    return {**packages, "Python": point.python, **point.servers}
