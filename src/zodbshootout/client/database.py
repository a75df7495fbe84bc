"""Open the DB of a contender, and operate on its storages and their caches."""

from __future__ import annotations

import functools
import io
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import ZConfig
from transaction import TransactionManager
from transaction.interfaces import NoTransaction
from ZODB.Connection import resetCaches
from ZODB.interfaces import IBlobStorage, IMVCCStorage
from ZODB.POSException import POSKeyError
from ZODB.TimeStamp import TimeStamp
from ZODB.utils import load_current

from zodbshootout.client.data.datasets import others
from zodbshootout.client.storage_types import (
    BlobRevision,
    StorageType,
    qualified,
    remove_blobs,
    settle,
    typed,
)
from zodbshootout.client.storage_types.zodburi import URIDatabase
from zodbshootout.model.outcome import BadSection, CheckFailed, describe
from zodbshootout.model.specification import Storage
from zodbshootout.model.storage_facts import (
    PICKLE_CACHE,
    CacheUse,
    DiskSize,
    Sharing,
    StorageInfo,
    narrowest,
)
from zodbshootout.versions import installed_versions

_SCHEMA = """
<schema>
  <import package="ZODB"/>
  <import package="zodbshootout.client.storage_types"/>
  <section type="ZODB.database" name="*" attribute="database"/>
</schema>
"""


def _first(values: Sequence[Any]) -> Any:
    return next(filter(None, values), values[-1])


