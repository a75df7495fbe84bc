"""What a benchmark is: the contract between the engine and one workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from zodbshootout.contenders.contender import Contender
from zodbshootout.data.tree import Purpose
from zodbshootout.model import Parameters

if TYPE_CHECKING:
    from zodbshootout.benchmarks.client import Client


class CheckFailed(Exception):  # noqa: N818
    """An iteration did something else than its benchmark says; the message tells what."""


class Unsupported(Exception):  # noqa: N818
    """The contender cannot run this benchmark; the message tells why."""


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

    The engine calls :meth:`set_up` once; for every value :meth:`begin`, then for every iteration
    :meth:`prepare`, :meth:`run` and :meth:`check`, and at the value's end :meth:`verify`, and for
    one of the clients :meth:`audit`; :meth:`tear_down` comes last.  Of all these only :meth:`run`
    is on the clock.
    """

    name: ClassVar[str]
    """The word for it on the command line."""
    title: ClassVar[str]
    """Its row in the table; ``{objects}`` stands for the objects of an iteration."""
    purpose: ClassVar[Purpose | None]
    """The tree in the database that it works on, if it does."""
    counted: ClassVar[str] = "objects"
    """What there are :meth:`work` of in an iteration: ``objects`` or ``transactions``."""
    timed_singly: ClassVar[bool] = False
    """Whether each iteration of a :meth:`batch` is timed by itself."""
    in_step: ClassVar[bool] = False
    """Whether clients that share a DB wait for each other before and after each batch."""

    cold: ClassVar[bool] = False
    """Whether what it reads is to come from no cache."""
    obstructs: ClassVar[bool] = False
    """Whether clients can keep each other from getting through for as long as they are at it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.counts: Counter[str] = Counter()
        """Loads, stores and so on of the clocked iterations, see :meth:`count`."""
        self.clocked = False
        """Whether the latest iteration was on the clock."""
        self.cleared: tuple[str, ...] = ()
        """The caches that were emptied before the latest iteration."""
        self.uncleared: tuple[str, ...] | None = None
        """The caches that could not be emptied, where the benchmark would have all of them empty.
        """

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        """Return the parameters that it is measured with, where those given do not suit it."""
        return parameters

    @classmethod
    def refusal(cls, contender: Contender, parameters: Parameters) -> str | None:  # noqa: ARG003
        """Say why *contender* cannot run this benchmark like that, or return ``None``."""
        return None

    @classmethod
    def work(cls, parameters: Parameters) -> int:
        """Return how many objects, or whatever is :attr:`counted`, an iteration deals with."""
        return parameters.objects

    @classmethod
    def batch(cls, parameters: Parameters) -> int:  # noqa: ARG003
        """Return for how many iterations one :meth:`prepare` and one :meth:`check` suffice.

        They are timed together, so that it is not the clock that is measured, unless
        :attr:`timed_singly` says otherwise.
        """
        return 1

    def count(self, **numbers: int) -> None:
        """Add numbers to the counts, if they are of a clocked iteration."""
        if self.clocked:
            self.counts.update(numbers)

    def set_up(self) -> None:
        """Learn what :meth:`run` and the checks need to know of the database."""

    def begin(self) -> None:
        """Bring about what holds before the first iteration of a value."""

    def prepare(self) -> None:
        """Bring about the state that an iteration finds, the same for each."""

    def approach(self) -> None:
        """Do what makes the first iteration of a batch like the others, if they are timed singly.

        It is off the clock, but all clients that keep step do it at the same time.
        """

    def run(self) -> None:
        """Do what is measured."""
        raise NotImplementedError

    def check(self) -> None:
        """Check the iteration that ended, and :meth:`count` what it did.

        :raises CheckFailed: when it was not what it should have been
        """

    def verify(self) -> None:
        """Check in the database what the iterations of a value left there.

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
