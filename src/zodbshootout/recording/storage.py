"""A storage whose connections are recorded; everything else it leaves to the storage inside."""

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
    """Provides what the storage inside provides, and connections that are recorded."""

    def __init__(self, storage: Any, adapted: Any, recorder: Recorder) -> None:
        self._recorded = storage
        self._recorded_mvcc = adapted
        self._recorder = recorder
        directlyProvides(self, IMVCCStorage, providedBy(storage))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_recorded"):  # before they are set, by copy
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
        """Write the events that are left, and close the storage."""
        self._recorder.close()
        self._recorded_mvcc.close()


class AdaptedStorage(RecordedStorage):
    """A storage that is adapted as ZODB would do, which knows no connections by itself.

    Its methods make it an IMVCCStorage; ZODB calls those of its instances instead.
    """

    def sync(self, force: bool = True) -> None:
        """Do nothing."""

    def poll_invalidations(self) -> list[bytes]:
        """Return no oids."""
        return []

    def release(self) -> None:
        """Do nothing."""


def wrap(storage: Any, recorder: Recorder) -> RecordedStorage:
    """Return a storage whose connections are recorded."""
    if IMVCCStorage.providedBy(storage):
        return RecordedStorage(storage, storage, recorder)
    return AdaptedStorage(storage, MVCCAdapter(storage), recorder)


def facts_of(storage: Any) -> dict[str, Any]:
    """Return facts about a storage and the software, without names of the application's."""
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
