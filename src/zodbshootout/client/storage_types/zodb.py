"""The storages of ZODB and tempstorage, and the wrapper that records an application."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from zodbshootout.client.storage_types import (
    LocalStorageType,
    PrivateSection,
    StorageType,
    inner_sections,
    remove_blobs,
    size_of_blobs,
)
from zodbshootout.model.outcome import Unsupported
from zodbshootout.model.storage_facts import (
    EMPTY_AND_READ_ONLY,
    OPERATING_SYSTEM,
    Advice,
    DiskSize,
    Durability,
    Limit,
    Sharing,
    StorageInfo,
)


class FileStorageType(LocalStorageType):
    """FileStorage: an append-only file with an index in memory, and without a cache of records."""

    storage_class = "ZODB.FileStorage.FileStorage.FileStorage"
    section_classes = ("ZODB.config.FileStorage",)
    private = (PrivateSection(("filestorage",), paths=("path", "blob-dir")),)
    sharing = Sharing.EXCLUSIVE
    durability = Durability.SYNCED
    lasting_caches = (OPERATING_SYSTEM,)

    @classmethod
    def mistake(cls, section: Any) -> tuple[str, str] | None:
        return None if section.config.path else ("path", "path: name the file of the database")

    @classmethod
    def settle(cls, section: Any) -> None:
        if section.config.read_only and not Path(section.config.path).exists():
            raise Unsupported(EMPTY_AND_READ_ONLY)

    def disk_size(self, *, blobs: bool) -> DiskSize:
        directory = self.storage.blob_dir if blobs else None
        return DiskSize(int(self.storage.getSize()), directory and size_of_blobs(directory))

    def start_files(self) -> Sequence[Path]:
        return [] if self.storage.isReadOnly() else [Path(f"{self.storage.getName()}.index")]

    def facts(self) -> StorageInfo:
        return StorageInfo(collects_garbage=bool(self.storage._pack_gc))

    def zap(self, db: Any) -> bool:
        db.close()
        self.storage.cleanup()
        if self.storage.blob_dir:
            remove_blobs(f"{self.storage.blob_dir}.old")  # blobs that packing removed
        return True


class MappingStorageType(LocalStorageType):
    """MappingStorage: dictionaries in the memory of one process."""

    storage_class = "ZODB.MappingStorage.MappingStorage"
    section_classes = ("ZODB.config.MappingStorage",)
    private = (PrivateSection(("mappingstorage",)),)
    sharing = Sharing.VOLATILE
    durability = Durability.IN_MEMORY
    lasting_caches = ()

    def facts(self) -> StorageInfo:
        return StorageInfo(keeps_history=True, collects_garbage=True)


class TemporaryStorageType(MappingStorageType):
    """tempstorage: like a MappingStorage, without old revisions."""

    storage_class = "tempstorage.TemporaryStorage.TemporaryStorage"
    section_classes = ("tempstorage.config.TemporaryStorage",)
    private = (PrivateSection(("temporarystorage",)),)
    distributions = ("tempstorage",)

    def facts(self) -> StorageInfo:
        return StorageInfo(keeps_history=False, collects_garbage=True)


class DemoStorageType(LocalStorageType):
    """DemoStorage: changes over an unchanged base; by default the changes stay in memory."""

    storage_class = "ZODB.DemoStorage.DemoStorage"
    section_classes = ("ZODB.config.DemoStorage",)
    private = (PrivateSection(("demostorage",)),)
    wraps = ("changes", "base")
    # The changes can be in a file that only one DB at a time can open.  A DB cannot learn of
    # changes that another DB makes.
    sharing = Sharing.EXCLUSIVE
    durability = Durability.IN_MEMORY
    lasting_caches = ()

    @classmethod
    def keeping_sections(cls, section: Any) -> Sequence[Any]:
        return [inner for inner in inner_sections(section) if inner.name == "changes"]

    @classmethod
    def advice(cls, section: Any) -> Sequence[Advice]:  # noqa: ARG003
        # ZEO's storages and RelStorage lack an attribute that DemoStorage needs for its changes.
        advice = "DemoStorage cannot keep its changes in this storage; use a <filestorage changes>"
        return [Advice("AttributeError: .*'_lock'", advice)]

    def facts(self) -> StorageInfo:
        limits = (
            Limit(
                f"DemoStorage uses one {layer.name} in all threads, which {layer.name} does not "
                "support; use -c 1",
                sharers=2,
            )
            for layer in self.stack()
            if not layer.serves_threads
        )
        # ZODB 6.4 sets this attribute only for changes in memory, but always reads it to pack.
        can_pack = hasattr(self.storage, "_temporary_changes")
        return StorageInfo(
            limits=tuple(limits),
            zap_obstacle=f"{self.name}: its base stays as it is",
            pack_flaw=None
            if can_pack
            else "DemoStorage cannot pack changes that are not in memory",
        )

    def keepers(self) -> Sequence[StorageType]:
        changes, _ = self.inner
        return (changes,)


class BlobStorageType(LocalStorageType):
    """The wrapper that keeps blobs in a directory, for storages that cannot keep them."""

    storage_class = "ZODB.blob.BlobStorage"
    section_classes = ("ZODB.config.BlobStorage",)
    private = (PrivateSection(("blobstorage",), paths=("blob-dir",)),)
    wraps = ("_BlobStorage__storage",)  # there is no public name
    transparent = True
    lasting_caches = (OPERATING_SYSTEM,)

    def disk_size(self, *, blobs: bool) -> DiskSize:
        size = super().disk_size(blobs=False)
        return replace(size, blobs=size_of_blobs(self.storage.fshelper.base_dir)) if blobs else size

    def facts(self) -> StorageInfo:
        (wrapped,) = self.inner
        flaw = f"BlobStorage cannot pack {wrapped.name}, which lacks the lock that packing needs"
        return StorageInfo(
            # A BlobStorage reads the attribute _tid of the storage that it wraps.
            stores_blobs=hasattr(self.storage, "_tid"),
            pack_flaw=None if hasattr(self.storage, "_lock") else flaw,
        )


class RecordedStorageType(LocalStorageType):
    """The wrapper that records what an application does."""

    storage_class = "zodbshootout.recording.storage.RecordedStorage"
    section_classes = ("zodbshootout.recording.section.RecordingFactory",)
    private = (PrivateSection(("recording",), paths=("path", "while-exists")),)
    wraps = ("_recorded",)
    transparent = True
    lasting_caches = ()


STORAGES = (
    FileStorageType, MappingStorageType, TemporaryStorageType, DemoStorageType, BlobStorageType,
    RecordedStorageType,
)  # fmt: skip
