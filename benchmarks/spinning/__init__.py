"""A storage that is slower by a known part, for configurations: ``%import benchmarks.spinning``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ZODB.config import BaseConfig
from ZODB.MappingStorage import MappingStorage

SLOWED = ("load", "loadBefore", "store", "tpc_begin", "tpc_vote", "tpc_finish", "new_oid")


class SpinningStorage(MappingStorage):  # type: ignore[misc]
    """A MappingStorage that keeps the processor busy for some time after each call."""

    def __init__(self, more: float) -> None:
        """Have each call take 1 + *more* times as long as it did."""
        super().__init__()
        for name in SLOWED:
            setattr(self, name, _slowed(getattr(self, name), more))


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
    """What ZConfig makes of ``<spinningstorage>``."""

    def open(self) -> SpinningStorage:
        """Open the storage."""
        return SpinningStorage(self.config.more)
