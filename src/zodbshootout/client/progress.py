"""How far each client had come at which time, and what follows from that: the throughput."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

MOST_POINTS = 1024
"""Points that are kept of a client's progress: of more, some are dropped."""


@dataclass(frozen=True)
class Progress:
    """The iterations that one client had done by certain times, uncounted ones included."""

    start: float
    """When the client began, in seconds of the crew's clock."""
    times: Sequence[float]
    """When it had done them, in seconds of the crew's clock."""
    done: Sequence[int]
    """How many it had done by then, since the start."""

    def iterations(self, time: float) -> int:
        """Return how many iterations had ended by *time*."""
        index = bisect_right(self.times, time)
        return self.done[index - 1] if index else 0

    def end(self, iterations: int) -> float:
        """Return when the client had done so many *iterations*."""
        return self.times[bisect_left(self.done, iterations)]


@dataclass(frozen=True)
class Throughput:
    """What clients did together in so many seconds."""

    iterations: int
    seconds: float


def throughput(clients: Sequence[Progress], counted: int) -> Throughput:
    """Return what *clients* did while all of them were at work, *counted* iterations each or more.

    Of a single client that is what counts, from its start to its last end.

    Several clients are looked at in as many stretches of time, one for each: from the end of its
    first iteration to the end of the last one that counts.  What any client has ended in such a
    stretch was done in it.  Both its ends are ends of iterations.  So where the clients wait for
    each other, and a storage does one thing at a time, the figure is what the storage does,
    however unfair it is to some of them.  Where they do not, each client's own iterations fill its
    stretch exactly, and of the others' as many are cut off at one end as at the other.

    The first iterations do not tell that: all begin at once, and the first ones find nobody before
    them.  Where clients do one iteration each, what has ended by the time of the last one counts,
    from the start on.  That is less than they could have done, for those who are quicker wait.
    """
    start = min(client.start for client in clients)
    ends = [client.end(counted) for client in clients]
    if len(clients) == 1:
        return Throughput(counted, ends[0] - start)
    firsts = [client.times[0] for client in clients]
    if max(end - first for first, end in zip(firsts, ends)) <= 0:
        last = max(ends)
        return Throughput(sum(client.iterations(last) for client in clients), last - start)
    done = sum(
        client.iterations(end) - client.iterations(first)
        for first, end in zip(firsts, ends)
        for client in clients
    )
    return Throughput(done, sum(end - first for first, end in zip(firsts, ends)))
