"""What a worker is told, and what it answers.  All of it goes over a pipe, pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zodbshootout.client.specification import Specification, Storage
from zodbshootout.client.tasks import InspectStorage, Prepare, ValidateSection
from zodbshootout.crews.cluster import Cluster


@dataclass(frozen=True)
class Profiling:
    """Where a profile of the clients goes."""

    directory: str
    name: str
    """What the files are called, but for their endings."""
    profiler: str


@dataclass(frozen=True)
class Measure:
    """Set up a crew; answered by :class:`Done`.  What else to do is ordered one by one."""

    specification: Specification
    metadata: Mapping[str, str | int | float]
    """What is known of the run before it begins."""
    run_file: Path
    """Where pyperf's run goes."""
    leaks: bool = False
    """Whether to tell after each value of which classes there are more objects than before."""
    profiling: Profiling | None = None
    cluster: Cluster | None = None
    """Whose hosts the clients are on; ``None`` where they are here."""
    variables: Sequence[str] = ()
    """The variables of the environment that opening the contender needs."""

    @property
    def storage(self) -> Storage:
        """How to open the contender."""
        return self.specification.storage


Task = ValidateSection | InspectStorage | Prepare | Measure
"""Looks and preparations are answered by what :func:`~.client.tasks.carry_out` gives."""


@dataclass(frozen=True)
class Try:
    """Do a slice that does not count; answered by a :class:`Slice`."""

    loops: int


@dataclass(frozen=True)
class Begin:
    """Get ready for the slices that count; answered by :class:`Done`."""

    loops: int
    values: int
    warmups: int


@dataclass(frozen=True)
class PrepareSlice:
    """Prepare the next slice that counts; answered by :class:`Done`."""


@dataclass(frozen=True)
class TakeSlice:
    """Do the slice that was prepared; answered by a :class:`Slice`."""

    number: int
    """Of those that the contenders of a row take in turn."""


@dataclass(frozen=True)
class CloseDatabases:
    """Have every client close its database; answered by :class:`Done`."""


@dataclass(frozen=True)
class ReopenDatabases:
    """Have every client open its database again; answered by :class:`Done`."""


@dataclass(frozen=True)
class Finish:
    """Check the database, write the run and end; answered by :class:`Done`."""


@dataclass(frozen=True)
class Done:
    """What was ordered is done."""


@dataclass(frozen=True)
class Slice:
    """What a slice came to."""

    value: float
    """Seconds per iteration."""
    on_clock: float
    """Seconds from the start until the last client had done what counts."""


@dataclass(frozen=True)
class Assignment:
    """What every worker is given with its task."""

    task: Task
    log: str | None = None
    """A level's name, or the path of a ZConfig logging file."""
    secrets: Sequence[str] = ()
    """What is to be in no log."""
    options: Sequence[str] = field(default_factory=tuple)
    """pyperf's options, for what measures."""
