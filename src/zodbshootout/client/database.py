"""Open the DB of a contender, and operate on its storages and their caches."""

from __future__ import annotations

import functools
import io
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
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

    def info(self) -> StorageInfo:
        """Return everything that is known about the open storage."""
        return StorageInfo(
            storage_name=self.storage_name,
            sharing=self.sharing,
            promise=self._outermost.promise(),
            limits=tuple(limit for layer in self._stack for limit in layer.limits()),
            persistent_cache=_first(layer.persistent_cache() for layer in self._stack) or "",
            persistent_cache_flaw=(
                _first(layer.persistent_cache_flaw() for layer in self._stack) or ""
            ),
            zap_obstacle=self.zap_obstacle,
            prefetches=self._prefetches(),
            stores_blobs=self.stores_blobs,
            read_only=self.read_only,
            retry_flaw=self.retry_flaw,
            resolution_flaw=_first(layer.resolution_flaw() for layer in self._written_to),
            pack_flaw=self.pack_flaw(),
            keeps_history=self.keeps_history,
            undoes=self._outermost.undoes(),
            undo_flaw=_first(layer.undo_flaw() for layer in self._written_to),
            caches_left=self.caches_left(),
            storage_classes=tuple(qualified(type(layer.storage)) for layer in self._stack),
            driver=_first(layer.driver() for layer in self._stack) or "",
            versions=self._versions(),
            python=_python(),
            corrections=tuple(text for layer in self._stack for text in layer.corrections()),
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

    @property
    def retry_flaw(self) -> str | None:
        """The reason why a transaction cannot be retried after a conflict, or ``None``."""
        return _first(layer.retry_flaw() for layer in self._written_to)

    @property
    def sharing(self) -> Sharing:
        """The number of DBs that can share the data."""
        if self.specification.in_memory:
            return Sharing.VOLATILE
        return narrowest(layer.sharing for layer in self._written_to)

    @property
    def storage_name(self) -> str:
        """The names of the storages down to the first that is not a transparent wrapper."""
        layer = self._outermost
        names = [layer.name]
        while layer.transparent and layer.inner:
            (layer,) = layer.inner
            names.append(layer.name)
        return " over ".join(names)

    @property
    def read_only(self) -> bool:
        """Whether the storage accepts no writes."""
        return any(layer.storage.isReadOnly() for layer in self._written_to)

    @property
    def stores_blobs(self) -> bool:
        """Whether the storage can store blobs."""
        return bool(IBlobStorage.providedBy(self.db.storage)) and all(
            layer.keeps_blobs() for layer in self._written_to
        )

    @property
    def knows_caches(self) -> bool:
        """Whether the type of every storage in the stack is known.

        If not, :meth:`empty_caches` may miss a cache, and only :meth:`reopen` can empty it.
        """
        return all(type(layer) is not StorageType for layer in self._stack)

    def run_sql(self, statements: Sequence[str]) -> None:
        """Run SQL statements.

        :raises CheckFailed: if a statement fails, or the storage has no SQL database
        """
        try:
            ran = any(layer.run_sql(statements) for layer in self._written_to)
        except Exception as error:
            raise CheckFailed(f"sql: {describe(error)}") from error
        if not ran:
            raise CheckFailed(f"sql: {self.storage_name} has no SQL database")

    def pack_flaw(self) -> str | None:
        """Return why the storage cannot be packed, or ``None`` if no reason is known."""
        if self.read_only:  # RelStorage would pack all the same
            return f"{self.storage_name} is read-only as configured here"
        return _first(layer.pack_flaw() for layer in self._written_to)

    def pack(self, until: float | None = None) -> None:
        """Remove old revisions and garbage; the storage's exceptions propagate.

        A revision is old if it was replaced before *until*; the default is :meth:`time_after_all`.
        """
        self.db.pack(self.time_after_all() if until is None else until)

    def only_prepacks(self) -> bool:
        """Return whether packing only determines what could be removed, and removes nothing."""
        return any(layer.only_prepacks() for layer in self._written_to)

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

    @property
    def keeps_history(self) -> bool:
        """Whether the storage keeps old revisions until it is packed."""
        return self._outermost.keeps_history()

    @property
    def copies_blobs(self) -> bool:
        """Whether ``copyTransactionsFrom`` copies the files of blobs."""
        return all(layer.copies_blobs for layer in self._written_to)

    def collects_garbage(self) -> bool | None:
        """Return whether packing removes unreachable objects; ``None`` if that is unknown."""
        return self._outermost.collects_garbage()

    @property
    def zap_obstacle(self) -> str | None:
        """The reason why the data cannot be destroyed, if one is known."""
        if self.read_only:
            return "it is configured to be read-only"
        fixed = (layer for layer in self._stack if layer.zap_obstacle)
        return next((f"{layer.name}: {layer.zap_obstacle}" for layer in fixed), None)

    def zap(self) -> None:
        """Destroy all data, blobs included, and open the empty database.

        :raises NotZapped: if the data cannot be destroyed, or some of it is left
        """
        if self.zap_obstacle:
            raise NotZapped(self.zap_obstacle)
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

    def caches_left(self) -> tuple[str, ...]:
        """Return the names of the caches that still hold records after :meth:`empty_caches`."""
        # A DemoStorage may wrap more storages now than when it was opened.
        stack = typed(self.db.storage).stack()
        return tuple(dict.fromkeys(cache for layer in stack for cache in layer.caches_left()))

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


def _first(answers: Iterable[str | None]) -> str | None:
    return next(filter(None, answers), None)


def _blob_directory(storage: Any) -> str | None:
    """Return the directory in which a storage keeps or caches blobs, or ``None``."""
    if getattr(storage, "shared_blob_dir", False):  # the ZEO server removes blobs when it packs
        return None
    holder = getattr(storage, "blobhelper", storage)
    directory: str | None = getattr(getattr(holder, "fshelper", None), "base_dir", None)
    return directory
