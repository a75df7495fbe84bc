"""Results whose figures change with time."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from tests.runs import cell, measured
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult

SLOWING = [3.3, 6.1, 9.2, 11.6, 14.4, 17.0, 19.9]
"""The means of runs of a FileStorage that takes longer for each megabyte of its file."""


def values(means: Sequence[float], seed: int = 1, noise: float = 0.02) -> list[list[float]]:
    """Return runs of six noisy values."""
    chance = random.Random(seed)
    return [[mean * math.exp(chance.gauss(0, noise)) for _ in range(6)] for mean in means]


def course(target: Cell, runs: Sequence[Sequence[float]], **more: Any) -> CellResult:
    """Return a result of ``--for``: a run with these values every 45 seconds."""

    def starts(number: int) -> str:
        slices = len(runs[number])
        return " ".join(repr(1e6 + EVERY * (number + at / slices)) for at in range(slices))

    def numbers(number: int) -> str:
        slices = len(runs[number])
        return " ".join(map(str, range(number * slices, (number + 1) * slices)))

    facts = {"for_s": EVERY * len(runs), "duration": EVERY, **more}
    return measured(target, *runs, slices=numbers, slice_starts_s=starts, **facts)


RUNS, EVERY = 40, 45.0


def for_a_time(
    contender: str,
    rise: float = 1.0,
    seed: int = 1,
    noise: float = 0.01,
    rtt: float | None = None,
    **more: Any,
) -> CellResult:
    """Return a result whose runs share their clients, at the end *rise* times as long.

    Half of the noise of a run is still in the next one.
    """
    chance, log, runs = random.Random(seed), 0.0, []
    for number in range(RUNS):
        log = log / 2 + chance.gauss(0, noise)
        mean = math.exp(log) * (1 + (rise - 1) * number / (RUNS - 1))
        runs.append([mean * math.exp(chance.gauss(0, noise)) for _ in range(4)])
    return course(cell("update", contender, rtt=rtt), runs, **more)
