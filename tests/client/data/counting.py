"""A storage that counts its records."""

from __future__ import annotations

from typing import Any

from ZODB.MappingStorage import MappingStorage


class CountingStorage(MappingStorage):  # type: ignore[misc]
    """A storage that counts the records that each transaction stores."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[int] = []

    def tpc_finish(self, transaction: Any, func: Any = lambda tid: None) -> Any:
        self.stored.append(len(self._tdata))
        return super().tpc_finish(transaction, func)
