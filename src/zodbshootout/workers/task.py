"""Messages between the coordinator and a worker besides calls.  They go over a pipe, pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from zodbshootout.client.specification import Specification
from zodbshootout.crews.cluster import Cluster

LEAKS_PREFIX = "leaks: "
PROFILE_PREFIX = "profile: "
"""How lines begin that a worker prints for the user: about leaks, about a profile that failed."""


@dataclass(frozen=True)
class Profiling:
    """The files for a profile of the clients."""

    directory: str
    name: str
    """The name of the files, but for their endings."""


@dataclass(frozen=True)
class Measure:
    """A cell to measure in one run."""

    specification: Specification
    metadata: Mapping[str, str | int | float]
    """Metadata that are known before the run begins."""
    run_file: Path
    """The file of pyperf's run."""
    leaks: bool = False
    """Whether to list after each value the classes that have more objects than before."""
    profiling: Profiling | None = None
    cluster: Cluster | None = None
    """The cluster that has the clients; ``None`` if they are here."""
    variables: Sequence[str] = ()
    """The variables of the environment that opening the contender needs."""


@dataclass(frozen=True)
class Slice:
    """The result of a slice."""

    value: float
    """Seconds per iteration."""
    on_clock: float
    """Seconds from the start until the last client had done what counts."""