def _joined(values: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(chain.from_iterable(values))


_Rules = Mapping[str, Callable[[Sequence[Any]], Any]]
"""How the facts of several storages become one, by field of :class:`StorageInfo`."""
_OF_THE_STACK: _Rules = {
    "limits": _joined,
    "zap_obstacle": _first,
    "driver": _first,
    "corrections": _joined,
    "persistent_cache": _first,
    "persistent_cache_flaw": _first,
}
_OF_THOSE_WRITTEN_TO: _Rules = {
    "stores_blobs": lambda values: False not in values,
    "copies_blobs": all,
    "retry_flaw": _first,
    "resolution_flaw": _first,
    "pack_flaw": _first,
    "undo_flaw": _first,
    "only_prepacks": any,
}


class NotZapped(Exception):  # noqa: N818
    """The data was not destroyed; the message says why."""


def open_db(storage: Storage) -> Any:
    """Open the DB; exceptions of ZConfig, ZODB and the storage propagate."""
    return _ready(storage).open()


def open_storage(storage: Storage) -> Any:
    """Open the storage without a DB, which would create a root in an empty database."""
    section = _ready(storage)
    if isinstance(section, URIDatabase):
        return section.open_storage()
    return section.config.storage.open()


def _ready(storage: Storage) -> Any:
    """Return a contender's section, ready to be opened."""
    section = section_of(storage)
    settle(section)
    return section


@functools.cache
def database_schema() -> Any:
    """Return ZConfig's schema for a file with the section of one contender."""
    return ZConfig.loadSchemaFile(io.StringIO(_SCHEMA))


def section_of(storage: Storage) -> Any:
    """Return ZConfig's object for a contender's section, without opening anything.

    :raises BadSection: if the section is wrong
    """
    lines, missing = storage.section.splitlines(), None
    while True:
        text = io.StringIO(prelude(storage.names) + "".join(f"{line}\n" for line in lines))
        try:
            configuration, _ = ZConfig.loadConfigFile(database_schema(), text)
        except ZConfig.ConfigurationError as error:
            imported = f"%import {getattr(error, 'package', None)}"
            if imported not in lines:
                line = (getattr(error, "lineno", None) or 0) - len(storage.names)
                raise missing or BadSection(str(error.message or error), max(0, line)) from error
            # Perhaps only other sections of the configuration file need this import, so omit it.
            line = lines.index(imported)
            missing = missing or BadSection(error.message, line + 1)
            lines[line] = ""
        except Exception as error:  # an imported package may raise anything
            raise BadSection(describe(error)) from error
        else:
            return configuration.database


def prelude(names: Mapping[str, str]) -> str:
    """Return the ``%define`` lines for *names*."""
    literal = {name: value.replace("$", "$$") for name, value in names.items()}
    return "".join(f"%define {name} {value}\n" for name, value in literal.items())


class Database:
    """The DB of a contender, and operations on its storages.

    Close all connections of the DB before you close or reopen it.
    """

    db: Any
    """The open ``ZODB.DB``."""

    def __init__(self, storage: Storage, open_db: Callable[[Storage], Any] = open_db) -> None:
        """Open *storage* with *open_db*; exceptions of ZConfig, ZODB and the storage propagate."""
        self.specification = storage
        self._open_db = open_db
        self.open()

    def open(self) -> None:
        """Open the DB, which must not be open already."""
        self.db = self._open_db(self.specification)
        self._is_open = True
        self._outermost = typed(self.db.storage)
        self._stack = tuple(self._outermost.stack())
        self._written_to = tuple(self._outermost.written_to())

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        self.db.close()
        self._is_open = False

    def reopen(self) -> None:
        """Close the DB and open it as a new process would."""
        self.close()
        self.open()

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Open a connection with its own transaction manager, and begin a transaction."""
        transactions = TransactionManager(explicit=True)
        with closing(self.db.open(transactions)) as connection:
            try:
                transactions.begin()
                yield connection
            finally:
                connection.getTransferCounts(clear=True)
                with suppress(NoTransaction):
                    transactions.abort()

    @functools.cached_property
    def facts(self) -> StorageInfo:
        """What the storages of the stack tell together without asking a server.

        This is found out once, when it is first read.
        """
        outermost, stack, written_to = self._outermost, self._stack, self._written_to
        seen_through = [outermost]
        while seen_through[-1].transparent and seen_through[-1].inner:
            seen_through += seen_through[-1].inner
        told = {layer: layer.facts() for layer in stack}
        sharing = narrowest(layer.sharing for layer in written_to)
        collected = (told[layer].collects_garbage for layer in seen_through)
        facts = StorageInfo(
            storage_name=" over ".join(layer.name for layer in seen_through),
            sharing=Sharing.VOLATILE if self.specification.in_memory else sharing,
            read_only=any(layer.storage.isReadOnly() for layer in written_to),
            keeps_history=_keeps_history(outermost),
            collects_garbage=next((known for known in collected if known is not None), None),
            undoes=_undoes(outermost),
            knows_caches=all(type(layer) is not StorageType for layer in stack),
            storage_classes=tuple(qualified(type(layer.storage)) for layer in stack),
            **_merged(_OF_THE_STACK, [told[layer] for layer in stack]),
            **_merged(_OF_THOSE_WRITTEN_TO, [told[layer] for layer in written_to]),
        )
        if not IBlobStorage.providedBy(self.db.storage):
            facts = replace(facts, stores_blobs=False)
        if not facts.read_only:
            return facts
        return replace(
            facts,
            zap_obstacle="it is configured to be read-only",
            # RelStorage would pack all the same.
            pack_flaw=f"{facts.storage_name} is read-only as configured here",
        )

    def info(self) -> StorageInfo:
        """Return the facts, and what takes a connection or the server's answer to know."""
        # A DemoStorage may wrap more storages now than when it was opened.
        stack = typed(self.db.storage).stack()
        return replace(
            self.facts,
            promise=self._outermost.promise(),
            link=self._outermost.link(),
            prefetches=self._prefetches(),
            caches_left=tuple(
                dict.fromkeys(name for layer in stack for name in layer.caches_left())
            ),
            versions=self._versions(),
            python=_python(),
            new_root=self._new_root(),
        )

    def _prefetches(self) -> bool:
        """Return whether the storages of connections can prefetch; the DB's storage may differ."""
        if not IMVCCStorage.providedBy(self.db.storage):
            return hasattr(self.db.storage, "prefetch")
        instance = self.db.storage.new_instance()
        try:
            return hasattr(instance, "prefetch")
        finally:
            instance.release()

    def _new_root(self) -> str:
        """Return the root's serial.

        Return ``""`` if the root has objects, or if the types of all storages are known.
        """
        # Reading an empty SQLite database would leave statistics in it; see preparation.prepare().
        if not any(type(layer) is StorageType and not layer.inner for layer in self._written_to):
            return ""
        with self.db.transaction() as connection:
            root = connection.root()
            return "" if len(root) else root._p_serial.hex()

    def run_sql(self, statements: Sequence[str]) -> None:
        """Run SQL statements.

        :raises CheckFailed: if a statement fails, or the storage has no SQL database
        """
        try:
            ran = any(layer.run_sql(statements) for layer in self._written_to)
        except Exception as error:  # noqa: BLE001 - another exception replaces it
            # psycopg2 repeats a part of the statement, which may end within a password.
            reason, _, _ = describe(error).partition(" LINE ")
            raise CheckFailed(f"sql: {reason}") from None
        if not ran:
            raise CheckFailed(f"sql: {self.facts.storage_name} has no SQL database")

    def pack(self, until: float | None = None) -> None:
        """Remove old revisions and garbage; the storage's exceptions propagate.

        A revision is old if it was replaced before *until*; the default is :meth:`time_after_all`.
        """
        self.db.pack(self.time_after_all() if until is None else until)

    def vacuum(self) -> bool:
        """Let the database reclaim the space that packing has freed; return whether it could.

        Exceptions of the database's driver propagate.
        """
        return True in [layer.vacuum() for layer in self._written_to]

    def forget_pack(self) -> tuple[str, ...]:
        """Remove data that would make the next pack fail; return the names of this data."""
        return tuple(name for layer in self._written_to for name in layer.forget_pack())

    def existing(self, oids: Sequence[bytes]) -> int:
        """Return how many of these objects exist."""
        known = self._outermost.existing(oids)
        return sum(map(self._exists, oids)) if known is None else known

    def _exists(self, oid: bytes) -> bool:
        try:
            load_current(self.db.storage, oid)
        except POSKeyError:
            return False
        return True

    def time_after_all(self) -> float:
        """Return a time that is later than all transactions, in seconds since the epoch."""
        # A server's clock may be ahead of this host's.
        latest: float = TimeStamp(self.db.lastTransaction()).timeTime()
        return max(time.time(), latest + 1.0)

    def zap(self) -> None:
        """Destroy all data, blobs included, and open the empty database.

        :raises NotZapped: if the data cannot be destroyed, or some of it is left
        """
        if self.facts.zap_obstacle:
            raise NotZapped(self.facts.zap_obstacle)
        witness = self.destroy()
        self.open()
        self._check_empty(witness)

    def destroy(self) -> bytes | None:
        """Destroy all data, blobs included, and close the DB; return a destroyed object's OID."""
        directories = [_blob_directory(layer.storage) for layer in self._stack]
        witness = self._some_object()
        if not any(layer.zap(self.db) for layer in self._stack):
            self._zap_by_packing()
        for directory in directories:
            if directory is not None:
                remove_blobs(directory)
        self._is_open = False
        return witness

    def _zap_by_packing(self) -> None:
        """Empty the root, pack, and close the DB; clients of ZEO cannot destroy data otherwise."""
        with self.db.transaction() as connection:
            connection.root().clear()
        self.pack()
        self.db.close()

    def _some_object(self) -> bytes | None:
        """Return the OID of an object that the root refers to, or ``None`` if there is none."""
        with self.db.transaction() as connection:
            oids = (getattr(value, "_p_oid", None) for value in connection.root().values())
            return next((oid for oid in oids if oid is not None), None)

    def _check_empty(self, witness: bytes | None) -> None:
        # Packing invalidates no cache, so a persistent cache may still contain removed objects.
        self.empty_caches()
        with self.db.transaction() as connection:
            left = len(connection.root())
        if left:
            raise NotZapped(f"{left} objects are still in the root")
        if witness is None or not self._exists(witness):
            return
        raise NotZapped(
            "old objects are still in the storage; does the server pack without collecting garbage "
            "(pack-gc)?"
        )

    def others(self) -> list[str]:
        """Return the keys in the root that belong to other applications."""
        with self.db.transaction() as connection:
            return others(connection.root())

    def forget_objects(self) -> tuple[str, ...]:
        """Make each connection empty its pickle cache when next opened; return the cache's name."""
        resetCaches()
        return (PICKLE_CACHE,)

    def own_caches(self) -> tuple[str, ...]:
        """Return the names of the client-side caches that :meth:`empty_caches` empties."""
        return (PICKLE_CACHE, *(cache for layer in self._stack for cache in layer.own_caches()))

    def empty_caches(self) -> tuple[str, ...]:
        """Empty all known client-side caches of objects or records; return the caches' names."""
        self.forget_objects()
        for layer in (*self._stack, *self._of_connections()):
            layer.empty_caches()
        return self.own_caches()

    def _of_connections(self) -> list[StorageType]:
        """Return the storages that each connection has for itself."""
        storages: list[Any] = []
        self.db._connectionMap(lambda connection: storages.append(connection._normal_storage))
        layers = (layer for storage in storages for layer in typed(storage).stack())
        return [layer for layer in layers if layer.of_connection]

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[str, ...]:
        """Remove *blobs* from every known client-side cache; return the names of the caches.

        Other blobs stay, because other clients may read them from the same directory.
        """
        if not blobs:
            return ()
        return tuple(cache for layer in self._stack for cache in layer.forget_blobs(blobs))

    def start_files(self) -> list[Path]:
        """Return the files that the DB writes when it is closed, to open faster next time."""
        return [path for layer in self._stack for path in layer.start_files()]

    def disk_size(self, *, blobs: bool) -> DiskSize:
        """Return the bytes that the database takes on disk, as far as its storage knows them.

        A closed storage knows nothing.  Blobs are included only if *blobs* is true, because adding
        up many files takes long.
        """
        return self._outermost.disk_size(blobs=blobs) if self._is_open else DiskSize()

    def cache_use(self) -> CacheUse | None:
        """Return the hits and misses of the storage's cache; ``None`` if nothing counts them."""
        use = self._outermost.combined_cache_use()
        if use is None:
            return None
        own = (layer.cache_use() for layer in self._of_connections())
        return sum(filter(None, own), use)

    def _versions(self) -> dict[str, str]:
        versions = installed_versions(("ZODB", "persistent", "BTrees", "transaction"))
        for layer in self._stack:
            versions.update(layer.versions())
        return versions


def _python() -> dict[str, str]:
    version = platform.python_version()
    if sys.implementation.name == "pypy":
        number = ".".join(map(str, sys.implementation.version[:3]))
        version = f"PyPy {number} (Python {version})"
    return {
        "python_implementation": sys.implementation.name,
        "python_version": version,
        "python_compiler": " ".join(platform.python_compiler().split()),
        "python_executable": sys.executable,
    }


def _merged(rules: _Rules, facts: Sequence[StorageInfo]) -> dict[str, Any]:
    return {name: rule([getattr(one, name) for one in facts]) for name, rule in rules.items()}


def _undoes(layer: StorageType) -> bool:
    supports_undo = getattr(layer.storage, "supportsUndo", None)
    return bool(supports_undo and supports_undo())


def _keeps_history(layer: StorageType) -> bool:
    """Return whether a storage keeps old revisions, itself or where it writes, until a pack."""
    known = layer.facts().keeps_history
    if known is None:
        keepers = layer.keepers()
        known = _undoes(layer) or (bool(keepers) and all(map(_keeps_history, keepers)))
    return known


def _blob_directory(storage: Any) -> str | None:
    """Return the directory in which a storage keeps or caches blobs, or ``None``."""
    if getattr(storage, "shared_blob_dir", False):  # the ZEO server removes blobs when it packs
        return None
    holder = getattr(storage, "blobhelper", storage)
    directory: str | None = getattr(getattr(holder, "fshelper", None), "base_dir", None)
    return directory
