"""The contract between a benchmark and the session that runs it in a client."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from zodbshootout.client.benchmarks import rate_refusal
from zodbshootout.client.data.datasets import Dataset
from zodbshootout.model.arrivals import instants
from zodbshootout.model.outcome import CheckFailed, Unsupported
from zodbshootout.model.parameters import without_objects
from zodbshootout.model.specification import (
    CopiedData,
    Parameters,
    ReplayedWorkload,
)
from zodbshootout.model.storage_facts import StorageInfo

if TYPE_CHECKING:
    from zodbshootout.client.client import Client

__all__ = [
    "BARE", "FROM_CACHE", "FROM_DATABASE", "UPKEEP", "WRITING",
    "Benchmark", "CheckFailed", "Nothing", "Shape", "Traits", "Unsupported",
    "without_objects",
]  # fmt: skip

WRITING = "writing"
FROM_DATABASE = "reading from the database"
FROM_CACHE = "reading from a cache"
BARE = "transactions without data"
UPKEEP = "upkeep"
"""The topics of the benchmarks; see :attr:`Benchmark.topic`."""
MAX_AT_ONCE = 2**16
"""The default maximum number of iterations in a stretch; storing their times takes 0.5 MiB."""
MIN_OF_SEVERAL = 2
"""The minimum number of iterations per client if there are several clients; see
:func:`~zodbshootout.client.throughput.throughput`."""


@dataclass(frozen=True)
class Traits:
    """What a benchmark does or needs that most others do not."""

    writes: bool = True
    """Whether the benchmark writes; if not, the database may contain other applications' data."""
    cold: bool = False
    """Whether reads must miss every cache; the run reports caches that cannot be emptied."""
    obstructs: bool = False
    """Whether a running client can keep the others from finishing their iterations.

    After its counted iterations, a client does uncounted ones to keep up the load.  If it can
    obstruct others, it does at most as many uncounted iterations as counted ones.
    """

    alone: str = ""
    """The reason why the database can serve only a single client; empty if it can serve several.

    ``all`` does not include a benchmark with such a reason.  If contenders share a database, they
    run such a benchmark one after the other.
    """

    empties: bool = False
    """Whether the benchmark destroys all data of the database, as ``--zap`` does.

    Such a benchmark is measured before others.  If the database contains other applications'
    data, ``--zap`` must name the contender.
    """

    lengthy: bool = False
    """Whether each iteration takes long and its preparation takes even longer.

    A run then has a single iteration, unless the user asks for more.
    """

    assured: bool = False
    """Whether each cell gets the runs that a confidence interval needs, however long they take.

    If the number of runs is fixed, for example by ``-p``, or if the user sets a time limit with
    ``--at-most``, this has no effect.  It is for upkeep, whose duration nobody knows in advance.
    """

    numbered: bool = False
    """Whether the work of an iteration depends on its number; see :attr:`Benchmark.first`.

    If so, all contenders do the same iterations in slices with the same number.
    """


class Shape(NamedTuple):
    """How large a benchmark's iterations are, and how they are grouped."""

    work: int
    """The size of an iteration, in the units that :attr:`Benchmark.counted` names."""
    fewest: int
    """The minimum number of iterations per client in a value; ``-l`` overrides it."""
    batch: int = 1
    """The number of iterations that are timed together: 1, unless iterations are too short."""
    most_at_once: int = MAX_AT_ONCE
    """The maximum number of iterations that are prepared together.

    Everything that they need has to fit into memory.  A value with more iterations has several
    stretches, each prepared by itself.
    """
    in_rounds: bool = False
    """Whether a client that has done its iterations must wait for the others.

    If so, all clients start each stretch at the same instant and do no uncounted iterations
    afterwards.  The stretch takes as long as its slowest client.
    """


Arrivals = Callable[[float, str], Iterator[float]]


class Pace:
    """What a replay and its session tell each other about single iterations."""

    def __init__(self, client: Client) -> None:
        self.now: Callable[[], float] = time.perf_counter
        """A function that returns the time, in seconds, by the clock that times iterations."""
        self.schedule: Sequence[float] = ()
        """The times at which to begin iterations, in seconds after the start of the stretch; empty
        if each iteration begins when the previous one ends."""
        self.labels: Sequence[str] = ()
        """A label for each iteration, if the run reports latencies by label; otherwise empty."""
        self.waited_until = 0.0
        """The time at which the latest iteration stopped waiting for another client; 0 if it did
        not wait.  The latency of the iteration counts from this time."""
        own = range(client.index, client.index + 1)
        self.arrivals: Arrivals = partial(instants, client.parameters, own)
        """A function that takes the rate of all clients and a name, and returns when this client
        should begin iterations; see :func:`~zodbshootout.model.arrivals.instants`."""


