from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from zodbshootout.client.storage_info import Cache, Limit, Sharing
from zodbshootout.client.storages.storage_type import (
    StorageType,
    inner_sections,
    known_types,
    nested_sections,
    written_sections,
)


class DemoStorageType(StorageType):
    """DemoStorage: changes over a base that stays as it is; by default they stay in memory."""

    storage_class = "ZODB.DemoStorage.DemoStorage"
    section_classes = ("ZODB.config.DemoStorage",)
    wraps = ("changes", "base")
    # Its changes can be in a file that one DB at a time can open; it cannot learn what another DB
    # has changed there.
    sharing = Sharing.EXCLUSIVE
    prefetches = False
    zap_obstacle = "its base stays as it is"

    @classmethod
    def keeping_sections(cls, section: Any) -> Sequence[Any]:
        return [inner for inner in inner_sections(section) if inner.name == "changes"]

    @classmethod
    def sharing_of(cls, section: Any) -> Sharing:
        return cls.sharing if cls.keeping_sections(section) else Sharing.VOLATILE

    @classmethod
    def limits(cls, section: Any) -> Sequence[Limit]:
        written = chain.from_iterable(map(written_sections, cls.keeping_sections(section)))
        used = chain.from_iterable(map(nested_sections, inner_sections(section)))
        never = [
            Limit(
                f"DemoStorage cannot keep its changes in {storage_type.storage_name()}; have it "
                "keep them in a <filestorage changes>"
            )
            for storage_type, _ in known_types(written)
            if not storage_type.holds_changes
        ]
        alone = [
            Limit(
                f"DemoStorage uses one {storage_type.storage_name()} in all threads, which that is "
                "not made for; use -c 1",
                sharers=2,
            )
            for storage_type, _ in known_types(used)
            if not storage_type.serves_threads
        ]
        return [*never, *alone]

    def caches_left(self) -> tuple[Cache, ...]:
        return ()

    def pack_flaw(self) -> str | None:
        if hasattr(self.storage, "_temporary_changes"):
            return None
        # ZODB 6.4 sets it only for changes in memory, but always reads it to pack.
        return "DemoStorage cannot pack changes that are kept elsewhere than in its memory"

    def keepers(self) -> Sequence[StorageType]:
        changes, _ = self.inner
        return (changes,)


STORAGES = (DemoStorageType,)
