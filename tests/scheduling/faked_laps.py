"""Laps of fake workers, which take their slices when they are told to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zodbshootout.model.outcome import Failed
from zodbshootout.scheduling.laps import Meter


def carry_out(
    workers: Mapping[Any, Any],
    lap: Sequence[tuple[Any, int]],
    meter: Meter[Any],
    answered: Callable[[Any], object],
) -> None:
    """Take the slices of a lap as :func:`zodbshootout.scheduling.laps.carry_out` does."""
    keys = list(dict.fromkeys(key for key, _ in lap))
    read_each = meter.begin(keys)
    for key, number in lap:
        if key in workers:
            try:
                workers[key].take(number)
            except Failed:
                answered(key)
            if key in read_each:
                meter.read(key)
    for key in keys:
        if key in workers:
            answered(key)
            if key not in read_each:
                meter.read(key)
