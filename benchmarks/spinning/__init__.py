"""Storages made slower by a known fraction, for configurations: ``%import benchmarks.spinning``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from ZODB.config import BaseConfig
from ZODB.MappingStorage import MappingStorage

SLOWED = ("load", "loadBefore", "store", "tpc_begin", "tpc_vote", "tpc_finish", "new_oid")


class SpinningStorage(MappingStorage):  # type: ignore[misc]
    """A MappingStorage that keeps the processor busy for some time after each call."""


def slow_down(storage: Any, more: float, calls: Iterable[str] = SLOWED) -> None:
    """Make each of these *calls* take 1 + *more* times as long."""
    for name in calls:
        setattr(storage, name, _slowed(getattr(storage, name), more))


def _slowed(call: Callable[..., Any], more: float) -> Callable[..., Any]:
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
    """The section ``<spinningstorage>``."""

    def open(self) -> Any:
        """Open the storage inside, or else a MappingStorage."""
        inner = self.config.storage
        storage = SpinningStorage() if inner is None else inner.open()
        slow_down(storage, self.config.more, self.config.calls or SLOWED)
        return storage
