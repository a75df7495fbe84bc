"""Writing the objects that a benchmark expects, before any client starts."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing.connection import Connection

from transaction import TransactionManager

from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.database import Database
from zodbshootout.data import tree
from zodbshootout.data.tree import Purpose
from zodbshootout.engine.processes import manner_of_end
from zodbshootout.engine.protocol import Failed, failed
from zodbshootout.model import Parameters

_FORK = multiprocessing.get_context("fork")


class PlantingFailed(Exception):  # noqa: N818
    """The objects could not be written.  ``failure`` says why."""

    def __init__(self, failure: Failed) -> None:
        super().__init__(failure.cause)
        self.failure = failure


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


def plant_from_another_process(
    contender: Contender, purpose: Purpose, parameters: Parameters
) -> None:
    """Write what is missing for all clients of a crew, from a process that ends with it.

    So whoever reads the objects has not written them, and the process that calls this has opened
    nothing and can still fork.

    :raises PlantingFailed: with what went wrong in the other process
    """
    ours, theirs = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_plant_and_tell, args=(theirs, contender, purpose, parameters))
    process.start()
    theirs.close()
    failure = None
    with ours, suppress(EOFError):
        failure = ours.recv()
    process.join()
    if failure is None and process.exitcode:
        cause = f"the process that writes the objects {manner_of_end(process.exitcode)}"
        failure = Failed(cause, detail=cause)
    if failure is not None:
        raise PlantingFailed(failure)


def _plant_and_tell(
    outcome: Connection, contender: Contender, purpose: Purpose, parameters: Parameters
) -> None:
    with outcome:
        try:
            with Database(contender) as database:
                plant(database, purpose, parameters, range(parameters.crew.size))
        except BaseException as error:  # noqa: BLE001 - told to the process that waits for it
            outcome.send(failed(error))
