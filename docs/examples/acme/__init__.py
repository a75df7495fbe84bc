"""A storage for the examples: a FileStorage with a cache, which counts its hits."""

from __future__ import annotations

from typing import Any

from ZODB.config import BaseConfig
from ZODB.FileStorage import FileStorage


class AcmeStorage(FileStorage):
    """Keeps each record that it has loaded."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.cache: dict[tuple[bytes, bytes], Any] = {}
        self.hits = self.misses = 0

    def loadBefore(self, oid: bytes, tid: bytes) -> Any:  # noqa: N802
        if (oid, tid) in self.cache:
            self.hits += 1
        else:
            self.misses += 1
            self.cache[oid, tid] = super().loadBefore(oid, tid)
        return self.cache[oid, tid]


class AcmeSection(BaseConfig):
    """An ``<acme>`` section."""

    def open(self) -> AcmeStorage:
        return AcmeStorage(self.config.path)
