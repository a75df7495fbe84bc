from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ZODB.POSException import POSKeyError

from zodbshootout.client.reachability import Address, Requirement, connect, is_here, printable
from zodbshootout.client.storage_types import (
    CACHE,
    DATABASE,
    SERVER,
    BlobRevision,
    PrivateSection,
    StorageType,
    remove_cached_blobs,
    size_of_blobs,
)
from zodbshootout.model.specification import ClientKind
from zodbshootout.model.storage_facts import (
    OPERATING_SYSTEM,
    Advice,
    CacheUse,
    DiskSize,
    Durability,
    Limit,
    Link,
    Promise,
    StorageInfo,
    server_cache,
)

BEHIND_SERVER: Promise = (Durability.UNKNOWN, "behind a ZEO server")
"""The promise of a ClientStorage: a server does not tell clients which storage is behind it."""
_PRIVATE = (
    PrivateSection(
        ("zeoclient", "clientstorage"),
        paths=("cache-path", "var", "blob-dir"),
        left_out=("username", "password", "realm"),
        values={"server": f"${{{SERVER}}}", "storage": DATABASE},
        # The cache file is var/CLIENT-STORAGE.zec; var defaults to the current directory.
        values_with={"client": {"var": "${scratch}", "client": CACHE}},
        server="zeoserver",
        location=("server",),
        database="storage",
    ),
    PrivateSection(
        ("ssl",),
        left_out=("password-function", "server-hostname"),
        values={
            "certificate": f"${{{SERVER}_certificate}}",
            "key": f"${{{SERVER}_key}}",
            "authenticate": f"${{{SERVER}_authority}}",
        },
    ),
)
_ONE_LOOP = Limit(
    "ClientStorage: each DB runs its own event loop, and a process patched by "
    "gevent can have only one; use --threads shared",
    client_kinds=frozenset({ClientKind.GREENLET}),
    databases=2,
    of_process=True,
)
_ONE_DB_FOR_A_FILE = Limit(
    "ClientStorage: its persistent cache file serves one DB at a time; "
    "use --threads shared, or -c 1",
    databases=2,
)


class ClientStorageType(StorageType):
    """ZEO's ClientStorage, with its cache in a temporary or a persistent file."""

    storage_class = "ZEO.ClientStorage.ClientStorage"
    section_classes = ("ZODB.config.ZEOClient", "ZEO.zconfig.ClientStorageConfig")
    private = _PRIVATE
    distributions = ("ZEO", "uvloop")  # ZEO uses uvloop's event loop if it is installed
    lasting_caches = (server_cache("ZEO"), OPERATING_SYSTEM)

    @classmethod
    def requirements(cls, section: Any) -> Sequence[Requirement]:
        addresses = tuple(server.address for server in section.config.server)
        here = next(filter(is_here, addresses), None)
        # Given only a port, runzeo would listen on every interface and let everybody in.
        command = f"start one there: runzeo -a {printable(here)} -f Data.fs" if here else ""
        names = " or ".join(map(printable, addresses))
        missing = f"no ZEO server at {names}; {command or 'start one there, or name another'}"
        reads_only = any(
            str(getattr(section.config, name, False)).lower() in {"true", "yes", "on", "1"}
            for name in ("read_only", "read_only_fallback")
        )
        storage = getattr(section.config, "storage", "1")
        encryption = getattr(section.config, "ssl", None) or None
        return [_ServerOfStorage(addresses, missing, storage, reads_only, encryption)]

    @classmethod
    def advice(cls, section: Any) -> Sequence[Advice]:
        storage = getattr(section.config, "storage", "1")
        return [
            Advice(
                "ClientDisconnected: timed out waiting for connection",
                f"if the server is running, check whether it has a storage {storage!r}, whether it "
                "lets clients write, and whether it requires ssl",
            )
        ]

    @classmethod
    def server_line(cls, section: Any) -> str:  # noqa: ARG003
        return "server $db"

    def promise(self) -> Promise:
        return BEHIND_SERVER

    def link(self) -> Link:
        client = getattr(self.storage._server, "client", None)
        return Link("TLS" if getattr(client, "ssl", None) else "none")

    def facts(self) -> StorageInfo:
        setting = self._persistent_cache()
        return StorageInfo(
            limits=(_ONE_LOOP, _ONE_DB_FOR_A_FILE) if setting else (_ONE_LOOP,),
            # A ClientStorage claims to store blobs even without a directory for them.
            stores_blobs=bool(self.storage.blob_dir),
            copies_blobs=False,
            persistent_cache=setting,
        )

    def _persistent_cache(self) -> str:
        path = self.storage._cache.path
        if path is None:
            return ""
        # With "client", the name of the file also contains the storage's name.
        return "client" if path.endswith(f"-{self.storage._storage}.zec") else "cache-path"

    def start_files(self) -> Sequence[Path]:
        return [Path(self.storage._cache.path)] if self._persistent_cache() else []

    def disk_size(self, *, blobs: bool) -> DiskSize:
        # getSize() returns the size at the time of connecting.
        size = int(self.storage._call("get_info")["size"])
        shared = self.storage.blob_dir if self.storage.shared_blob_dir else None
        return DiskSize(size, size_of_blobs(shared) if blobs and shared else None)

    def own_caches(self) -> tuple[str, ...]:
        return ("ZEO client cache",)

    def empty_caches(self) -> None:
        self.storage._cache.clear()

    def forget_blobs(self, blobs: Sequence[BlobRevision]) -> tuple[str, ...]:
        if not self.storage.blob_dir or self.storage.shared_blob_dir:
            return ()
        remove_cached_blobs(self.storage.fshelper, blobs)
        return ("ZEO blob cache",)

    def existing(self, oids: Sequence[bytes]) -> int:
        # Send all requests before waiting for the first answer, to save round trips.
        answers = [self.storage._call("getTid", oid, wait=False) for oid in oids]
        errors = list(map(_error_of, answers))
        for error in errors:
            if error is not None and not isinstance(error, POSKeyError):
                raise error
        return errors.count(None)

    def cache_use(self) -> CacheUse:
        # ZEO counts only hits: accesses to records that the cache contains.
        return CacheUse(hits=self.storage._cache.getStats()[4], misses=None)


