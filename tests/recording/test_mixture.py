"""Generated workloads have the requested properties."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from zodbshootout.recording.chunks import Kind
from zodbshootout.recording.description import Description, describe
from zodbshootout.recording.mixture import (
    PRESETS,
    Mixture,
    distribution_of,
    make,
    skew_of,
)
from zodbshootout.recording.recorded import Workload


def described(tmp_path: Path, mixture: Mixture) -> Description:
    path = tmp_path / "x.workload"
    make(mixture, path)
    return describe(Workload(path))


@pytest.mark.slow
def test_a_generated_workload_has_the_requested_numbers(tmp_path: Path) -> None:
    mixture = Mixture(
        transactions=5000, connections=3, objects=700, writes=0.3, new=0.25, counters=2,
        loads=distribution_of("12"), stores=distribution_of("4"), size=distribution_of("250"),
        rate=200.0,
    )  # fmt: skip
    description = described(tmp_path, mixture)
    writing = description.count(Kind.FINISH)
    assert description.transactions == 5000
    assert len(description.connections) == 3
    assert 0.28 < writing / 5000 < 0.32
    assert description.count(Kind.LOAD) == 12 * 5000 + writing
    assert description.count(Kind.STORE_RESOLVABLE) == writing
    assert 3.8 * writing <= description.count(Kind.STORE) <= 4 * writing  # of one object only once
    assert 0.23 < description.new_objects / (4 * writing) < 0.27
    assert description.stored_sizes().percentiles([0.1, 100]) == [250, 250]
    assert 24 < description.seconds < 26
    assert len(description.loads_of) <= 702


@pytest.mark.slow
def test_zipf_makes_some_objects_hot_and_uniform_none(tmp_path: Path) -> None:
    shares = []
    for number, skew in enumerate(("zipf:0.99", "uniform")):
        (tmp_path / str(number)).mkdir()
        mixture = Mixture(transactions=3000, objects=1000, skew=skew_of(skew), writes=0.0)
        shares += described(tmp_path / str(number), mixture).heat([0.01, 0.1])
    hottest, hot, usual, tenth = shares
    # By Zipf's law with 1000 objects: the sums of 1 / n ** 0.99 up to 10 and 100 over that to 1000.
    assert 0.33 < hottest < 0.44
    assert 0.62 < hot < 0.74
    assert usual < 0.02
    assert tenth < 0.15


def test_equal_mixtures_make_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        make(Mixture(transactions=50, seed=7), tmp_path / name)
    make(Mixture(transactions=50, seed=8), tmp_path / "c")
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b != c


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PRESETS))
def test_the_presets_can_be_made(name: str, tmp_path: Path) -> None:
    few = replace(PRESETS[name], transactions=1000)
    assert described(tmp_path, few).transactions == 1000


@pytest.mark.parametrize(
    ("text", "mean"),
    [("7", 7), ("uniform:10-30", 20), ("geometric:20", 20), ("lognormal:100,0.5", 113.3)],
)
def test_distributions_have_their_means(text: str, mean: float) -> None:
    chance = random.Random(3)
    distribution = distribution_of(text)
    numbers = [distribution(chance) for _ in range(20_000)]
    assert sum(numbers) / len(numbers) == pytest.approx(mean, rel=0.03)


@pytest.mark.parametrize(
    "text", ["x", "normal:3", "uniform:3", "lognormal:a", "-1", "nan", "1e300"]
)
def test_an_invalid_distribution_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - Python has some of these messages
        distribution_of(text)


@pytest.mark.parametrize("text", ["zipf:-1", "zipf:nan", "hot", "zipf:9"])
def test_an_invalid_skew_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        skew_of(text)
