"""Writing the objects that a benchmark expects, before any client starts."""

from __future__ import annotations

from collections.abc import Iterable

from transaction import TransactionManager

from zodbshootout.contenders.database import Database
from zodbshootout.data import tree
from zodbshootout.data.tree import Purpose
from zodbshootout.model import Parameters


def plant(
    database: Database, purpose: Purpose, parameters: Parameters, clients: Iterable[int]
) -> None:
    """Write what is missing for these clients, in one transaction for each."""
    transactions = TransactionManager(explicit=True)
    connection = database.connect(transactions)
    try:
        for client in clients:
            with transactions:
                tree.plant(connection.root(), purpose, parameters, client)
    finally:
        connection.close()
