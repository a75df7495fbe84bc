"""Sections of storages, plain and wrapped."""

from __future__ import annotations

FILE = "<filestorage {name}>\npath $scratch/{name}x.fs\n</filestorage>\n"
FS = FILE.replace(" {name}", "").replace("{name}", "")
MAPPING = "<mappingstorage/>\n"


def in_(section: str, *inner: str) -> str:
    return f"<{section}>\n{''.join(inner)}</{section}>\n"


def zlib(inner: str) -> str:
    return in_("zlibstorage", inner)


def blobs(inner: str) -> str:
    return in_("blobstorage", "blob-dir $scratch/blobs\n", inner)


def demo(*inner: str) -> str:
    return in_("demostorage", *inner)
