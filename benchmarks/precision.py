"""A/A: how exactly equal contenders are found equal, here and in another revision.

A configuration contains ZEO twice, each with a private server on its own FileStorage, and
RelStorage on SQLite twice.  The command measures the default benchmarks with two clients and the
default effort.  These are 14 pairs of equal contenders: any distance of a ratio from 1 is error.

With ``--against REV``, the command of that Git revision and the command of this checkout measure in
turn, with the same options.  The files of both are read alike, as this checkout reads them.
"""

from __future__ import annotations

import math
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.command import ROOT, Measured, Run, measure_with
from benchmarks.contenders import IMPORTS, sqlite, zeo, zeo_server
from benchmarks.line import Line, NotMeasured, at_least, at_most, info
from zodbshootout.results.estimate import Estimate, mean_of_runs
from zodbshootout.results.pairs import Pairs, log_ratios_of
from zodbshootout.results.probabilities import corrected
from zodbshootout.results.ratios import FALSE_CALLS

CONFIGURATION = (
    IMPORTS
    + zeo_server("first")
    + zeo_server("second")
    + zeo("zeo_1", "first")
    + zeo("zeo_2", "second")
    + sqlite("sqlite_1")
    + sqlite("sqlite_2")
)
TWINS = (("zeo_1", "zeo_2"), ("sqlite_1", "sqlite_2"))
OPTIONS = ("-c", "2", "--object-counts", "100")
TIMES = 2
"""How often each engine measures with ``--against``."""
PART = 1 / 3
"""The goal for the half interval, relative to that of the other revision."""
RUNS = 8
"""The goal for the number of runs of each pair."""
WORST = 0.04
"""The goal for the greatest distance of a ratio from 1."""
SHARE = 0.80
"""The goal for the share of the time on the clock, from the first slice to the last."""


@dataclass(frozen=True)
class Precision:
    """What a run of the command found out about equal contenders."""

    ratios: Sequence[Estimate]
    """The logarithm of the ratio of each pair of equal contenders."""
    runs: Sequence[int]
    """The number of runs of each pair."""
    share: float
    """The share on the clock of the time from the first slice to the end of the last."""

    @property
    def half_interval(self) -> float:
        """The median over the pairs of half the width of the interval of the logarithm."""
        return statistics.median(ratio.half_width for ratio in self.ratios)

    @property
    def worst(self) -> float:
        """The greatest distance of a ratio from 1."""
        return max(math.expm1(abs(ratio.mean)) for ratio in self.ratios)

    @property
    def called(self) -> int:
        """The number of pairs that are called different, which they are not."""
        p_values = corrected([ratio.p_value for ratio in self.ratios], FALSE_CALLS)
        return sum(p_value <= FALSE_CALLS for p_value in p_values)

    def lines(self, name: str = "") -> Iterator[Line]:
        """Yield the figures of the engine of another revision with this *name*."""
        yield info(f"precision: {name}, half interval", self.half_interval, "{:.1%}")
        yield info(f"precision: {name}, greatest distance", self.worst, "{:.1%}")
        yield info(f"precision: {name}, share on the clock", self.share, "{:.0%}")
        yield info(f"precision: {name}, fewest runs", min(self.runs), "{:.0f}")
        yield info(f"precision: {name}, called different", self.called, "{:.0f}")

    def goals(self, other: Precision | None = None) -> Iterator[Line]:
        """Yield the figures with their goals, of which one depends on the engine of *other*."""
        if other is None:
            yield info("precision: half interval", self.half_interval, "{:.1%}")
        else:
            limit = PART * other.half_interval
            yield at_most("precision: half interval", self.half_interval, limit, "{:.1%}")
        yield at_most("precision: greatest distance", self.worst, WORST, "{:.1%}")
        yield at_least("precision: share on the clock", self.share, SHARE, "{:.0%}")
        yield at_least("precision: fewest runs", min(self.runs), RUNS, "{:.0f}")
        yield at_most("precision: called different", self.called, 0, "{:.0f}")


def measure(*, quick: bool, against: str = "") -> Iterator[Line]:
    """Yield the figures of this checkout and, with *against*, those of that revision."""
    effort = ["--at-most", "20s"] if quick else []
    if not against:
        cells = measure_with(CONFIGURATION, *OPTIONS, *effort)
        yield from precision_of(cells).goals()
        yield from off_the_clock(cells)
        return
    with _checkout(against) as sources:
        for _ in range(1 if quick else TIMES):
            old = precision_of(measure_with(CONFIGURATION, *OPTIONS, *effort, sources=sources))
            yield from old.lines(against)
            cells = measure_with(CONFIGURATION, *OPTIONS, *effort)
            yield from precision_of(cells).goals(old)
            yield from off_the_clock(cells)


@contextmanager
def _checkout(revision: str) -> Iterator[Path]:
    """Check out a revision into a temporary directory; provide the directory of its sources."""
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        directory = Path(name, "checkout")
        command = ["git", "-C", str(ROOT), "worktree"]
        added = subprocess.run(
            [*command, "add", "--detach", "--quiet", str(directory), revision],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        if added.returncode:
            raise NotMeasured(f"--against {revision}: {added.stderr.strip()}")
        try:
            yield directory / "src"
        finally:
            subprocess.run([*command, "remove", "--force", str(directory)], check=False)


def precision_of(cells: Measured) -> Precision:
    """Return what was found out about the pairs of equal contenders."""
    ratios, counts = [], []
    for benchmark in dict.fromkeys(benchmark for _, benchmark in cells):
        for first, second in TWINS:
            runs = pairs_in(cells[first, benchmark], cells[second, benchmark])
            ratios.append(mean_of_runs(log_ratios_of(runs)))
            counts.append(len(runs))
    every = [run for runs in cells.values() for run in runs]
    first_start = min(run.starts[0] for run in every)
    last_start = max(run.starts[-1] for run in every)
    return Precision(
        ratios, counts, sum(run.on_clock for run in every) / (last_start - first_start)
    )


def pairs_in(first: Sequence[Run], second: Sequence[Run]) -> list[Pairs]:
    """Return the pairs of values of each round that both contenders have."""
    by_round = {run.metadata["round"]: run for run in second}
    in_rounds: list[Pairs] = []
    for one in first:
        other = by_round.get(one.metadata["round"])
        partners = dict(zip(other.slices, other.values, strict=True)) if other else {}
        pairs = [
            (value, partners[number])
            for number, value in zip(one.slices, one.values, strict=True)
            if number in partners
        ]
        if pairs:
            in_rounds.append(pairs)
    return in_rounds


def off_the_clock(cells: Measured) -> Iterator[Line]:
    """Yield, for each benchmark, the time from a slice to the next one, and to the next row."""
    rounds: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (_, benchmark), runs in cells.items():
        for run in runs:
            of_round = rounds.setdefault((benchmark, str(run.metadata["round"])), [])
            of_round += zip(run.starts, run.ends, strict=True)
    gaps: dict[str, list[float]] = {}
    for (benchmark, _), periods in rounds.items():
        periods.sort()
        gaps.setdefault(benchmark, []).extend(
            start - end for (_, end), (start, _) in pairwise(periods)
        )
    for benchmark, seconds in gaps.items():
        milliseconds = 1000 * statistics.median(seconds)
        yield info(f"precision: off the clock, {benchmark}", milliseconds, "{:.1f} ms a slice")
    spans = sorted((periods[0][0], periods[-1][1]) for periods in rounds.values())
    between = [start - end for (_, end), (start, _) in pairwise(spans)]
    yield info("precision: from row to row", statistics.median(between), "{:.2f} s")
