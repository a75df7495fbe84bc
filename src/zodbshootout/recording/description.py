"""The description of a workload: counts, sizes, shares and times."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate

from zodbshootout.recording.chunks import NONE, Kind
from zodbshootout.recording.recorded import Transaction, Workload

WINDOWS = 10
"""The number of equal parts into which the time of a workload is divided."""
_TICK = 100
"""The unit in which durations are recorded and counted, in nanoseconds."""


class Step(Enum):
    """The steps of a transaction; descriptions contain the storage's time for each step."""

    BEGIN = "begin"
    LOAD = "load"
    STORE = "store"
    VOTE = "vote"
    FINISH = "finish"


_STEP_OF: Mapping[int, Step] = {
    Kind.BEGIN: Step.BEGIN, Kind.BEGIN_ALL: Step.BEGIN,
    Kind.LOAD: Step.LOAD, Kind.LOAD_BLOB: Step.LOAD, Kind.PREFETCH: Step.LOAD,
    Kind.NEW_OID: Step.STORE, Kind.TPC_BEGIN: Step.STORE, Kind.STORE: Step.STORE,
    Kind.STORE_RESOLVABLE: Step.STORE, Kind.READ_CURRENT: Step.STORE,
    Kind.VOTE: Step.VOTE, Kind.FINISH: Step.FINISH, Kind.ABORT: Step.FINISH,
}  # fmt: skip
_LOAD, _TPC_BEGIN = int(Kind.LOAD), int(Kind.TPC_BEGIN)
_END = int(Kind.END)
_RAISED = frozenset({int(Kind.CONFLICT), int(Kind.FAILURE)})
_STORES = frozenset({int(Kind.STORE), int(Kind.STORE_RESOLVABLE)})


class Distribution(Counter[int]):
    """How often each value of a quantity occurs."""

    def sum(self) -> int:
        """Return the sum of all values, each counted as often as it occurs."""
        return sum(value * count for value, count in self.items())

    def percentiles(self, percentages: Sequence[float]) -> list[int]:
        """Return the nearest-rank percentiles for *percentages*, or zeros if no values exist."""
        if not self:
            return [0 for _ in percentages]
        values = sorted(self)
        cumulative = list(accumulate(self[value] for value in values))
        return [
            values[bisect_left(cumulative, percentage / 100 * cumulative[-1])]
            for percentage in percentages
        ]


@dataclass
class Description:
    """The counts, sizes and times of a workload's transactions."""

    start: int
    """The start in nanoseconds since 1970."""
    end: int
    transactions: int = 0
    read_only: int = 0
    connections: set[tuple[int, int]] = field(default_factory=set)
    loads: Distribution = field(default_factory=Distribution)
    """The number of loads per transaction."""
    stores: Distribution = field(default_factory=Distribution)
    """The number of stores in each transaction that stores anything."""
    numbers: dict[int, Distribution] = field(
        default_factory=lambda: {kind: Distribution() for kind in Kind}
    )
    """The distribution of the events' ``number``, by kind of event.  The processor times of ``END``
    are converted to microseconds."""
    ticks: dict[Step, Distribution] = field(
        default_factory=lambda: {step: Distribution() for step in Step}
    )
    """The durations of calls, in multiples of 100 nanoseconds."""
    new_objects: int = 0
    loads_of: Counter[bytes] = field(default_factory=Counter)
    """The number of loads of each object."""
    windows: list[set[bytes]] = field(default_factory=lambda: [set() for _ in range(WINDOWS)])
    """The objects that were loaded or stored in each of :data:`WINDOWS` parts of the workload."""

    def count(self, kind: Kind) -> int:
        """Return the number of events of a kind."""
        return self.numbers[kind].total()

    def raised(self, kind: Kind) -> dict[str, int]:
        """Return how often calls failed, by name of call; *kind* is ``CONFLICT`` or ``FAILURE``."""
        calls = sorted(self.numbers[kind].items())
        return {Kind(call).name.lower(): count for call, count in calls}

    def stored_sizes(self) -> Distribution:
        """Return the sizes of all records that were stored."""
        return Distribution(self.numbers[Kind.STORE] + self.numbers[Kind.STORE_RESOLVABLE])

    @property
    def seconds(self) -> float:
        """The time from the first event to the end of the last one."""
        return (self.end - self.start) / 1e9

    def seconds_of(self, step: Step) -> float:
        """Return the time that all transactions together spent in a step."""
        return self.ticks[step].sum() * _TICK / 1e9

    def percentiles_of(self, step: Step, percentages: Sequence[float]) -> list[float]:
        """Return percentiles of the seconds that a call of this step takes."""
        return [value * _TICK / 1e9 for value in self.ticks[step].percentiles(percentages)]

    def heat(self, shares: Iterable[float]) -> list[float]:
        """Return, for each of *shares*, the fraction of all loads that were of the hottest objects.

        A share of 0.01 means the hottest 1 % of the loaded objects.
        """
        counts = sorted(self.loads_of.values(), reverse=True)
        total = sum(counts) or 1
        return [sum(counts[: max(1, round(share * len(counts)))]) / total for share in shares]

    def distinct(self) -> list[int]:
        """Return how many objects had been loaded or stored when each of :attr:`windows` ended."""
        seen: set[bytes] = set()
        numbers = []
        for window in self.windows:
            seen |= window
            numbers.append(len(seen))
        return numbers


def describe(workload: Workload) -> Description:
    """Describe a workload.

    :raises WorkloadError: if a file is cut off or damaged
    :raises OSError: if a file cannot be read
    """
    description = Description(*workload.span())
    width = max(1, description.end - description.start) / WINDOWS
    for transaction in workload.transactions():
        at = transaction.events[-1][5] + workload.offset(transaction.process)
        window = min(WINDOWS - 1, int((at - description.start) / width))
        _add(description, transaction, description.windows[window])
    return description


def _add(description: Description, transaction: Transaction, window: set[bytes]) -> None:
    """Add a transaction to *description*, and its objects to the *window* in which it ended."""
    loads = stores = 0
    is_writing = False
    for kind, oid, number, serial, start, end in transaction.events:
        step = _STEP_OF.get(number if kind in _RAISED else kind)
        if step is not None:
            description.ticks[step][(end - start) // _TICK] += 1
        if kind == _LOAD:
            loads += 1
            description.loads_of[oid] += 1
            window.add(oid)
        elif kind in _STORES:
            stores += 1
            description.new_objects += serial == NONE
            window.add(oid)
        elif kind == _TPC_BEGIN:
            is_writing = True
        description.numbers[kind][number // 1000 if kind == _END else number] += 1
    description.transactions += 1
    description.read_only += not is_writing
    description.connections.add((transaction.process, transaction.connection))
    description.loads[loads] += 1
    if stores:
        description.stores[stores] += 1
