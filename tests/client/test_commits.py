"""The notes of commits, and the search for those that are lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ZODB.POSException import POSKeyError

from zodbshootout.client.commits import CommitLog

FIRST, SECOND, THIRD = (bytes([number]) * 8 for number in (1, 2, 3))


class Stored:
    """A storage that acknowledges every transaction under the next ID."""

    def __init__(self) -> None:
        self.newest: dict[bytes, bytes] = {}
        self.loaded: list[bytes] = []
        self._tids = iter((FIRST, SECOND, THIRD))

    def store(self, oid: bytes) -> None:
        self._oid = oid

    def tpc_finish(self) -> bytes:
        self.newest[self._oid] = next(self._tids)
        return self.newest[self._oid]

    def load(self, oid: bytes) -> tuple[bytes, bytes]:
        self.loaded.append(oid)
        if oid not in self.newest:
            raise POSKeyError(oid)
        return b"", self.newest[oid]


def commit(storage: Any, oid: bytes) -> None:
    storage.store(oid)
    storage.tpc_finish()


def test_a_connection_that_passes_from_client_to_client_is_noted_by_the_present_one() -> None:
    storage = Stored()
    logs = one, other = CommitLog(), CommitLog()
    for log in (*logs, one):
        log.watch(storage)
        commit(storage, b"oid")
    assert one.acknowledged == [(b"oid", FIRST), (b"oid", THIRD)]
    assert other.acknowledged == [(b"oid", SECOND)]


def test_every_object_is_looked_for_once_and_every_lost_commit_is_counted() -> None:
    storage, log = Stored(), CommitLog()
    log.watch(storage)
    for oid in (b"a", b"b", b"a"):
        commit(storage, oid)
    connection = SimpleNamespace(_storage=storage)
    storage.newest = {b"a": FIRST}
    log.look_for(connection, 1)
    assert (storage.loaded, log.lost) == ([b"a"], {THIRD})
    log.look_for(connection)
    assert (storage.loaded, log.lost) == ([b"a", b"a", b"b"], {SECOND, THIRD})
