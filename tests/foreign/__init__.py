"""Storages that zodbshootout does not know, for configurations of tests."""

from __future__ import annotations

from typing import Any

import zope.interface
from ZODB.config import BaseConfig
from ZODB.MappingStorage import MappingStorage


class ForeignStorage:
    """A storage that delegates everything to another one."""

    def __init__(self, base: Any) -> None:
        self.base = base
        zope.interface.directlyProvides(self, zope.interface.providedBy(base))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.base, name)

    def __len__(self) -> int:
        return len(self.base)


class ForeignSection(BaseConfig):  # type: ignore[misc]
    def open(self) -> ForeignStorage:
        return ForeignStorage(self.config.base.open())


class MemoryStorage:
    """A storage in the memory of a process, which keeps its data when it is closed."""

    _kept = MappingStorage()

    def __init__(self) -> None:
        zope.interface.directlyProvides(self, zope.interface.providedBy(self._kept))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kept, name)

    def __len__(self) -> int:
        return len(self._kept)

    def close(self) -> None:
        """Leave the data open for the next storage of this process."""


class MemorySection(BaseConfig):  # type: ignore[misc]
    def open(self) -> MemoryStorage:
        return MemoryStorage()