@dataclass(frozen=True)
class _ServerOfStorage(Requirement):
    """A ZEO server that has to accept the client; a refused client would retry until a timeout."""

    reads_only: bool = False
    """Whether a read-only server suffices for the client."""
    encryption: tuple[ssl.SSLContext, str | None] | None = field(default=None, compare=False)
    """The context of the section's ``<ssl>``, and the name to expect in the certificate."""

    def obstacle(self) -> str | None:
        missing = super().obstacle()
        if missing:
            return missing
        answers = []
        for address in self.addresses:
            with suppress(Exception):  # opening the storage reports other errors
                answers.append(self._refusal(address))
        return None if None in answers else next(iter(answers), None)

    def _refusal(self, address: Address) -> str | None:
        """Return why the server at *address* refuses the client, or ``None`` if it does not."""
        server = f"the ZEO server at {printable(address)}"
        try:
            with self._connected(address) as connection:
                error, details = _error_of_registering(connection, self.storage, self.reads_only)
        except ssl.SSLCertVerificationError as flaw:
            return (
                f"{server}: certificate verify failed: {flaw.verify_message.rstrip('.')}; see "
                "'authenticate', 'check-hostname' and 'server-hostname' in the client's <ssl>"
            )
        except ssl.SSLError as flaw:
            return f"{server}: {_reason(flaw)}; see the client's <ssl>"
        if "unknown storage" in str(details):
            return (
                f"{server} has no storage {self.storage!r}; write 'storage NAME' with a name from "
                "its configuration"
            )
        if error.endswith("ReadOnlyError"):
            return f"{server} is read-only; write 'read-only true' in its client's section"
        return None

    def _connected(self, address: Address) -> socket.socket:
        """Connect as ZEO's client does, with the section's own encryption.

        :raises OSError: if the server accepts no connection, or either side refuses the other's
            certificate
        """
        connection = connect(address)
        if self.encryption is None:
            return connection
        context, name = self.encryption
        host = address[0] if isinstance(address, tuple) else None
        return context.wrap_socket(connection, server_hostname=name or host)


def _reason(error: ssl.SSLError) -> str:
    """Return the reason for which a handshake failed."""
    if error.reason == "WRONG_VERSION_NUMBER":
        return "it does not encrypt"
    return (error.reason or str(error)).replace("_", " ").lower()


def _error_of(answer: Any) -> Exception | None:
    """Wait for an answer; return its exception, or ``None``."""
    try:
        answer.result()
    except Exception as error:  # noqa: BLE001 - raised once all answers are there
        return error
    return None


def _error_of_registering(
    connection: socket.socket,
    storage: str,
    reads_only: bool,
) -> tuple[str, object]:
    """Register with a server as ZEO's client does; return the error, or ``("", None)``."""
    from ZEO.asyncio.marshal import decoder, encoder

    with connection.makefile("rwb") as stream:
        protocol = _received(stream)
        register = encoder(protocol)(1, False, "register", (storage, reads_only))
        for message in (protocol, register):
            stream.write(len(message).to_bytes(4, "big") + message)
        stream.flush()
        number = 0
        while number != 1:
            number, flags, _, result = decoder(protocol)(_received(stream))
    return result if flags else ("", None)


def _received(stream: Any) -> bytes:
    size = int.from_bytes(stream.read(4), "big")
    return bytes(stream.read(size))


STORAGES = (ClientStorageType,)
