"""Storages made slower by a known fraction, for configurations: ``%import benchmarks.spinning``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ZODB.config import BaseConfig
from ZODB.MappingStorage import MappingStorage

SLOWED = ("load", "loadBefore", "store", "tpc_begin", "tpc_vote", "tpc_finish", "new_oid")


class SpinningStorage(MappingStorage):  # type: ignore[misc]
    """A MappingStorage that keeps the processor busy for a while after each call."""


def _slowed(call: Callable[..., Any], more: float) -> Callable[..., Any]:
    """Return a *call* that takes 1 + *more* times as long."""
    clock = time.perf_counter

    def slowed(*args: Any, **kwargs: Any) -> Any:
        began = clock()
        try:
            return call(*args, **kwargs)
        finally:
            now = clock()
            until = now + more * (now - began)
            while now < until:
                now = clock()

    return slowed


class SpinningSection(BaseConfig):  # type: ignore[misc]
    """The ``<spinningstorage>`` section."""

    def open(self) -> Any:
        """Open the storage inside, by default a MappingStorage."""
        inner = self.config.storage
        storage = SpinningStorage() if inner is None else inner.open()
        for name in self.config.calls or SLOWED:
            setattr(storage, name, _slowed(getattr(storage, name), self.config.more))
        return storage
