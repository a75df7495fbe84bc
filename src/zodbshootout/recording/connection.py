"""Record the calls to a connection's storage."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ZODB.POSException import ConflictError
from zope.interface import directlyProvides, providedBy

from zodbshootout.recording.chunks import NONE, Kind
from zodbshootout.recording.recorder import Log, Recorder, clock

_LOAD, _STORE, _STORE_RESOLVABLE, _BEGIN, _BEGIN_ALL, _END = map(
    int, (Kind.LOAD, Kind.STORE, Kind.STORE_RESOLVABLE, Kind.BEGIN, Kind.BEGIN_ALL, Kind.END)
)  # looking up an Enum member takes as long as noting an event
_COUNTED = (list, tuple, set, frozenset, dict)
_Describe = Callable[[tuple[Any, ...], Any], tuple[bytes, int, bytes]]
"""A function that returns a call's OID, number and serial, given its arguments and result."""

_CALLS: Mapping[str, tuple[Kind, _Describe]] = {
    "loadBlob": (Kind.LOAD_BLOB, lambda args, path: (args[0], _size_of(path), args[1])),
    "new_oid": (Kind.NEW_OID, lambda _, oid: (oid, 0, NONE)),
    "tpc_begin": (Kind.TPC_BEGIN, lambda *_: (NONE, 0, NONE)),
    "checkCurrentSerialInTransaction": (Kind.READ_CURRENT, lambda args, _: (args[0], 0, args[1])),
    "tpc_vote": (
        Kind.VOTE,
        lambda _, resolved: (NONE, len(resolved) if isinstance(resolved, _COUNTED) else 0, NONE),
    ),
    "tpc_finish": (Kind.FINISH, lambda _, tid: (NONE, 0, tid or NONE)),
    "tpc_abort": (Kind.ABORT, lambda *_: (NONE, 0, NONE)),
}
"""The calls that :func:`_noted` handles, each with its kind and a function to describe it."""
_WHILE_RECORDING = ("load", "prefetch", "store", "storeBlob", *_CALLS)
_ALWAYS = ("sync", "poll_invalidations", "release")


class RecordedConnection:
    """Passes calls on to a storage, and notes the calls that make up a transaction.

    Create instances with :func:`recorded`, which hides the methods that the storage lacks.
    """

    def __init__(self, storage: Any, log: Log, recorder: Recorder) -> None:
        self._recorded = storage
        self._load = storage.load
        self._log = log
        self._extend: Callable[[Any], None] = log.fields.extend
        self._recorder = recorder
        self._is_recording = True
        self._is_empty = True
        self._sync_start = self._thread = self._cpu = 0
        directlyProvides(self, providedBy(storage))

    def __getattr__(self, name: str) -> Any:
        if name == "_recorded":  # copy looks up attributes before __init__
            raise AttributeError(name)
        return getattr(self._recorded, name)

    def __len__(self) -> int:
        return len(self._recorded)

    def sync(self, *force: Any) -> Any:
        self._turn()
        self._sync_start = clock()
        return self._recorded.sync(*force)

    def poll_invalidations(self, *args: Any) -> Any:
        if not self._sync_start:
            self._turn()
        start, self._sync_start = self._sync_start or clock(), 0
        if self._is_recording != self._recorder.active:
            self._switch()
        if not self._is_recording:
            return self._recorded.poll_invalidations(*args)
        try:
            oids = self._recorded.poll_invalidations(*args)
        except Exception as error:
            self._note_error(Kind.BEGIN, error, NONE, start)
            raise
        if oids is None:
            self._extend((_BEGIN_ALL, NONE, 0, NONE, start, clock()))
        else:
            self._extend((_BEGIN, NONE, len(oids), NONE, start, clock()))
        return oids

    def release(self) -> Any:
        self._turn()
        self._log.closed = True
        return self._recorded.release()

    # load() and store() are called most often, so they repeat the code of _noted(), to be faster.
    def load(self, oid: bytes, *version: str) -> Any:
        start = clock()
        try:
            loaded = self._load(oid, *version)
        except Exception as error:
            self._note_error(Kind.LOAD, error, oid, start)
            raise
        try:
            self._extend((_LOAD, oid, len(loaded[0]), loaded[1], start, clock()))
            self._is_empty = False
        except Exception as error:  # noqa: BLE001
            self._recorder.end(repr(error))
        return loaded

    def store(self, oid: bytes, serial: bytes, data: bytes, *args: Any) -> Any:
        start = clock()
        try:
            result = self._recorded.store(oid, serial, data, *args)
        except Exception as error:
            self._note_error(Kind.STORE, error, oid, start)
            raise
        self._note_store(oid, serial, data, start)
        return result

    def storeBlob(self, oid: bytes, serial: bytes, data: bytes, path: Any, *args: Any) -> Any:  # noqa: N802
        start = clock()
        size = _size_of(path)  # before the storage moves the file
        try:
            result = self._recorded.storeBlob(oid, serial, data, path, *args)
        except Exception as error:
            self._note_error(Kind.STORE, error, oid, start)
            raise
        self._note_store(oid, serial, data, start)
        self._note(Kind.STORE_BLOB, oid, size, serial)
        return result

    def prefetch(self, oids: Any) -> Any:
        oids = list(oids)
        start = clock()
        try:
            result = self._recorded.prefetch(oids)
        except Exception as error:
            self._note_error(Kind.PREFETCH, error, NONE, start)
            raise
        share = (clock() - start) // max(1, len(oids))
        for oid in oids:
            self._extend((int(Kind.PREFETCH), oid, 0, NONE, start, start + share))
            self._is_empty = False
            start += share
        return result

    def _note_store(self, oid: bytes, serial: bytes, data: bytes, start: int) -> None:
        try:
            end = clock()
            kind = _STORE_RESOLVABLE if resolves_conflicts(data) else _STORE
            self._extend((kind, oid, len(data), serial, start, end))
            self._is_empty = False
        except Exception as error:  # noqa: BLE001
            self._recorder.end(repr(error))

    def _note_error(self, kind: Kind, error: Exception, oid: object, start: int) -> None:
        raised = Kind.CONFLICT if isinstance(error, ConflictError) else Kind.FAILURE
        name = oid if isinstance(oid, bytes) else NONE
        self._extend((int(raised), name, int(kind), NONE, start, clock()))
        self._is_empty = False

    def _note(self, kind: Kind, oid: bytes, number: int = 0, serial: bytes = NONE) -> None:
        """Note an event that has no duration."""
        now = clock()
        self._extend((int(kind), oid, number, serial, now, now))
        self._is_empty = False

    def _turn(self) -> None:
        """Begin a transaction; note the end of the previous one if it did more than poll."""
        thread, cpu = threading.get_ident(), time.thread_time_ns()
        if self._is_recording and not self._is_empty:
            used = cpu - self._cpu if thread == self._thread else 0
            now = clock()
            self._extend((_END, NONE, used, NONE, now, now))
            self._is_empty = True
        self._thread, self._cpu = thread, cpu

    def _switch(self) -> None:
        """Start recording, or stop it and pass calls directly to the storage inside."""
        self._is_recording = not self._is_recording
        for name in _WHILE_RECORDING:
            if self._is_recording:
                self.__dict__.pop(name, None)
            elif hasattr(self._recorded, name):
                self.__dict__[name] = getattr(self._recorded, name)


