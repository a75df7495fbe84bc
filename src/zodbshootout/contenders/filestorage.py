from __future__ import annotations

from zodbshootout.client.storage_info import Sharing
from zodbshootout.contenders.kind import SectionKind


class FileStorageSection(SectionKind):
    """``<filestorage>``."""

    section_classes = ("ZODB.config.FileStorage",)
    storage_name = "FileStorage"
    sharing = Sharing.EXCLUSIVE
    prefetches = False


KINDS = (FileStorageSection,)
