"""The progress of clients over time, and the throughput that follows from it."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

MAX_POINTS = 1024
"""The approximate maximum number of points that a client keeps if it is the only one.  A point is a
time with the number of iterations done by then."""
MIN_POINTS = 32


def most_points(clients: int) -> int:
    """Return how many points each of *clients* clients keeps: the more clients, the fewer."""
    return max(MIN_POINTS, math.ceil(MAX_POINTS / math.sqrt(clients)))


@dataclass(frozen=True)
class Progress:
    """The number of iterations, counted and uncounted, that a client has done at certain times.

    Times are in seconds, by the crew's clock.
    """

    start: float
    """The time at which the client began."""
    times: Sequence[float]
    """The times at which iterations, or batches of them, ended."""
    done: Sequence[int]
    """For each time, the iterations done by then; the first number is the size of a batch."""

    def iterations(self, time: float) -> int:
        """Return how many iterations had ended by *time*, interpolated if points were dropped."""
        index = bisect_right(self.times, time)
        if not index:
            return 0
        done = self.done[index - 1]
        if index == len(self.times) or self.done[index] - done <= self.done[0]:
            return done
        before, after = self.times[index - 1], self.times[index]
        return done + int((time - before) / (after - before) * (self.done[index] - done))

    def end(self, iterations: int) -> float:
        """Return the time at which the client had done this number of *iterations*."""
        return self.times[bisect_left(self.done, iterations)]


def kept_indices(counted: int, total: int, clients: int) -> list[int]:
    """Return the indices of the points that a client keeps; see :func:`most_points`.

    *total* is the number of all points.  *counted* is the number of points at which counted
    iterations ended; these points come first.  The last counted point and the very last point are
    always kept.  The first two points are kept, too, because :func:`throughput` needs exact numbers
    for the time at which spans begin.
    """
    stride = 1 + total // most_points(clients)
    return sorted({0, min(1, total - 1), counted - 1, total - 1, *range(0, total, stride)})


class Total:
    """The sum of the iterations of several clients.

    Iterations count when their batch ends.  In a gap of dropped points, the number is interpolated.
    Interpolation includes the current batch, of which half is done on average; so half a batch is
    subtracted.
    """

    def __init__(self, clients: Sequence[Progress]) -> None:
        """Add up the progress of *clients* whose batches are of equal size."""
        self._half_batch = clients[0].done[0] / 2
        changes: list[tuple[float, int, float]] = []
        self._gaps_begin: list[float] = []
        self._gaps_end: list[float] = []
        for client in clients:
            changes.append((client.times[0], client.done[0], 0.0))
            points = list(zip(client.times, client.done))
            for (time, done), (end, done_by_end) in zip(points, points[1:]):
                increase = done_by_end - done
                if increase > client.done[0] and end > time:
                    slope = increase / (end - time)
                    changes += [(time, 0, slope), (end, 0, -slope)]
                    self._gaps_begin.append(time)
                    self._gaps_end.append(end)
                else:
                    changes.append((end, increase, 0.0))
        self._gaps_begin.sort()
        self._gaps_end.sort()
        self._times: list[float] = []
        self._values: list[float] = []
        self._slopes: list[float] = []
        before = value = slope = 0.0
        for time, increase, bend in sorted(changes):
            value += slope * (time - before) + increase
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
        # Subtract nothing at the ends of a gap: the numbers there are exact.
        within = bisect_left(self._gaps_begin, time) - bisect_right(self._gaps_end, time)
        return done - self._half_batch * within


@dataclass(frozen=True)
class Throughput:
    """The throughput of all clients together: :attr:`iterations` / :attr:`seconds`.

    Both attributes are sums over the clients' spans; see :func:`throughput`.
    """

    iterations: float
    seconds: float


def throughput(clients: Sequence[Progress], counted: int) -> Throughput:
    """Return the throughput of all *clients* together.

    *counted* is the number of iterations that each had to do.  If there is only one client, the
    throughput is the number of counted iterations, divided by the time from the client's start to
    the end of the last counted iteration.

    If there are several clients, each has a span: from the end of its first iteration to the end of
    its last counted one.  An iteration of any client counts in every span in which it ends; the
    throughput is the sum of these counts, divided by the sum of the spans.  If the storage does one
    thing at a time and the clients wait for each other, this quotient is the storage's throughput,
    however unfair the storage is to some clients.  If the clients do not wait for each other, the
    quotient is right, too.  A span counts other clients' iterations that began before the span and
    ended in the span.  It leaves out about as many iterations that began in the span and ended
    after the span.

    Spans exclude first iterations, which would distort the throughput: all clients begin at once,
    and the first to be served do not wait.  If each client does only one iteration, the throughput
    is the number of all iterations, divided by the time until the slowest client ends.  The clients
    could achieve more: the faster ones are idle until the slowest one ends.
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
