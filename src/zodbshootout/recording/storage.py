"""A wrapper that records a storage's connections, and delegates everything else to the storage."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ZODB.interfaces import IMVCCStorage
from ZODB.mvccadapter import MVCCAdapter
from zope.interface import directlyProvides, providedBy

from zodbshootout.recording.connection import recorded
from zodbshootout.recording.recorder import Recorder

_DISTRIBUTIONS = ("ZODB", "ZEO", "RelStorage")


class RecordedStorage:
    """Has the interfaces and attributes of a storage, but records its connections."""

    def __init__(self, storage: Any, adapted: Any, recorder: Recorder) -> None:
        self._recorded = storage
        self._recorded_mvcc = adapted
        self._recorder = recorder
        directlyProvides(self, IMVCCStorage, providedBy(storage))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_recorded"):  # copy looks up attributes before __init__
            raise AttributeError(name)
        try:
            return getattr(self._recorded, name)
        except AttributeError:
            return getattr(self._recorded_mvcc, name)

    def __len__(self) -> int:
        return len(self._recorded)

    def new_instance(self) -> Any:
        """Return the storage of a new connection."""
        instance = self._recorded_mvcc.new_instance()
        log = self._recorder.log()
        return instance if log is None else recorded(instance, log, self._recorder)

    def close(self) -> None:
        """Write the remaining events, and close the storage."""
        self._recorder.close()
        self._recorded_mvcc.close()


class AdaptedStorage(RecordedStorage):
    """A wrapper for a storage that lacks MVCC.  It uses the adapter that ZODB would use.

    IMVCCStorage requires the methods below.  ZODB calls them only on results of new_instance().
    """

    def sync(self, force: bool = True) -> None:
        """Do nothing."""

    def poll_invalidations(self) -> list[bytes]:
        """Return no OIDs."""
        return []

    def release(self) -> None:
        """Do nothing."""


def wrap(storage: Any, recorder: Recorder) -> RecordedStorage:
    """Return a storage whose connections are recorded."""
    if IMVCCStorage.providedBy(storage):
        return RecordedStorage(storage, storage, recorder)
    return AdaptedStorage(storage, MVCCAdapter(storage), recorder)


def facts_of(storage: Any) -> dict[str, Any]:
    """Return facts about a storage and the software, but no names chosen by the application."""
    kind = type(storage)
    facts: dict[str, Any] = {
        "storage": f"{kind.__module__}.{kind.__qualname__}",
        "python": sys.version.split()[0],
    }
    for name in _DISTRIBUTIONS:
        with suppress(PackageNotFoundError):
            facts[name] = version(name)
    for name, count in (("objects", storage.__len__), ("bytes", storage.getSize)):
        with suppress(Exception):
            facts[name] = int(count())
    return facts
