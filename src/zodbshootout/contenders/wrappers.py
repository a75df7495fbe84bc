from __future__ import annotations

from zodbshootout.contenders.kind import SectionKind


class BlobStorageSection(SectionKind):
    """``<blobstorage>``."""

    section_classes = ("ZODB.config.BlobStorage",)
    storage_name = "BlobStorage"
    transparent = True


class ZlibStorageSection(SectionKind):
    """``<zlibstorage>``."""

    section_classes = ("zc.zlibstorage.ZConfig",)
    storage_name = "ZlibStorage"
    transparent = True


class ServerZlibStorageSection(SectionKind):
    """``<serverzlibstorage>``."""

    section_classes = ("zc.zlibstorage.ZConfigServer",)
    storage_name = "ServerZlibStorage"
    transparent = True


# ZConfigServer may derive from ZConfig: the more special class comes first.
KINDS = (ServerZlibStorageSection, ZlibStorageSection, BlobStorageSection)
