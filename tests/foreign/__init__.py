"""A wrapper of storages that zodbshootout does not know, for configurations of tests."""

from __future__ import annotations

from typing import Any

import zope.interface
from ZODB.config import BaseConfig


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
