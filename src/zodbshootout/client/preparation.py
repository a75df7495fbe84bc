"""Tasks besides measuring: inspecting and preparing a contender."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ZODB.POSException import ReadOnlyError

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.connections import peers, place_of
from zodbshootout.client.data import datasets, workload_objects
from zodbshootout.client.data.datasets import Dataset
from zodbshootout.client.data.filler import CHUNK_BYTES, fill_up, filled
from zodbshootout.client.database import Database
from zodbshootout.model.outcome import Failed, Failure, Unsupported
from zodbshootout.model.specification import Parameters, Specification, Storage
from zodbshootout.model.storage_facts import EMPTY_AND_READ_ONLY, StorageInfo

TASKS = frozenset({"inspect", "prepare"})
"""The functions of this module that another process may call."""
TRANSACTION_SIZE = 1000
"""The number of new objects after which to commit; fewer if they are large."""
STEP_PREFIX = "step: "
"""The prefix of the lines in which a worker prints what it is doing."""
STEP_INTERVAL = 1.0
"""The minimum time between two lines with :data:`STEP_PREFIX`, in seconds."""


@dataclass(frozen=True)
class Preparation:
    """How to bring a database into the state that a benchmark expects."""

    specification: Specification
    zap: bool = False
    """Whether to destroy all data first."""
    pack: bool = False
    may_write: bool = False
    """Whether zodbshootout may write to a database with data of other applications."""
    is_swept: bool = False
    """Whether the run measures several database sizes.  A database that already has more than
    ``min_objects`` is then an error."""


def inspect(storage: Storage) -> StorageInfo:
    """Open a contender, and describe its storage.

    Exceptions of ZConfig, ZODB and the storage propagate.

    :raises CheckFailed: if an SQL statement fails
    :raises Unsupported: if the contender cannot be opened as configured or by clients of this kind
    """
    before, others = set(sys.modules), peers()
    try:
        with Database(storage) as database:
            if storage.sql:
                database.run_sql(storage.sql)
            info = replace(database.info(), server_place=place_of(peers() - others))
    except ReadOnlyError as error:  # by DB, which creates a root
        raise Unsupported(EMPTY_AND_READ_ONLY) from error
    return replace(info, modules=tuple(sorted(sys.modules.keys() - before)))


def prepare(preparation: Preparation) -> None:
    """Bring a database into the state that a benchmark expects, before any client starts.

    :raises Failed: if the database has other applications' data and would have to be written to
    :raises Unsupported: if the database lacks objects but is read-only, or cannot be packed
    :raises NotZapped: if the data cannot be destroyed
    """
    # Look for other applications' data here, not in inspect(): reading an empty SQLite database
    # leaves statistics in it.  With these, RelStorage would scan whole tables for every store.
    with Database(preparation.specification.storage) as database:
        others = [] if preparation.may_write else database.others()
        if others:
            _check_nothing_is_written(preparation, database, others)
        else:
            try:
                _write(preparation, database)
            except ReadOnlyError as error:
                raise Unsupported(
                    f"{database.facts.storage_name} is read-only as configured here, and the "
                    "database lacks objects that are needed; run the benchmark once on a contender "
                    "that writes to the same database"
                ) from error


def _check_nothing_is_written(
    preparation: Preparation, database: Database, others: Sequence[str]
) -> None:
    parameters = preparation.specification.parameters
    benchmark = benchmarks()[preparation.specification.benchmark]
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    permission = f"write to this database nevertheless, add --may-write {parameters.owner}"
    if benchmark.traits.empties:
        permission = f"DESTROY ALL DATA of this database, add --zap {parameters.owner}"
    why = (
        f"the root of the database contains {others[0]!r}{more}, which zodbshootout did not "
        f"create; to let it {permission}"
    )
    if benchmark.traits.writes or preparation.pack or parameters.min_objects:
        raise Failed(Failure(why))
    if not is_populated(database, benchmark.dataset, parameters):
        missing = "the objects that the benchmark reads are not in the database"
        raise Failed(Failure(f"{missing}; {why}"))


def _write(preparation: Preparation, database: Database) -> None:
    parameters = preparation.specification.parameters
    if preparation.zap:
        database.zap()
    if preparation.is_swept:
        _check_is_small(database, parameters)
    fill(database, parameters)
    if preparation.pack:
        flaw = database.facts.pack_flaw
        if flaw is not None:
            raise Unsupported(f"{flaw}; leave out --pack")
        database.pack()
    dataset = benchmarks()[preparation.specification.benchmark].dataset
    populate(database, dataset, parameters)


def _check_is_small(database: Database, parameters: Parameters) -> None:
    with database.connected() as connection:
        total = filled(connection.root(), parameters)
    if total > parameters.min_objects:
        raise Failed(
            Failure(
                f"the database already has {total:,} objects from an earlier --min-objects, and "
                "will never have fewer; choose a larger --min-objects, or another database "
                "(--private)"
            )
        )


def populate(database: Database, dataset: Dataset | None, parameters: Parameters) -> None:
    """Write the missing objects of *dataset*."""
    if dataset is None:
        return
    with database.connected() as connection:
        if dataset is Dataset.WORKLOAD:
            workload_objects.store_objects(connection, parameters)
            return
        manager = connection.transaction_manager
        most = min(TRANSACTION_SIZE, CHUNK_BYTES // parameters.object_size)
        made = 0
        for client, number in _sets(dataset, parameters):
            made += datasets.make(connection.root(), dataset, parameters, client, number)
            if made >= most:
                manager.commit()
                connection.cacheMinimize()
                manager.begin()
                made = 0
        manager.commit()


def is_populated(database: Database, dataset: Dataset | None, parameters: Parameters) -> bool:
    """Return whether :func:`populate` has nothing to write."""
    if dataset is None:
        return True
    with database.connected() as connection:
        root = connection.root()
        if dataset is Dataset.WORKLOAD:
            return workload_objects.is_stored(root, parameters)
        return not any(
            datasets.is_missing(root, dataset, parameters, client, number)
            for client, number in _sets(dataset, parameters)
        )


def _sets(dataset: Dataset, parameters: Parameters) -> Iterator[tuple[int, int]]:
    """Return a pair of client number and set number for each set of objects in *dataset*."""
    sets = datasets.sets_to_read(parameters) if dataset is Dataset.READ else 1
    return product(range(dataset.mappings(parameters.crew.size)), range(sets))


def fill(database: Database, parameters: Parameters) -> None:
    """Add filler objects until there are at least ``min_objects`` of them."""
    if parameters.min_objects:
        with database.connected() as connection:
            fill_up(connection, parameters, _progress(parameters))


def _progress(parameters: Parameters) -> Callable[[int], None]:
    """Return a function that prints the number of objects so far, but not too often."""
    next_line = time.monotonic() + STEP_INTERVAL

    def note(total: int) -> None:
        nonlocal next_line
        if time.monotonic() >= next_line:
            next_line = time.monotonic() + STEP_INTERVAL
            of = f"{total:,} of {parameters.min_objects:,} objects"
            print(f"{STEP_PREFIX}filling {parameters.owner}: {of}", flush=True)  # noqa: T201

    return note
