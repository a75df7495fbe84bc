from __future__ import annotations

from collections.abc import Sequence

from zodbshootout.client.storage_info import Cache, Sharing
from zodbshootout.client.storages.open_storage import OpenStorage


class OpenDemoStorage(OpenStorage):
    """DemoStorage: changes over a base that stays as it is; by default they stay in memory."""

    storage_class = "ZODB.DemoStorage.DemoStorage"
    wraps = ("changes", "base")
    # Its changes can be in a file that one DB at a time can open; it has no other means of
    # learning what another DB has changed there.
    sharing = Sharing.EXCLUSIVE
    zap_obstacle = "its base stays as it is"

    def caches_left(self) -> tuple[Cache, ...]:
        return ()

    def pack_flaw(self) -> str | None:
        if hasattr(self.storage, "_temporary_changes"):
            return None
        # ZODB 6.4 does not set it where it looks for it later.
        return "DemoStorage cannot pack changes that are kept elsewhere than in its memory"

    def keepers(self) -> Sequence[OpenStorage]:
        changes, _ = self.inner
        return (changes,)


STORAGES = (OpenDemoStorage,)
