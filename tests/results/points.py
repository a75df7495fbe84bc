"""Points of a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zodbshootout.results.history import (
    Point,
)

FIRST = "zeo: benchmark0"


def with_trips(point: Point, **trips: Sequence[float]) -> Point:
    first, *others = point.cells
    return replace(point, cells=[replace(first, costs={"trips": trips}), *others])
