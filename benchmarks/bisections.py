"""Simulated searches for a commit, and how often they name the right one.

A search has sixteen commits after the good one.  One of them makes a benchmark slower, and three
others cannot be built, but not the one before the slow one: no search could tell those two apart.
git chooses the commits, in a repository of empty ones; the rounds are those of
:mod:`benchmarks.error_rates`.  The command's own code decides.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figure import Figure, at_least, at_most, info
from zodbshootout.contenders.suspects import Suspects
from zodbshootout.results.bisection import Finding, Step
from zodbshootout.results.sequential import LOOKS, Rule, boundary_for
from zodbshootout.scheduling.bisection import ERROR, Search

if TYPE_CHECKING:
    from benchmarks.error_rates import Row

COMMITS, BROKEN = 16, 3
MakeRow = Callable[[random.Random, float], "Row"]
"""Returns the rounds of two contenders, the second slower by a factor."""


@dataclass
class Simulated:
    """A search among the commits of a repository, the first of which is the good one."""

    commits: Sequence[str]
    make_row: MakeRow
    chance: random.Random
    slower: float
    """The time since the planted commit, as a multiple of the time before it."""
    runs: int = 0
    """The number of runs in all steps."""
    planted: str = field(init=False)
    broken: frozenset[str] = field(init=False)
    """The commits that cannot be built."""
    named: Sequence[str] = ()
    """The commits one of which is the first bad one, according to the search."""

    def __post_init__(self) -> None:
        number = self.chance.randrange(1, len(self.commits))
        self.planted = self.commits[number]
        may_break = {*range(1, COMMITS)} - {number, number - 1}  # not the bad one
        chosen = self.chance.sample(sorted(may_break), BROKEN)
        self.broken = frozenset(self.commits[n] for n in chosen)

    def search(self, checkout: Path) -> None:
        with tempfile.TemporaryDirectory() as directory:
            good, *_, bad = self.commits
            suspects = Suspects.of(checkout, good, bad, Path(directory))
            search = Search(suspects, self.measure, lambda _: None, LOOKS, [])
            search.run()
            self.named = [*search.first_bad]

    def measure(self, commit: str, rule: Rule, first: Step | None) -> Step:  # noqa: ARG002
        """Measure a commit in simulated rounds."""
        if commit in self.broken:
            return Step(commit, Finding.SKIPPED, 0.0, "broken")
        has_changed = self.commits.index(commit) >= self.commits.index(self.planted)
        row = self.make_row(self.chance, self.slower if has_changed else 1.0)
        for look in rule.looks:
            while len(row.logs) < look:
                row.make_round()
            decided = rule.is_changed(row.ratio)
            if decided is not None:
                break
        self.runs += len(row.logs)
        finding = {True: Finding.BAD, False: Finding.GOOD, None: Finding.SKIPPED}[decided]
        boundary = boundary_for(row.ratio)
        return Step(commit, finding, rule.error, "", "add", boundary=boundary)


def repository(directory: Path) -> list[str]:
    """Create a repository of empty commits; return their hashes, the good one first."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    git = ["git", "-C", str(directory), *identity]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for number in range(COMMITS + 1):
        commit = ["commit", "--quiet", "--allow-empty", "--message", str(number)]
        subprocess.run([*git, *commit], check=True)
    listed = [*git, "rev-list", "--reverse", "HEAD"]
    return subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()


def searches(times: int, slower: float, make_row: MakeRow) -> list[Simulated]:
    """Return *times* completed searches."""
    with tempfile.TemporaryDirectory() as name:
        commits = repository(Path(name))
        made = [
            Simulated(commits, make_row, random.Random(f"{slower} {n}"), slower)  # noqa: S311
            for n in range(times)
        ]
        for one in made:
            one.search(Path(name))
    return made


def figures(times: int, make_row: MakeRow) -> Iterator[Figure]:
    """Yield the outcomes of *times* searches of each kind."""
    for slower, least in ((1.1, 0.95), (1.05, 0.0)):
        made = searches(times, slower, make_row)
        name = f"bisections: {100 * slower - 100:.0f} % slower"
        right = sum(one.named == [one.planted] for one in made) / times
        wrong = sum(bool(one.named) and one.planted not in one.named for one in made) / times
        yield at_least(f"{name}, right commit named", right, least, "{:.0%}")
        yield at_most(f"{name}, others named", wrong, ERROR, "{:.0%}")
        yield info(f"{name}, median of the runs", statistics.median(o.runs for o in made), "{:.0f}")
    equal = sum(bool(one.named) for one in searches(times, 1.0, make_row)) / times
    yield at_most("bisections: good and bad equal, a commit named", equal, ERROR, "{:.0%}")
