"""Crossings: the places on a numeric axis at which the figures of two contenders are equal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from zodbshootout.results.estimate import Estimate

Line = Mapping[float, Estimate]
"""The figures of a contender by position on a numeric axis."""


@dataclass(frozen=True)
class Crossing:
    """A position at which the figures of two lines are equal, with its 95 % interval."""

    at: float
    low: float
    high: float
    figure: float
    """The figure of both lines there."""
    first_is_less: bool
    """Whether the figures of the first line are the smaller ones below this position."""


def crossings(first: Line, second: Line, *, open_ended: bool = False) -> Iterator[Crossing]:
    """Yield the crossings of two lines between their first and last common position.

    Between neighbouring positions, the lines are straight.  The whole interval of a crossing is
    between the first and the last position; if lines are *open_ended*, it may end after the last.
    """
    places = sorted(first.keys() & second.keys())
    for near, far in pairwise(places):
        here, there = first[near] - second[near], first[far] - second[far]
        if here.mean * there.mean >= 0 or here.df <= 0 or there.df <= 0:
            continue
        slope = (there.mean - here.mean) / (far - near)
        at = near - here.mean / slope
        # The error at the crossing is interpolated between the errors at the two nearest positions.
        part = (at - near) / (far - near)
        width = math.hypot((1 - part) * here.half_width, part * there.half_width) / abs(slope)
        if at - width > places[0] and (open_ended or at + width < places[-1]):
            figure = (1 - part) * first[near].mean + part * first[far].mean
            yield Crossing(at, at - width, at + width, figure, here.mean < 0)
