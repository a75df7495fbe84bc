"""A/A: the distance of the ratios of equal contenders from 1.

A configuration contains ZEO twice, each with a private server on its own FileStorage, and
RelStorage on SQLite twice.  The command measures the default benchmarks with two clients and the
default effort.  Any distance of a ratio of equal contenders from 1 is error.

A ratio is estimated from pairs: the values of both contenders in slices with the same number in the
same run.  Their slices are about a second apart, so the state of the machine affects both.  The
estimator is that of Hodges and Lehmann, applied to the logarithms of the pairs' ratios: the median
of the means of any two logarithms, including twice the same one (Hodges, J. L. and Lehmann, E. L.,
"Estimates of location based on rank tests", Annals of Mathematical Statistics 34, 1963).  With
logarithms, a ratio and its inverse are equally far from 1.  The estimate stays bounded if up to
29 % of the pairs are arbitrarily wrong, for example because another program had the processor.  If
the differences are normal, it needs 5 % more pairs than the mean; the median needs 57 % more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from benchmarks.command import Done, Run, runs_of, shoot_out
from benchmarks.contenders import IMPORTS, sqlite, zeo, zeo_server
from benchmarks.line import Line, at_least, at_most, info

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
MEDIAN = 0.02
"""The goal for the median distance from 1."""
GREATEST = 0.06
WALL = 215.0
"""Seconds that the former engine took for the same run, on two cores."""
SHARE = 0.60


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the figures of one run of the command."""
    effort = ["-p", "1", "-n", "4", "--min-time", "0.02"] if quick else []
    done = shoot_out(CONFIGURATION, "-c", "2", *effort)
    ratios = _ratios(done)
    for name, ratio in ratios.items():
        yield info(f"precision: {name}", ratio, "{:.3f}")
    distances = [abs(ratio - 1) for ratio in ratios.values()]
    yield at_most(
        "precision: median distance from 1", statistics.median(distances), MEDIAN, "{:.1%}"
    )
    yield at_most("precision: greatest distance from 1", max(distances), GREATEST, "{:.1%}")
    yield at_most("precision: wall time", done.wall, WALL, "{:.0f} s")
    yield at_least("precision: share on the clock", done.on_clock / done.wall, SHARE, "{:.0%}")
    yield info("precision: share by value x loops", done.slice_seconds / done.wall, "{:.0%}")


def _ratios(done: Done) -> dict[str, float]:
    runs = {
        (result.cell.contender, result.cell.benchmark): runs_of(result) for result in done.results
    }
    benchmarks = dict.fromkeys(benchmark for _, benchmark in runs)
    return {
        f"{first.rpartition('_')[0]} {benchmark}": math.exp(
            hodges_lehmann(log_ratios(runs[first, benchmark], runs[second, benchmark]))
        )
        for first, second in TWINS
        for benchmark in benchmarks
    }


def log_ratios(first: Sequence[Run], second: Sequence[Run]) -> list[float]:
    """Return the logarithms of the ratios of values, for the slices that both have."""
    logarithms = []
    for one, other in zip(first, second, strict=True):
        partners = dict(zip(other.slices, other.values, strict=True))
        logarithms += [
            math.log(value / partners[number])
            for number, value in zip(one.slices, one.values, strict=True)
            if number in partners
        ]
    return logarithms


def hodges_lehmann(numbers: Sequence[float]) -> float:
    """Return the median of the means of any two *numbers*, including twice the same one."""
    return statistics.median(
        (number + other) / 2 for at, number in enumerate(numbers) for other in numbers[at:]
    )
