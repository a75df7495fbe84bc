"""How far each client had come at which time, and what follows from that: the throughput."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

MAX_POINTS = 1024
"""Points that are kept of the progress of a client that is alone: of more, some are dropped."""
MIN_POINTS = 32


def most_points(clients: int) -> int:
    """Return how many points are kept of the progress of each of so many *clients*.

    What is added up of all of them is as exact with fewer points of each.
    """
    return max(MIN_POINTS, math.ceil(MAX_POINTS / math.sqrt(clients)))


@dataclass(frozen=True)
class Progress:
    """The iterations that one client had done by certain times, uncounted ones included."""

    start: float
    """When the client began, in seconds of the crew's clock."""
    times: Sequence[float]
    """When it had done them, in seconds of the crew's clock."""
    done: Sequence[int]
    """How many it had done by then, since the start: first what is timed together."""

    def iterations(self, time: float) -> int:
        """Return how many iterations had ended by *time*; see :class:`Total`."""
        index = bisect_right(self.times, time)
        if not index:
            return 0
        done = self.done[index - 1]
        if index == len(self.times) or self.done[index] - done <= self.done[0]:
            return done
        before, after = self.times[index - 1], self.times[index]
        return done + int((time - before) / (after - before) * (self.done[index] - done))

    def end(self, iterations: int) -> float:
        """Return when the client had done so many *iterations*."""
        return self.times[bisect_left(self.done, iterations)]


def kept(counted: int, total: int, clients: int) -> list[int]:
    """Return which points are kept, by their numbers.

    There are *total* of them, of which so many are *counted*; the client is one of so many.  The
    first two are among them, because all clients end their first iterations at about the same time,
    and the last that counts, and the last.
    """
    stride = 1 + total // most_points(clients)
    return sorted({0, min(1, total - 1), counted - 1, total - 1, *range(0, total, stride)})


class Total:
    """The iterations of several clients, added up.

    What a client times together is done at the end of it.  Where points between two others were
    dropped, the iterations are taken to have been done evenly, and what is at work at a time, half
    of it on average, is not done.
    """

    def __init__(self, clients: Sequence[Progress]) -> None:
        """Add up the progress of some *clients* that time as much together."""
        self._at_work = clients[0].done[0] / 2
        changes: list[tuple[float, int, float]] = []
        self._gaps_begin: list[float] = []
        self._gaps_end: list[float] = []
        for client in clients:
            changes.append((client.times[0], client.done[0], 0.0))
            points = list(zip(client.times, client.done))
            for (time, done), (end, more) in zip(points, points[1:]):
                if more - done > client.done[0] and end > time:
                    slope = (more - done) / (end - time)
                    changes += [(time, 0, slope), (end, 0, -slope)]
                    self._gaps_begin.append(time)
                    self._gaps_end.append(end)
                else:
                    changes.append((end, more - done, 0.0))
        self._gaps_begin.sort()
        self._gaps_end.sort()
        self._times: list[float] = []
        self._values: list[float] = []
        self._slopes: list[float] = []
        before = value = slope = 0.0
        for time, more, bend in sorted(changes):
            value += slope * (time - before) + more
            slope += bend
            before = time
            self._times.append(time)
            self._values.append(value)
            self._slopes.append(slope)

    def iterations(self, time: float) -> float:
        """Return how many iterations had ended by *time*."""
        index = bisect_right(self._times, time) - 1
        if index < 0:
            return 0.0
        done = self._values[index] + self._slopes[index] * (time - self._times[index])
        # At the very time of a point it is known what is done.
        within = bisect_left(self._gaps_begin, time) - bisect_right(self._gaps_end, time)
        return done - self._at_work * within


@dataclass(frozen=True)
class Throughput:
    """What clients did together in so many seconds."""

    iterations: float
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
    total = Total(clients)
    firsts = [client.times[0] for client in clients]
    if max(end - first for first, end in zip(firsts, ends)) <= 0:
        last = max(ends)
        return Throughput(total.iterations(last), last - start)
    done = sum(total.iterations(end) - total.iterations(first) for first, end in zip(firsts, ends))
    return Throughput(done, sum(end - first for first, end in zip(firsts, ends)))
