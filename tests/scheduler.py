"""A clock that all clients of a crew share, on which time passes only while all of them wait.

Clients within a stretch run one at a time, in the order of their wake-up times, so that they affect
each other in the same way in every run.  The clock ignores clients that wait for orders or prepare.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from zodbshootout.crews.local import QueueChannel
from zodbshootout.model.outcome import Failure

NOTICE = 1.0


class SharedClock:
    """Virtual time, and the turns of the clients."""

    def __init__(self, clients: int) -> None:
        self._clients = clients
        self._mutex = threading.Lock()
        self._turns: dict[int, threading.Semaphore] = defaultdict(lambda: threading.Semaphore(0))
        self._time = 0.0
        self._inside: set[int] = set()
        self._queue: list[tuple[float, int, int]] = []
        self._order = itertools.count()
        self._locks: list[SharedLock] = []

    def now(self) -> float:
        return self._time

    def wait_until(self, instant: float) -> None:
        """Enter a stretch at an *instant*, as all clients of the crew do."""
        with self._mutex:
            thread = threading.get_ident()
            self._inside.add(thread)
            heapq.heappush(self._queue, (instant, -self._clients + _client_number(), thread))
            if len(self._inside) == self._clients:
                self._pass_turn()
        self._turns[thread].acquire()

    def leave(self) -> None:
        """Leave the stretch, if this client is in one."""
        with self._mutex:
            if threading.get_ident() in self._inside:
                self._inside.discard(threading.get_ident())
                self._pass_turn()

    def spend(self, seconds: float) -> None:
        """Let *seconds* pass while this client is at work."""
        with self._mutex:
            thread = threading.get_ident()
            if thread not in self._inside:
                self._time += seconds
                return
            heapq.heappush(self._queue, (self._time + seconds, next(self._order), thread))
            self._pass_turn()
        self._turns[thread].acquire()

    def lock(self, choose: Callable[[int], int]) -> SharedLock:
        """Return a lock that goes to number ``choose(n)`` of the *n* clients that wait for it."""
        self._locks.append(SharedLock(self, choose))
        return self._locks[-1]

    def _pass_turn(self) -> None:
        """Let the next client run; the current one is about to wait, or has left."""
        if not self._inside:
            return
        while not self._queue or self._queue[0][0] > self._time:
            granted = next((next_ for lock in self._locks if (next_ := lock._grant())), None)
            if granted is not None:
                self._turns[granted].release()
                return
            self._time = self._queue[0][0]
        self._turns[heapq.heappop(self._queue)[2]].release()


class SharedLock:
    """A lock that goes to the next client only when no client can go on without it."""

    def __init__(self, clock: SharedClock, choose: Callable[[int], int]) -> None:
        self._clock = clock
        self._choose = choose
        self._waiting: list[int] = []
        self._held = False
        self._outside = threading.Lock()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *exc_info: object) -> None:
        self.release()

    def acquire(self) -> None:
        thread = threading.get_ident()
        clock = self._clock
        if thread not in clock._inside:
            self._outside.acquire()
            return
        with clock._mutex:
            self._waiting.append(thread)
            clock._pass_turn()
        clock._turns[thread].acquire()

    def release(self) -> None:
        if threading.get_ident() not in self._clock._inside:
            self._outside.release()
        self._held = False

    def _grant(self) -> int | None:
        """Give the lock, if it is free, to a waiting client, and return that client."""
        if self._held or not self._waiting:
            return None
        self._held = True
        return self._waiting.pop(self._choose(len(self._waiting)))


def _client_number() -> int:
    return int(threading.current_thread().name.removeprefix("client-"))


def channel_on(clock: SharedClock) -> type[QueueChannel]:
    """Return a class of channels whose clients leave the stretch when they wait for an order."""

    class LeavingChannel(QueueChannel):
        def send(self, report: Any) -> None:
            if isinstance(report, Failure):
                clock.leave()
            super().send(report)

        def recv(self) -> Any:
            clock.leave()
            return super().recv()

    return LeavingChannel