class Benchmark:
    """The work that each client of a crew does.

    A session calls :meth:`set_up` once.  All clients start and stop a stretch together; one or more
    stretches measure what pyperf calls a value.  Before one or more stretches, the session calls
    :meth:`prepare` and :meth:`supply`.  Then it calls :meth:`run` for each iteration of these
    stretches and, between two iterations, :attr:`between`.  After each stretch, it calls
    :meth:`check_latest`, and after all of them :meth:`check`.  At the end, it calls
    :meth:`verify`.  Then only the session of the first client calls :meth:`audit`.  Finally, each
    session calls :meth:`tear_down`.
    """

    name: ClassVar[str]
    """The name on the command line, in the table and in files of results; a benchmark of another
    package replaces ours of the same name."""
    title: ClassVar[str]
    """The title in charts; ``{objects}`` stands for the number of objects.

    Titles, legends, topics and :attr:`counted` are stored with the results, so that reports can
    show results of a benchmark that is not installed.
    """
    legend: ClassVar[str] = ""
    """A few words for the line below the table: what iterations do, or where they read from."""
    topic: ClassVar[str] = "other work"
    """The kind of work by which a summary sorts benchmarks; empty for work without the storage."""
    counted: ClassVar[str] = "objects"
    """A noun for what the figures count, such as ``transactions``; see :attr:`Shape.work`."""
    dataset: ClassVar[Dataset | None]
    """The objects that the database must contain; ``None`` if the benchmark needs none."""
    traits: ClassVar[Traits] = Traits()
    """What the benchmark does or needs that most others do not."""
    between: Callable[[], None] | None = None
    """A function that does short, unavoidable work between two iterations, or ``None``.

    The work must not affect other clients.  The run reports the time of this work as a pause.
    Pauses lower the throughput.  Work that :meth:`supply` could do does not belong here.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        """The client that runs the benchmark."""
        self.counts: Counter[str] = Counter()
        """Numbers of loads, stores and so on since the latest preparation."""
        self.timed = False
        """Whether the stretch counts; false after the last counted iteration of this client."""
        self.first: int | None = None
        """The number of the stretch's first iteration; ``None`` to continue from the previous
        stretch."""
        self.pace = Pace(client)
        """The instants and labels of iterations, which only a replay chooses."""
        self.cleared: tuple[str, ...] = ()
        """The caches that were emptied before the latest stretch."""

    @classmethod
    def fitted(cls, parameters: Parameters) -> Parameters:
        """Return the requested parameters, adapted to what the benchmark can do."""
        return replace(
            parameters,
            workload=ReplayedWorkload(),
            copied=CopiedData(),
            revisions=0,
            garbage=0.0,
        )

    @classmethod
    def refusal(cls, info: StorageInfo, parameters: Parameters) -> str | None:
        """Return why a storage cannot run the benchmark with these parameters, or ``None``.

        An override that finds no reason returns ``super().refusal(info, parameters)``.  This
        method refuses a read-only storage if the benchmark writes, several clients if only one can
        be served, and a rate at which iterations cannot come.
        """
        if cls.traits.writes and info.read_only:
            return (
                f"{info.storage_name} is read-only as configured here; leave out the "
                "benchmarks that write"
            )
        if cls.traits.alone and parameters.crew.size > 1:
            return f"{cls.traits.alone}; use -c 1"
        return rate_refusal(cls, parameters)

    @classmethod
    def shape(cls, parameters: Parameters) -> Shape:
        """Return how large iterations are, and how they are grouped."""
        fewest = 1 if parameters.crew.size == 1 else MIN_OF_SEVERAL
        return Shape(work=parameters.objects, fewest=fewest)

    def set_up(self) -> None:
        """Look up in the database what :meth:`run` and the checks need.

        :raises Unsupported: if the open database shows that the contender cannot run the benchmark
        """

    def prepare(self) -> None:
        """Create the state in which the first iteration starts.

        If this empties caches, :attr:`cleared` has to name them.
        """

    def supply(self, iterations: int) -> int:
        """Create supplies for *iterations* iterations; return for how many they suffice.

        The result may differ from *iterations*.  A client that is done keeps up the load for
        others.  When the client runs out of supplies, the session calls this again.  Other clients
        may be measured meanwhile, so only the first call after :meth:`prepare` may commit.  A later
        call returns 0 if it cannot create more, and the client then waits.
        :meth:`count_transfers` leaves out the loads and stores of the first call.
        """
        return iterations

    def run(self) -> None:
        """Do one iteration of the measured work, such as a transaction on ``objects`` objects.

        An iteration that commits a transaction also begins that transaction.
        """
        raise NotImplementedError

    def check_latest(self) -> None:
        """Check what the latest iteration has done, if later ones would hide it.

        The session calls this after each stretch, while other contenders wait for their turn, so it
        should take next to no time.

        :raises CheckFailed: if the iteration did not do what it should have
        """

    def check(self, done: int) -> None:
        """Check the iterations since the latest preparation, and count what they did.

        *done* is the number of these iterations.

        :raises CheckFailed: if the iterations did not do what they should have
        """

    def verify(self) -> Any:
        """Check what the iterations have left in the database.

        Return what this client has done, as a picklable object for :meth:`audit`.

        :raises CheckFailed: if something is wrong or missing
        """

    def audit(self, accounts: Sequence[Any]) -> None:
        """Check the work of all clients; *accounts* are what their :meth:`verify` returned.

        :raises CheckFailed: if the accounts do not add up
        """

    def tear_down(self) -> None:
        """Give the connection back to its pool, and close the DB unless clients share it."""
        self.client.disconnect()
        if not self.client.parameters.crew.shared:
            self.client.database.close()

    def count(self, **numbers: int) -> None:
        """Add numbers to the counts in the metadata: ``self.count(loads=5)``."""
        self.counts.update(numbers)

    def count_transfers(self) -> tuple[int, int]:
        """Count the objects that were loaded and stored; return both numbers."""
        loads, stores = self.client.transfers()
        self.count(loads=loads, stores=stores)
        return loads, stores


class Nothing(Benchmark):
    """Do nothing, to measure the harness itself."""

    name = "nothing"
    title = "Nothing"
    dataset = None

    def run(self) -> None:
        """Do nothing."""
