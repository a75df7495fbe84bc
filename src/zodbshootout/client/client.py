"""One client of a crew as a benchmark sees it: its database, its connection, its neighbours."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from transaction import TransactionManager
from transaction.interfaces import NoTransaction

from zodbshootout.client.data.records import payload
from zodbshootout.client.database import Database
from zodbshootout.client.specification import Parameters


class Neighbours:
    """The clients that share a DB, with a barrier at which one of them acts for all.

    A client with a DB of its own is its only neighbour.
    """

    def __init__(self, size: int = 1, first: int = 0) -> None:
        self.size = size
        self.first = first
        """The number of the client that counts what is counted for all."""
        self._barrier = threading.Barrier(size, self._act)
        self._action: Callable[[], Any] = lambda: None
        self._result: Any = None
        self._given: list[Any] = []

    def together(self, action: Callable[[], Any]) -> Any:
        """Wait for all, have one do *action*, return its result to each.

        :raises threading.BrokenBarrierError: when another client has failed
        """
        if self.size == 1:
            return action()
        self._action = action
        self._barrier.wait()
        return self._result

    def total(self, number: int) -> int:
        """Return the sum of what all give.

        :raises threading.BrokenBarrierError: when another client has failed
        """
        if self.size == 1:
            return number
        self._given.append(number)
        total: int = self.together(self._sum)
        return total

    def abort(self) -> None:
        """Have every client that waits, or will wait, fail."""
        self._barrier.abort()

    def _act(self) -> None:
        self._result = self._action()

    def _sum(self) -> int:
        given, self._given = self._given, []
        return sum(given)


class Client:
    """A thread of control with a transaction manager of its own and at most one connection."""

    def __init__(
        self,
        index: int,
        parameters: Parameters,
        database: Database,
        neighbours: Neighbours | None = None,
    ) -> None:
        """Describe client number *index* (from 0) of a crew; *neighbours* share its DB with it."""
        self.index = index
        self.parameters = parameters
        self.database = database
        self.neighbours = neighbours or Neighbours()
        self.payload = payload(parameters, index)
        self.transactions = TransactionManager(explicit=True)
        self.connection: Any = None
        self._loads = self._stores = 0

    @property
    def speaks_for_all(self) -> bool:
        """Whether it is the one of its neighbours that counts what is counted for all."""
        return self.neighbours.size == 1 or self.index == self.neighbours.first

    def together(self, action: Callable[[], Any]) -> Any:
        """Do something once for all clients of the DB, while all of them wait."""
        return self.neighbours.together(action)

    def connect(self) -> Any:
        """Open a connection and begin a transaction; return the connection."""
        self.connection = self.database.connect(self.transactions)
        self.transactions.begin()
        return self.connection

    def disconnect(self) -> None:
        """End the transaction and give the connection back."""
        if self.connection is None:
            return
        self.abort()
        self._note_transfers()
        self.connection.close()
        self.connection = None

    def transfers(self) -> tuple[int, int]:
        """Return how many objects its connections have loaded and stored since it was asked last.

        Connections go from one client to another where they share a pool.
        """
        if self.connection is not None:
            self._note_transfers()
        found, self._loads, self._stores = (self._loads, self._stores), 0, 0
        return found

    def _note_transfers(self) -> None:
        loads, stores = self.connection.getTransferCounts(clear=True)
        self._loads += loads
        self._stores += stores

    def leave(self) -> None:
        """Give the connection back, and close the DB unless others use it."""
        self.disconnect()
        if not self.parameters.crew.shared:
            self.database.close()

    def close_database(self) -> None:
        """Close the DB, once for all who use it."""
        self.disconnect()
        self.together(self.database.close)

    def reopen_database(self) -> None:
        """Open the DB again after :meth:`close_database`, and connect once, off the clock."""
        self.together(self.database.open)
        # All at the same time, so that there is a connection for each in the DB's pool.
        self.connect()
        self.together(lambda: None)
        self.disconnect()

    def abort(self) -> None:
        """End the transaction, if there is one."""
        with suppress(NoTransaction):
            self.transactions.abort()

    def catch_up(self) -> None:
        """Let the connection see what was committed, outside of any transaction.

        What is loaded from here on stays in the pickle cache whatever its configured size, for
        ZODB evicts objects only where a transaction ends or a connection is opened or closed.
        """
        self.abort()
        self.transactions.begin()
        self.transactions.abort()

    def keeps_loaded(self, objects: int) -> bool:
        """Say whether the pickle cache keeps so many *objects* from one transaction to the next.

        The root, mappings and the like need a little more room than the objects do.
        """
        db = self.database.db
        return bool(db.getCacheSize() > objects * 1.1 + 20 and not db.getCacheSizeBytes())

    @contextmanager
    def second_connection(self) -> Iterator[Any]:
        """Have a connection beside the client's own, with a transaction manager of its own."""
        transactions = TransactionManager(explicit=True)
        connection = self.database.connect(transactions)
        transactions.begin()
        try:
            yield connection
        finally:
            transactions.abort()
            connection.getTransferCounts(clear=True)
            connection.close()

    @contextmanager
    def fresh_connection(self) -> Iterator[Any]:
        """Have a connection that finds every client-side cache empty."""
        self.together(self.database.empty_caches)
        with self.second_connection() as connection:
            yield connection

    @contextmanager
    def auditing_connection(self) -> Iterator[Any]:
        """Have one that sees what all clients have committed, while these do nothing.

        The connections of all clients of its DB must have been given back.
        """
        if self.parameters.crew.databases > 1:
            # A server may not have told this client yet of what another has committed last.
            self.database.reopen()
        self.database.empty_caches()
        with self.second_connection() as connection:
            yield connection
