"""Deal the transactions of a workload to the clients, and schedule the transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, compress

from zodbshootout.client.data.trace import ReplayedTransaction, Trace
from zodbshootout.client.data.workload_objects import copies
from zodbshootout.model.arrivals import instants
from zodbshootout.model.specification import Parameters

_READ_AT_ONCE = 200
"""The maximum number of transactions that :meth:`Dealer.before` reads from the trace at once."""
Dealt = tuple[int, ReplayedTransaction]
"""The number of a pass over the workload, and a transaction of the workload."""


class Dealer:
    """Deals the transactions of a workload to the clients.

    A client replays the transactions of certain recorded connections.  If there are more clients
    than connections, the surplus clients replay further copies of the workload.  In each stretch,
    all clients get equally many transactions: a client whose connections have too few gets some
    from busy connections.
    """

    def __init__(self, parameters: Parameters, client: int) -> None:
        workload, size = parameters.workload, parameters.crew.size
        self.total = workload.transactions
        self._seconds = workload.seconds
        self._speed = workload.speed
        self._connections = max(1, workload.connections)
        self.copy, self.member = divmod(client, self._connections)
        """The number of the client's copy of the workload, and the client's number in that copy."""
        self.members = min(self._connections, size - self.copy * self._connections)
        """The number of clients that share the copy."""
        # Copies at the same place in the workload would all do the same things at once.
        self._offset = self.copy * self.total // copies(parameters)
        self._parameters = parameters
        self._is_own: Sequence[bool] = ()
        """For each transaction of the last call of :meth:`deal`, whether it is the client's own."""
        self._turn = 0
        """An offset that is added to the numbers of passes; :meth:`go_to` changes it."""

    def go_to(self, former: int, first: int) -> None:
        """Jump to iteration *first*, in a new pass; iteration *former* would have been next."""
        self._turn += self._place(former) // self.total + 1 - self._place(first) // self.total

    def _place(self, iteration: int) -> int:
        return iteration * self.members + self._offset

    def deal(self, trace: Trace, first: int, iterations: int) -> tuple[list[Dealt], list[Dealt]]:
        """Return the next transactions of all clients of this copy, and those of this client."""
        of_all = list(self._transactions(trace, self._place(first), iterations * self.members))
        dealt = [0] * self.members
        is_own = []
        for _, transaction in of_all:
            member = transaction.connection % self.members
            if dealt[member] == iterations:
                member = dealt.index(min(dealt))
            dealt[member] += 1
            is_own.append(member == self.member)
        self._is_own = is_own
        return of_all, list(compress(of_all, is_own))

    def arrivals(self, rate: float, name: str) -> Iterator[float]:
        """Return the instants, in seconds, at which the client begins the transactions dealt last.

        The clients of a copy share one series of arrivals, in the order of the transactions.  With
        separate arrivals, a client that was ahead would wait for objects that others have yet to
        create, and would then be late for its next transactions.
        """
        first = self.copy * self._connections
        clients = range(first, first + self.members)
        of_all = instants(self._parameters, clients, rate, name)
        # Make a list: this skips the other clients' arrivals now, before the clock starts.
        return iter(list(compress(of_all, self._is_own)))

    def schedule(self, of_all: Sequence[Dealt], own: Sequence[Dealt]) -> list[float]:
        """Return when the transactions in *own* begin, in seconds after the earliest in *of_all*.

        An empty list means as fast as possible.
        """
        if not self._speed:
            return []
        start = min(map(self._instant, of_all))
        seconds = [(self._instant(dealt) - start) / self._speed for dealt in own]
        # The trace is in commit order.  A transaction that began before its predecessor gets
        # the predecessor's time.
        return list(accumulate(seconds, max))

    def _instant(self, dealt: Dealt) -> float:
        turn, transaction = dealt
        return turn * self._seconds + transaction.started / 1e9

    def before(self, trace: Trace, first: int, limit: int) -> Iterator[ReplayedTransaction]:
        """Go back from iteration *first*; yield transactions of the client's connections.

        Search at most *limit* transactions of all connections.  After the workload's first
        transaction, continue with its last one.
        """
        place = self._place(first) % self.total
        stop = place - min(self.total, limit)
        while place > stop:
            begin = max(stop, place - _READ_AT_ONCE)
            for _, transaction in reversed(list(self._transactions(trace, begin, place - begin))):
                if transaction.connection % self.members == self.member:
                    yield transaction
            place = begin

    def _transactions(self, trace: Trace, place: int, count: int) -> Iterator[Dealt]:
        while count:
            turn, first = divmod(place, self.total)
            last = min(self.total, first + count)
            for transaction in trace.transactions(first, last):
                yield self._turn + turn, transaction
            place += last - first
            count -= last - first
