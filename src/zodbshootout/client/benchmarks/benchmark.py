"""What a benchmark is: the contract between a session and one workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from zodbshootout.client.data.tree import Dataset
from zodbshootout.client.outcome import CheckFailed, Unsupported
from zodbshootout.client.specification import Parameters
from zodbshootout.client.storage_info import Cache, StorageInfo

if TYPE_CHECKING:
    from zodbshootout.client.client import Client

__all__ = ["BareTransaction", "Benchmark", "CheckFailed", "Unsupported", "without_objects"]

MAX_AT_ONCE = 2**16
"""Iterations that are timed without a pause: what is noted of each then takes 0.5 MiB."""
MIN_OF_SEVERAL = 2
"""Iterations that each of several clients does at least for a value: the first tells nothing yet of
how fast they are together."""


def without_objects(parameters: Parameters) -> Parameters:
    """Return *parameters* of a transaction in which there are no objects, whatever was asked for.

    Such a benchmark is then measured once, however many counts and sizes of objects there are;
    but what ``--min-objects`` puts into the database stays as it was asked for.
    """
    bare = Parameters(parameters.crew, objects=0, seed=parameters.seed)
    if not parameters.min_objects:
        return bare
    return replace(
        bare,
        min_objects=parameters.min_objects,
        object_size=parameters.object_size,
        blobs=parameters.blobs,
        compressibility=parameters.compressibility,
    )


class Benchmark:
    """One workload, as one client of a crew runs it.

    A session calls :meth:`set_up` once.  A value then consists of one or more stretches.  Before a
    stretch :meth:`prepare` and :meth:`supply` bring about everything that its iterations find; in
    it there is :meth:`run` for each iteration, one after the other, without a pause unless there
    is something :attr:`between` them; after it :meth:`check` looks at what they did.  At the end
    of all there are :meth:`verify`, for one of the clients :meth:`audit`, and :meth:`tear_down`.
    """

    name: ClassVar[str]
    """Its name on the command line."""
    title: ClassVar[str]
    """Its row in the table; ``{objects}`` stands for the objects of an iteration."""
    purpose: ClassVar[Dataset | None]
    """The tree in the database that it works on, if it does."""
    counted: ClassVar[str] = "objects"
    """What there are :meth:`work` of in an iteration: ``objects`` or ``transactions``."""
    writes: ClassVar[bool] = True
    """Whether it changes anything in the database, beside what there has to be before it runs."""
    cold: ClassVar[bool] = False
    """Whether what it reads is to come from no cache."""
    obstructs: ClassVar[bool] = False
    """Whether clients can keep each other from getting through for as long as they go on."""

    between: Callable[[], None] | None = None
    """What has to be done between two iterations, if anything has.

    It is to be short and to touch nobody else.  It is measured, and told as a pause.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.counts: Counter[str] = Counter()
        """Loads, stores and so on of all iterations since it was cleared."""
        self.timed = False
        """Whether the iteration at work counts, and is none that calibrates."""
        self.cleared: tuple[Cache, ...] = ()
        """The caches that were emptied before the latest stretch."""

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        """Return the parameters that it is measured with, where those given do not suit it."""
        return parameters

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:  # noqa: ARG003
        """Return why a storage cannot run it with these parameters, or ``None``.

        An override returns the refusal of its base class first.
        """
        if cls.writes and info.read_only:
            return (
                f"{info.storage_name} is read only as it is configured here; remove read-only, or "
                "leave out the benchmarks that write"
            )
        return None

    @classmethod
    def work(cls, parameters: Parameters) -> int:
        """Return how many objects, or whatever is :attr:`counted`, an iteration deals with."""
        return parameters.objects

    @classmethod
    def batch(cls, parameters: Parameters) -> int:  # noqa: ARG003
        """Return how many iterations are timed together, where one would be too short."""
        return 1

    @classmethod
    def most_at_once(cls, parameters: Parameters) -> int:  # noqa: ARG003
        """Return how many iterations a stretch may have; a value of more has several stretches.

        What is prepared for them all has to be had, and to fit into memory.
        """
        return MAX_AT_ONCE

    @classmethod
    def fewest(cls, parameters: Parameters) -> int:
        """Return how many iterations a value has to have, where it can be chosen.

        See :func:`~zodbshootout.client.progress.throughput`.
        """
        alone = parameters.crew.size == 1 or cls.in_rounds(parameters)
        return cls.batch(parameters) * (1 if alone else MIN_OF_SEVERAL)

    @classmethod
    def in_rounds(cls, parameters: Parameters) -> bool:  # noqa: ARG003
        """Return whether nothing can be prepared for more than one iteration.

        Then all clients start each iteration at one instant, and none goes on after it.
        """
        return False

    def set_up(self) -> None:
        """Learn what :meth:`run` and the checks need to know of the database."""

    def prepare(self) -> None:
        """Bring about the state in which the first iteration of a stretch finds the database."""

    def supply(self, iterations: int) -> int:
        """Provide what so many more iterations use up; return how many that suffices for.

        It is called after :meth:`prepare`, and may be called while other clients are at work.
        """
        return iterations

    def run(self) -> None:
        """Do what is measured."""
        raise NotImplementedError

    def check(self, done: int) -> None:
        """Check the stretch that ended, in which *done* iterations were done, and count.

        :raises CheckFailed: when they were not what they should have been
        """

    def verify(self) -> None:
        """Check in the database what was left there.

        :raises CheckFailed: when something is wrong or missing
        """

    def account(self) -> Any:
        """Return what this client has done since it was set up, for :meth:`audit`.

        It goes from one process to another, so it can be pickled.
        """
        return None

    def audit(self, accounts: Sequence[Any]) -> None:
        """Check what all clients have done together; *accounts* has what each of them told.

        Only one client is asked to, after every client has verified its own.

        :raises CheckFailed: when it does not add up
        """

    def tear_down(self) -> None:
        """Let go of the database."""
        self.client.leave()

    def count(self, **numbers: int) -> None:
        """Add numbers to the counts."""
        self.counts.update(numbers)

    def count_transfers(self) -> tuple[int, int]:
        """Count the objects that were loaded and stored; return both numbers."""
        loads, stores = self.client.transfers()
        self.count(loads=loads, stores=stores)
        return loads, stores


class BareTransaction(Benchmark):
    """A transaction in which there are no objects."""

    purpose = None
    counted = "transactions"

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        return without_objects(parameters)

    @classmethod
    def work(cls, parameters: Parameters) -> int:  # noqa: ARG003
        return 1
