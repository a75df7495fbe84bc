"""What a benchmark is: the contract between the engine and one workload."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from zodbshootout.contenders.contender import Contender
from zodbshootout.data.tree import Purpose
from zodbshootout.model import CrewShape, Parameters

if TYPE_CHECKING:
    from zodbshootout.benchmarks.client import Client


class CheckFailed(Exception):  # noqa: N818
    """An iteration did something else than its benchmark says; the message tells what."""


class Unsupported(Exception):  # noqa: N818
    """The contender cannot run this benchmark; the message tells why."""


class Benchmark:
    """One workload, as one client of a crew runs it.

    The engine calls :meth:`set_up` once; for every value :meth:`begin`, then for every iteration
    :meth:`prepare`, :meth:`run` and :meth:`check`, and at the value's end :meth:`verify`;
    :meth:`tear_down` comes last.  Of all these only :meth:`run` is on the clock.
    """

    name: ClassVar[str]
    """The word for it on the command line."""
    title: ClassVar[str]
    """Its row in the table; ``{objects}`` stands for the objects of an iteration."""
    purpose: ClassVar[Purpose]
    """The tree in the database that it works on."""
    in_step: ClassVar[bool] = False
    """Whether clients that share a DB wait for each other before and after each iteration."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.counts: Counter[str] = Counter()
        """Loads, stores and so on of the clocked iterations, see :meth:`count`."""
        self.clocked = False
        """Whether the latest iteration was on the clock."""
        self.cleared: tuple[str, ...] = ()
        """The caches that were emptied before the latest iteration."""

    @classmethod
    def refusal(cls, contender: Contender, shape: CrewShape) -> str | None:  # noqa: ARG003
        """Say why *contender* cannot run this benchmark with that crew, or return ``None``."""
        return None

    @classmethod
    def batch(cls, parameters: Parameters) -> int:  # noqa: ARG003
        """Return how many iterations are timed together, so that the clock is not measured."""
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

    def tear_down(self) -> None:
        """Let go of the database."""
        self.client.leave()
