"""One client of a crew: its database, its connection, and the clients that share its DB."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from typing import Any

from transaction import TransactionManager
from transaction.interfaces import NoTransaction

from zodbshootout.client.commits import CommitLog
from zodbshootout.client.data.objects import payload
from zodbshootout.client.database import Database
from zodbshootout.model.specification import Parameters


class Neighbours:
    """The clients that share a DB, with a barrier at which one of them acts for all.

    A DB that is not shared has only one client.  Waiting for neighbours raises
    :class:`threading.BrokenBarrierError` if one of them has failed.
    """

    def __init__(self, size: int, first: int) -> None:
        """Create a barrier for *size* clients.

        *first* is the number of the client that counts the hits and misses of the DB's cache.
        """
        self.first = first
        self._barrier = threading.Barrier(size, self._act)
        self._numbers: list[int] = []

    def together(self, action: Callable[[], Any]) -> Any:
        """Wait for all clients, have one of them call *action*, and return the result to each."""
        self._action = action
        self._barrier.wait()
        return self._result

    def total(self, number: int) -> int:
        """Wait until all clients have called this; return the sum of all values of *number*."""
        self._numbers.append(number)
        total: int = self.together(self._sum)
        return total

    def abort(self) -> None:
        """Break the barrier: clients that wait for each other fail, now and in future."""
        self._barrier.abort()

    def _act(self) -> None:
        self._result: Any = self._action()

    def _sum(self) -> int:
        numbers, self._numbers = self._numbers, []
        return sum(numbers)


class Client:
    """A thread of control with its own transaction manager and at most one connection."""

    def __init__(
        self,
        index: int,
        parameters: Parameters,
        database: Database,
        neighbours: Neighbours | None = None,
    ) -> None:
        """Create client number *index* (from 0) of a crew; *neighbours* share its DB."""
        self.index = index
        """The client's number in the crew, from 0."""
        self.parameters = parameters
        """The parameters of the measurement."""
        self.database = database
        """The DB, which neighbours share."""
        self.neighbours = neighbours or Neighbours(1, index)
        """The clients that share the DB, including this one.

        ``neighbours.together(action)`` waits for all of them, has one of them call *action*, and
        returns the result to each.
        """
        self.payload = payload(parameters, index)
        """The source of content: ``payload.contents(9, revision)`` lists contents for 9 objects."""
        self.transactions = TransactionManager(explicit=True)
        """The transaction manager, in explicit mode."""
        self.connection: Any = None
        """The open connection, or ``None``."""
        self.commit_log: CommitLog | None = None
        """The commits to look for if a server restarts, or ``None``."""
        self._loads = self._stores = 0

    def connect(self) -> Any:
        """Open a connection and begin a transaction; return the connection.

        End that transaction before you begin the next one.
        """
        self.connection = self.database.db.open(self.transactions)
        if self.commit_log is not None:
            self.commit_log.watch(self.connection._storage)
        self.transactions.begin()
        return self.connection

    def disconnect(self) -> None:
        """End the transaction and return the connection to its pool."""
        if self.connection is None:
            return
        with closing(self.connection):
            self._note_transfers()
            self.connection = None
            self.abort()

    def start_over(self) -> None:
        """Drop the connection and its transaction, in whatever state an error left them."""
        with suppress(Exception):
            self.disconnect()
        self.transactions = TransactionManager(explicit=True)

    def transfers(self) -> tuple[int, int]:
        """Return how many objects the client has loaded and stored since the last call."""
        # Keep the sums here, because connections of a shared pool pass from client to client.
        if self.connection is not None:
            self._note_transfers()
        transfers = self._loads, self._stores
        self._loads = self._stores = 0
        return transfers

    def _note_transfers(self) -> None:
        loads, stores = self.connection.getTransferCounts(clear=True)
        self._loads += loads
        self._stores += stores

    def abort(self) -> None:
        """End the transaction, if there is one."""
        with suppress(NoTransaction):
            self.transactions.abort()

    def catch_up(self) -> None:
        """Let the connection see all commits, and leave it without a transaction.

        Objects loaded afterwards stay in the pickle cache, whatever its size: ZODB evicts objects
        only when a transaction ends or a connection is opened or closed.
        """
        self.abort()
        self.transactions.begin()
        self.transactions.abort()

    def keeps_loaded(self, objects: int) -> bool:
        """Return whether the pickle cache keeps *objects* objects across transactions."""
        db = self.database.db
        # The root, mappings and the like need a little more room.
        return bool(db.getCacheSize() > objects * 1.1 + 20 and not db.getCacheSizeBytes())

    def second_connection(self) -> AbstractContextManager[Any]:
        """Open another connection, with its own transaction manager."""
        return self.database.connected()

    def fresh_connection(self) -> AbstractContextManager[Any]:
        """Open another connection, after emptying every client-side cache."""
        self.neighbours.together(self.database.empty_caches)
        return self.second_connection()

    def auditing_connection(self) -> AbstractContextManager[Any]:
        """Open another connection that sees what all clients have committed, for an audit.

        Call this while all clients of the DB wait without a connection.
        """
        if self.parameters.crew.databases > 1:
            # A server may not yet have sent the invalidations for other clients' last commits.
            self.database.reopen()
        self.database.empty_caches()
        return self.second_connection()