def _size_of(path: Any) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0  # the storage reports the error


def _noted(name: str, kind: Kind, describe: _Describe) -> Callable[..., Any]:
    """Return a method that passes a call on and notes the call."""
    number = int(kind)

    def method(self: RecordedConnection, *args: Any, **options: Any) -> Any:
        start = clock()
        try:
            result = getattr(self._recorded, name)(*args, **options)
        except Exception as error:
            self._note_error(kind, error, args[0] if args else NONE, start)
            raise
        try:
            self._extend((number, *describe(args, result), start, clock()))
            self._is_empty = False
        except Exception as error:  # noqa: BLE001
            self._recorder.end(repr(error))
        return result

    return method


for _name, (_kind, _describe) in _CALLS.items():
    setattr(RecordedConnection, _name, _noted(_name, _kind, _describe))


class _Absent:
    """A method that the storage inside lacks."""

    def __get__(self, instance: object, owner: type) -> Any:
        raise AttributeError


def recorded(storage: Any, log: Log, recorder: Recorder) -> RecordedConnection:
    """Return a connection's storage in a wrapper that notes calls in *log*."""
    names = (*_ALWAYS, *_WHILE_RECORDING)
    absent = frozenset(name for name in names if not hasattr(storage, name))
    return _class_without(absent)(storage, log, recorder)


@cache
def _class_without(names: frozenset[str]) -> type[RecordedConnection]:
    if not names:
        return RecordedConnection
    return type("RecordedConnection", (RecordedConnection,), dict.fromkeys(names, _Absent()))


_resolves: dict[bytes, bool] = {}
"""Keys are the first bytes of records, which name a class; values say if it resolves conflicts."""


def resolves_conflicts(data: bytes) -> bool:
    """Return whether the class of a record's object resolves conflicts."""
    # A record begins with the class's name: b"\x80\x03cmodule\nname\n".
    end = data.find(b"\n", data.find(b"\n") + 1)
    begin = data[:end]
    if begin not in _resolves:
        if end < 0 or data[2:3] != b"c":
            return False
        module, _, name = begin[3:].decode("utf-8", "replace").partition("\n")
        stored = getattr(sys.modules.get(module), name, None)
        _resolves[begin] = hasattr(stored, "_p_resolveConflict")
    return _resolves[begin]
