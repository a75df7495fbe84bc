"""Bringing a database into the state that a benchmark expects, before any client starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from typing import Any

from transaction import TransactionManager
from transaction.interfaces import NoTransaction

from zodbshootout.client.data import tree
from zodbshootout.client.data.filler import fill_up
from zodbshootout.client.data.tree import Dataset
from zodbshootout.client.database import Database
from zodbshootout.client.specification import Parameters

TRANSACTION = 1000
"""Objects after which a transaction is committed."""


def populate(database: Database, dataset: Dataset | None, parameters: Parameters) -> None:
    """Write what is missing of the objects for *dataset*."""
    if dataset is None:
        return
    with _connected(database) as (connection, transactions):
        transactions.begin()
        made = 0
        for client, number in _sets(dataset, parameters):
            made += tree.make(connection.root(), dataset, parameters, client, number)
            if made >= TRANSACTION:
                transactions.commit()
                connection.cacheMinimize()
                transactions.begin()
                made = 0
        transactions.commit()


def is_populated(database: Database, dataset: Dataset | None, parameters: Parameters) -> bool:
    """Say whether :func:`populate` has nothing to write."""
    if dataset is None:
        return True
    with _connected(database) as (connection, transactions), transactions:
        root = connection.root()
        return not any(
            tree.is_missing(root, dataset, parameters, client, number)
            for client, number in _sets(dataset, parameters)
        )


def _sets(dataset: Dataset, parameters: Parameters) -> Iterator[tuple[int, int]]:
    """Return every client that finds objects, with the number of each set of these."""
    sets = tree.sets_to_read(parameters) if dataset is Dataset.READ else 1
    return product(range(dataset.mappings(parameters.crew.size)), range(sets))


def fill(database: Database, parameters: Parameters) -> int:
    """Write what is missing of ``min_objects``; return how many objects that were."""
    if not parameters.min_objects:
        return 0
    with _connected(database) as (connection, transactions):
        return fill_up(connection, transactions, parameters)


@contextmanager
def _connected(database: Database) -> Iterator[tuple[Any, Any]]:
    transactions = TransactionManager(explicit=True)
    connection = database.connect(transactions)
    try:
        yield connection, transactions
    except BaseException:
        with suppress(NoTransaction):
            transactions.abort()
        raise
    finally:
        connection.close()
