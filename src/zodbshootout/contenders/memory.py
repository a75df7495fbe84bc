from __future__ import annotations

from zodbshootout.client.storage_info import Sharing
from zodbshootout.contenders.kind import SectionKind


class MappingStorageSection(SectionKind):
    """``<mappingstorage>``."""

    section_classes = ("ZODB.config.MappingStorage",)
    storage_name = "MappingStorage"
    sharing = Sharing.VOLATILE
    prefetches = False


KINDS = (MappingStorageSection,)
