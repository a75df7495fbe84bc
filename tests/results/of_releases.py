"""Results of several releases of one package."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from tests.runs import cell, measured
from zodbshootout.model.titles import Release, Value, title_of
from zodbshootout.results.result import CellResult

RELEASES = ("4.0.0", "4.1.0", "4.2.0", "4.10.0")
INSTALLED = "4.3.0"
IN_ORDER = ["4.0.0", "4.1.0", "4.2.0", INSTALLED, "4.10.0"]


def variant_in(release: str, package: str = "relstorage") -> dict[str, Value]:
    return {} if release == INSTALLED else {"release": Release(package, release)}


def name_of(release: str, contender: str = "pg") -> str:
    return title_of(contender, variant_in(release))


def in_release(
    release: str,
    seconds: float = 0.1,
    *,
    benchmark: str = "update",
    contender: str = "pg",
    rounds: Sequence[int] = range(10),
    noise: float = 0.01,
    **metadata: Any,
) -> CellResult:
    """Return the result of a release in rounds in which the machine is more or less fast."""
    chance = random.Random(f"{release} {benchmark} {contender}")
    machine = [random.Random(number).uniform(1, 2) for number in rounds]
    return measured(
        cell(benchmark, contender, variant_in(release)),
        *(
            [seconds * speed * math.exp(chance.gauss(0, noise)) for _ in range(3)]
            for speed in machine
        ),
        round=lambda at: f"r-{rounds[at]}",
        **{"version_RelStorage": release, **metadata},
    )


def all_releases(**seconds: float) -> list[CellResult]:
    """Return results of all releases; *seconds* are those from a release on, as in ``v4_1_0=1``."""
    results, time = {}, 0.1
    for release in IN_ORDER:
        time = seconds.get(f"v{release.replace('.', '_')}", time)
        results[release] = in_release(release, time)
    return [results[INSTALLED], *(results[release] for release in RELEASES)]
