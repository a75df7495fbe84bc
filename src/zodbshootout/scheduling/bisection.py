"""The search for the first bad commit: which commits to measure, for how long, and the outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from zodbshootout.contenders.suspects import Suspects
from zodbshootout.model.costs import Cost
from zodbshootout.results.bisection import Finding, Step
from zodbshootout.results.names import long_name
from zodbshootout.results.result import CellResult
from zodbshootout.results.sequential import Rule
from zodbshootout.results.verdicts import Pair, compare

ERROR = 0.05
"""The maximum probability that any finding of a search is wrong."""


@dataclass
class Search:
    """A search for the first bad commit, which can be interrupted after each step."""

    suspects: Suspects
    measure: Callable[[str, Rule, Step | None], Step]
    """A function that measures a commit until a rule decides.  Given the first step, the function
    compares only the figure that decided in the first step."""
    keep: Callable[[Sequence[Step]], None]
    """A function that stores all steps; called after each step."""
    looks: Sequence[int]
    steps: list[Step]
    """The steps so far; the first step compares the bad commit with the good commit."""

    def run(self) -> None:
        """Take all remaining steps.

        :raises UserError: if no suspect is left, because a bad commit precedes a good commit
        """
        for step in self.steps[1:]:
            self.suspects.mark(step.finding.value, step.commit)
        while commit := self._next:
            first = self.steps[0] if self.steps else None
            rule = Rule(self._error, first.boundary if first else None, self.looks)
            step = self.measure(commit, rule, first)
            self.steps.append(step)
            self.keep(self.steps)
            if first is not None:
                self.suspects.mark(step.finding.value, commit)

    @property
    def first_bad(self) -> Sequence[str]:
        """The commits that may be the first bad commit; empty if there is no change."""
        has_changed = bool(self.steps) and self.steps[0].finding is Finding.BAD
        return self.suspects.left if has_changed else []

    @property
    def _next(self) -> str:
        if not self.steps:
            return self.suspects.bad
        return self.suspects.next if self.steps[0].finding is Finding.BAD else ""

    @property
    def _error(self) -> float:
        """The maximum probability that the finding of the next step is wrong.

        Halving takes log2(commits) steps, but more if some commits are skipped.  What is left of
        :data:`ERROR` is divided into equal parts: one for each step, and one in reserve.
        """
        steps = math.ceil(math.log2(max(2, len(self.suspects.left)))) + (not self.steps)
        spent = sum(step.error for step in self.steps)
        return (ERROR - spent) / (steps + 1)


@dataclass
class Decision:
    """The decision about a candidate, made while workers measure the candidate."""

    rule: Rule
    candidate: str
    """The suffix of contenders' names that marks the candidate's results."""
    cost: Cost | None = None
    """The cost that is compared; ``None`` for the speed."""
    figure: str = ""
    """The name of the only figure that may decide; empty if any figure may decide."""
    pair: Pair | None = None
    """The pair that decided, or the last pair that was compared."""
    is_changed: bool | None = None
    """Whether the candidate has the change; ``None`` while that is undecided."""

    def rounds(self, results: Sequence[CellResult], rows: int) -> int:
        """Decide if possible; return how many rounds the row of *results* needs in all."""
        sides = self.sides(results)
        if self.is_changed is not None or not all(sides):
            return 0
        made = min(len(result.runs) for side in sides for result in side)
        if made not in self.rule.looks:
            return self.rule.next_look(made)
        good, of_candidate = map(self._figures, sides)
        compared = compare(good, of_candidate).pairs
        pairs = [pair for pair in compared if self.figure in {"", name_of(pair)}]
        several = 1 if self.figure else max(1, len(pairs) * rows)
        rule = replace(self.rule, error=self.rule.error / several)
        for pair in pairs:
            self.pair, self.is_changed = pair, _decided(rule, pair)
            if self.is_changed is not None:
                return 0
        return self.rule.next_look(made) if pairs else 0

    def _figures(self, results: Sequence[CellResult]) -> list[CellResult]:
        if self.cost is None:
            return [*results]
        return [result.with_cost(self.cost) or replace(result, runs=()) for result in results]

    def sides(self, results: Sequence[CellResult]) -> tuple[list[CellResult], list[CellResult]]:
        """Return the results of the good commit and of the candidate, with no suffix in names."""
        good, of_candidate = list[CellResult](), list[CellResult]()
        for result in results:
            name = result.cell.contender.removesuffix(self.candidate)
            if name == result.cell.contender:
                good.append(result)
            else:
                of_candidate.append(replace(result, cell=replace(result.cell, contender=name)))
        return good, of_candidate


def _decided(rule: Rule, pair: Pair) -> bool | None:
    cost = pair.base.cost
    if rule.boundary is None and cost and not cost.differs(pair.base.mean, pair.new.mean):
        return None
    return rule.is_changed(pair.speed)


def name_of(pair: Pair) -> str:
    """Return the name of the figure that a pair compares."""
    return " ".join(filter(None, [long_name(pair.base.cell), pair.base.measure]))
