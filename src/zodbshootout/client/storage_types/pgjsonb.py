from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zodbshootout.client.storage_types import (
    PRIVATE_DSN,
    SERVER_DSN,
    BlobRevision,
    PrivateSection,
    StorageType,
)
from zodbshootout.client.storage_types.relstorage_servers import (
    POSTGRESQL,
    VACUUM,
    VERSION_QUERIES,
    encryption_of,
    link_of_product,
    promise_of_product,
    size_of_product,
)
from zodbshootout.model.storage_facts import (
    OPERATING_SYSTEM,
    CacheUse,
    DiskSize,
    Limit,
    Link,
    Promise,
    StorageInfo,
    server_cache,
)

_TABLES = (
    "transaction_log",
    "object_state",
    "blob_state",
    "object_history",
    "blob_history",
    "pack_state",
    "cache_warm_stats",
)
"""The tables with data; settings and version determine which of them exist."""


_PRIVATE = PrivateSection(
    ("pgjsonb",),
    left_out=(
        # The first process that closes a DB would remove the directory that other processes use.
        "blob-temp-dir", "blob-cache-dir",
        # Without a bucket, all blobs are in PostgreSQL.
        "s3-bucket-name", "s3-prefix", "s3-endpoint-url", "s3-region", "s3-access-key",
        "s3-secret-key", "s3-use-ssl",
    ),
    values={"dsn": PRIVATE_DSN},
    server="postgresqlserver",
    location=("dsn",),
    dsn="dsn",
)  # fmt: skip


class PGJsonbStorageType(StorageType):
    """zodb-pgjsonb, with a cache for each DB and, in front of that, a cache for each connection."""

    storage_class = "zodb_pgjsonb.storage.PGJsonbStorage"
    section_classes = ("zodb_pgjsonb.config.PGJsonbStorageFactory",)
    private = (_PRIVATE,)
    serves_threads = False
    distributions = (
        "zodb-pgjsonb", "zodb-json-codec", "psycopg", "psycopg-binary", "psycopg-pool",
    )  # fmt: skip
    lasting_caches = (server_cache(POSTGRESQL), OPERATING_SYSTEM)

    def facts(self) -> StorageInfo:
        most, warmer = self.storage._instance_pool.max_size, self.storage._warmer
        reason = (
            f"{self.name}: a pool-max-size of {most} is too small, because each thread that shares "
            "the DB keeps two connections; set pool-max-size"
        )
        earliest, latest = (warmer._delay, warmer._jitter) if warmer is not None else (0.0, 0.0)
        spread = f"{earliest:g} to {earliest + latest:g}"
        return StorageInfo(
            limits=(Limit(reason, sharers=most // 2 + 1),),
            driver="psycopg",
            persistent_cache="" if warmer is None else "cache-warm-pct",
            persistent_cache_flaw=(
                f"it is loaded {spread} s after opening" if earliest + latest else ""
            ),
        )

    @classmethod
    def server_line(cls, section: Any) -> str:  # noqa: ARG003
        return SERVER_DSN

    def promise(self) -> Promise:
        return promise_of_product(POSTGRESQL, self._answers)

    def link(self) -> Link:
        try:
            with self._connected() as connection:
                encryption = encryption_of(connection)
        except Exception:  # noqa: BLE001 - the server may be gone
            return Link()
        return link_of_product(POSTGRESQL, self._answers, encryption)

    def disk_size(self, *, blobs: bool) -> DiskSize:
        in_tables = blobs and self.storage._s3_client is None
        return size_of_product(POSTGRESQL, self._answers, blobs=in_tables)

    def own_caches(self) -> tuple[str, ...]:
        return ("zodb-pgjsonb cache",)

    def empty_caches(self) -> None:
        warmer = self.storage._warmer
        if warmer is not None:
            # A thread may be waiting to fill the cache; let it fill nothing.
            warmer._target_count = 0
        self.storage.clear_caches()

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[str, ...]:
        for oid, serial in blobs:
            path = self.storage._blob_cache.get(oid, serial)
            if path is not None:
                Path(path).unlink(missing_ok=True)
        return ("zodb-pgjsonb blob cache",)

    def cache_use(self) -> CacheUse:
        shared = self.storage._shared_cache
        return CacheUse(shared.hits, shared.misses)

    def zap(self, db: Any) -> bool:
        if self.storage._s3_client is not None:
            return False  # packing removes the blobs from S3
        db.close()  # an open transaction would block TRUNCATE
        with self._connected() as connection:
            names = [
                name for name in _TABLES if _answer(connection, f"SELECT to_regclass('{name}')")
            ]
            connection.execute(f"TRUNCATE {', '.join(names)}")
        return True

    def run_sql(self, statements: Sequence[str]) -> bool:
        with self._connected() as connection:
            for statement in statements:
                connection.execute(statement)
        return True

    def vacuum(self) -> bool:
        with self._connected() as connection:
            connection.autocommit = True
            connection.execute(VACUUM)
        return True

    def versions(self) -> dict[str, str]:
        answers = self._answers(VERSION_QUERIES[POSTGRESQL])
        server = {POSTGRESQL: answers[0]} if answers else {}
        return {**super().versions(), **server}

    def _answers(self, *queries: str) -> list[str] | None:
        """Return one value for each query, or ``None`` if any query fails."""
        try:
            with self._connected() as connection:
                return [str(_answer(connection, query)) for query in queries]
        except Exception:  # noqa: BLE001 - a query may be forbidden, or the server gone
            return None

    def _connected(self) -> Any:
        """Return a new connection; as a context manager, it commits and closes itself."""
        import psycopg

        return psycopg.connect(self.storage._dsn)


class PGJsonbInstanceType(StorageType):
    """The instance of zodb-pgjsonb's storage that one connection uses; it has its own cache."""

    storage_class = "zodb_pgjsonb.instance.PGJsonbStorageInstance"
    of_connection = True

    def empty_caches(self) -> None:
        self.storage._load_cache.clear()

    def cache_use(self) -> CacheUse:
        # A load that misses this cache counts as a hit or a miss of the DB's cache.
        return CacheUse(self.storage._load_cache.hits, 0)


def _answer(connection: Any, query: str) -> Any:
    return connection.execute(query).fetchone()[0]


STORAGES = (PGJsonbStorageType, PGJsonbInstanceType)
