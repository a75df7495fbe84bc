"""Where a curve bends."""

from __future__ import annotations

from collections.abc import Sequence

from zodbshootout.reports.chart import Point

FEWEST = 3
"""Two points are a straight line."""


def knee_of(points: Sequence[Point], across: Sequence[float]) -> Point | None:
    """Return the point of a curve from which on it rises less, or falls, if there is one.

    That is the point farthest above the straight line between the first one and the last one
    (Satopaa et al., "Finding a 'Kneedle' in a Haystack", ICDCS Workshops 2011); *across* says how
    far from the left each of them is drawn.  It has to be above that line for sure: the lower end
    of its interval lies above the line through the upper ends of the intervals of the other two.
    """
    if len(points) < FEWEST:
        return None
    found, height = None, 0.0
    first, last = points[0], points[-1]
    for point, x in zip(points[1:-1], across[1:-1], strict=True):
        part = (x - across[0]) / (across[-1] - across[0])
        if point.low is None or first.high is None or last.high is None:
            return None
        above = point.y - _between(first.y, last.y, part)
        if point.low > _between(first.high, last.high, part) and above > height:
            found, height = point, above
    return found


def _between(first: float, last: float, part: float) -> float:
    return first + (last - first) * part
