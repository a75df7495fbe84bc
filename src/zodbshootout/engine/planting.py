"""Bringing a database into the state that a benchmark expects, before any client starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transaction import TransactionManager

from zodbshootout.contenders.database import Database
from zodbshootout.data import tree
from zodbshootout.data.stock import replenish
from zodbshootout.data.tree import Purpose
from zodbshootout.model import Parameters


def plant(database: Database, purpose: Purpose | None, parameters: Parameters) -> None:
    """Write what is missing of the objects for *purpose*, in one transaction for each mapping."""
    if purpose is None:
        return
    with _connected(database) as (connection, transactions):
        for number in range(purpose.mappings(parameters.crew.size)):
            with transactions:
                tree.plant(connection.root(), purpose, parameters, number)


def stock(database: Database, parameters: Parameters) -> int:
    """Write what is missing of ``min_objects``; return how many objects that were."""
    if not parameters.min_objects:
        return 0
    with _connected(database) as (connection, transactions):
        return replenish(connection, transactions, parameters)


@contextmanager
def _connected(database: Database) -> Iterator[tuple[Any, Any]]:
    transactions = TransactionManager(explicit=True)
    connection = database.connect(transactions)
    try:
        yield connection, transactions
    finally:
        connection.close()
