"""What is done with the database of a contender beside measuring it: a look, and preparing it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, Optional

from ZODB.POSException import ReadOnlyError

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.database import Database
from zodbshootout.client.opening import section_of
from zodbshootout.client.outcome import BadSection, Protected, Unsupported, describe
from zodbshootout.client.populating import fill, is_populated, populate
from zodbshootout.client.specification import Specification, Storage
from zodbshootout.client.storage_info import StorageInfo


@dataclass(frozen=True)
class InspectStorage:
    """Open a contender; that gives :class:`~zodbshootout.client.storage_info.StorageInfo`."""

    storage: Storage


@dataclass(frozen=True)
class ValidateSection:
    """Read the section of a contender; that gives what is wrong with it, if anything is.

    Nothing is opened.
    """

    storage: Storage


@dataclass(frozen=True)
class Prepare:
    """Bring the database into the state that a benchmark finds."""

    specification: Specification
    zap: bool = False
    """Whether all data is destroyed first."""
    pack: bool = False
    may_write: bool = False
    """Whether it is written to whatever else is in it."""

    @property
    def storage(self) -> Storage:
        """How to open the contender."""
        return self.specification.storage


@singledispatch
def carry_out(task: object) -> Any:
    """Do what *task* says; what ZConfig, ZODB and the storage raise goes through."""
    raise TypeError(f"nobody knows what to do about {task}")


@carry_out.register
def _look(task: InspectStorage) -> StorageInfo:
    before = set(sys.modules)
    with Database(task.storage) as database:
        info = database.info()
    return replace(info, modules=tuple(sorted(sys.modules.keys() - before)))


@carry_out.register
def _check(task: ValidateSection) -> Optional[BadSection]:  # noqa: UP045 - Python 3.9
    try:
        if task.storage.section:
            section_of(task.storage)
    except BadSection as error:
        return error
    except Exception as error:  # noqa: BLE001 - a package that is imported can be anybody's
        return BadSection(describe(error))
    return None


@carry_out.register
def _prepare(task: Prepare) -> None:
    # A look does not do it: what RelStorage's SQLite learns of a database that is still empty, and
    # keeps, would make it a thousand times slower when that is filled.
    with Database(task.storage) as database:
        others = [] if task.may_write else database.others()
        if others:
            _check_nothing_is_written(task, database, others)
        else:
            try:
                _write(task, database)
            except ReadOnlyError as error:
                raise Unsupported(
                    f"{database.storage_name} is read only as it is configured here, and objects "
                    "to be read are not in the database; run it without read-only"
                ) from error


def _check_nothing_is_written(task: Prepare, database: Database, others: Sequence[str]) -> None:
    """Check that a benchmark can do with a database that holds data of others as it is.

    :raises Protected: when it cannot
    """
    parameters = task.specification.parameters
    benchmark = benchmarks()[task.specification.benchmark]
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    why = (
        f"there is {others[0]!r}{more} in the root of the database, which zodbshootout has not put "
        f"there; to have it write there, too, add --may-write {parameters.owner}"
    )
    if benchmark.writes or task.pack or parameters.min_objects:
        raise Protected(why)
    if not is_populated(database, benchmark.dataset, parameters):
        raise Protected(f"the objects that it reads are not in the database; {why}")


def _write(task: Prepare, database: Database) -> None:
    parameters = task.specification.parameters
    if task.zap:
        database.zap()
    fill(database, parameters)
    if task.pack:
        _pack(database)
    populate(database, benchmarks()[task.specification.benchmark].dataset, parameters)


def _pack(database: Database) -> None:
    flaw = database.pack_flaw()
    if flaw is not None:
        raise Unsupported(f"{flaw}; leave out --pack")
    database.pack()
