from __future__ import annotations

from zodbshootout.client.storage_types import LocalStorageType


class BeforeStorageType(LocalStorageType):
    """zc.beforestorage, which shows a storage as it was at a given time."""

    storage_class = "zc.beforestorage.Before"
    section_classes = ("zc.beforestorage.ZConfig",)
    wraps = ("storage",)
    distributions = ("zc.beforestorage",)
    lasting_caches = ()


STORAGES = (BeforeStorageType,)
