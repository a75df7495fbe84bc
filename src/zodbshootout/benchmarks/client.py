"""One client of a crew as a benchmark sees it: its database, its connection, its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from transaction import TransactionManager
from transaction.interfaces import NoTransaction

from zodbshootout.contenders.database import Database
from zodbshootout.data.records import payload
from zodbshootout.model import Parameters

T = TypeVar("T")


def alone(action: Callable[[], T]) -> T:
    """Do *action*: what "together" comes to for a client that shares its DB with nobody."""
    return action()


class Client:
    """A thread of control with a transaction manager of its own and at most one connection."""

    def __init__(
        self,
        index: int,
        parameters: Parameters,
        database: Database,
        together: Callable[[Callable[[], Any]], Any] = alone,
    ) -> None:
        """Describe client number *index* (from 0) of a crew.

        *together* runs an action once for all clients of the DB, while all of them wait, and
        gives each of them its result.
        """
        self.index = index
        self.parameters = parameters
        self.database = database
        self.together = together
        self.payload = payload(parameters, index)
        self.transactions = TransactionManager(explicit=True)
        self.connection: Any = None

    @property
    def neighbours(self) -> int:
        """How many clients use this DB, this one included."""
        return self.parameters.crew.size if self.parameters.crew.shared else 1

    def connect(self) -> Any:
        """Open a connection and begin a transaction; return the connection."""
        self.connection = self.database.connect(self.transactions)
        self.transactions.begin()
        return self.connection

    def disconnect(self) -> None:
        """End the transaction and give the connection back, its counters at zero."""
        if self.connection is None:
            return
        self.abort()
        self.connection.getTransferCounts(clear=True)
        self.connection.close()
        self.connection = None

    def leave(self) -> None:
        """Give the connection back, and close the DB unless others use it."""
        self.disconnect()
        if not self.parameters.crew.shared:
            self.database.close()

    def part(self) -> None:
        """Close the DB, once for all who use it."""
        self.disconnect()
        self.together(self.database.close)

    def come_back(self) -> None:
        """Open the DB again after :meth:`part`, and connect once, off the clock."""
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

        The client's own connection must have been given back.
        """
        shape = self.parameters.crew
        if shape.size > 1 and not shape.shared:
            # A server may not have told this client yet of what another has committed last.
            self.database.reopen()
        self.database.empty_caches()
        with self.second_connection() as connection:
            yield connection
