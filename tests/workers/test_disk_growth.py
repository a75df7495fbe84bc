from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from zodbshootout.crews.crew import Sample
from zodbshootout.model.storage_facts import DiskSize
from zodbshootout.workers.disk_growth import DiskGrowth

LONG, SHORT = 1000.0, 1.0
"""Seconds of slices: asking twice takes two seconds of the crew's."""


class Crew:
    """A crew that has only its first client asked for a size, which takes a second."""

    most_at_once = 10
    now = 0.0

    def __init__(self, *sizes: DiskSize) -> None:
        self.sizes = list(sizes)

    def call(self, name: str, *, first_only: bool) -> Sequence[DiskSize]:
        assert (name, first_only) == ("disk_size", True)
        Crew.now += 1.0
        return [self.sizes.pop(0)]


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: Crew.now)


def taken(stores: int, seconds: float = LONG, iterations: int = 1) -> Sample:
    return Sample(1, on_clock=seconds, iterations=iterations, counts=Counter(stores=stores))


def grown(crew: Any, *samples: Sample) -> dict[str, float]:
    growth = DiskGrowth(crew, writes=True)
    for sample in samples:
        growth.before()
        growth.add(growth.after(), [sample])
    return dict(growth.metadata())


def test_the_growth_is_that_of_all_slices_for_each_object_stored() -> None:
    sizes = (
        DiskSize(100, 0, 50),
        DiskSize(160, 30, 60),
        DiskSize(900, 30, 90),
        DiskSize(940, 30, 110),
    )
    growth = grown(Crew(*sizes), taken(4), taken(6))
    assert growth == {"disk_bytes": 10.0, "blob_bytes": 3.0, "log_bytes": 3.0}


def test_a_part_that_is_not_known_has_no_growth() -> None:
    known = DiskSize(100), DiskSize(160)
    assert grown(Crew(*known), taken(4)) == {"disk_bytes": 15.0}
    assert grown(Crew(DiskSize(), DiskSize()), taken(4)) == {}


def test_around_short_slices_nothing_is_asked_after_the_first_one() -> None:
    crew = Crew(DiskSize(0), DiskSize(4), DiskSize(0), DiskSize(8))
    assert grown(crew, taken(4, SHORT), taken(4, LONG), taken(4)) == {"disk_bytes": 1.5}


def test_slices_that_store_nothing_or_have_several_stretches_are_left_out() -> None:
    sizes = DiskSize(0), DiskSize(8)
    assert grown(Crew(*sizes), taken(0)) == {}
    assert grown(Crew(*sizes), replace(taken(4), iterations=11)) == {}


def test_nothing_is_asked_if_the_crew_does_not_write() -> None:
    growth: Any = DiskGrowth(Crew(), writes=False)  # type: ignore[arg-type]
    growth.before()
    growth.add(growth.after(), [taken(0)])
    assert growth.metadata() == {}


def test_the_growth_during_a_lap_is_that_of_all_its_slices() -> None:
    crew: Any = Crew(DiskSize(100), DiskSize(160))
    growth = DiskGrowth(crew, writes=True)
    growth.before()
    growth.add(growth.after(), [taken(0), taken(4)])
    assert growth.metadata() == {"disk_bytes": 15.0}
