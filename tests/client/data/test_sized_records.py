"""Records of requested sizes."""

from __future__ import annotations

import io
import pickle
import zlib
from typing import Any

import pytest
from BTrees.Length import Length
from ZODB.utils import p64

from tests.fakes import pickled_again
from zodbshootout.client.data.objects import is_same_object, pickled
from zodbshootout.client.data.sized_records import (
    SMALLEST,
    RecordMaker,
    Resolvable,
    belongs_to,
    record_size,
    resolves,
)

OID = p64(0x123456)
SIZES = [
    SMALLEST,
    42,
    83,
    84,
    288,
    289,
    290,
    291,
    292,
    293,
    294,
    295,
    340,
    345,
    350,
    5000,
    3 * 2**20,
]


@pytest.fixture(scope="module")
def maker() -> RecordMaker:
    return RecordMaker(0, 0.5)


def state_of(record: bytes) -> tuple[Any, Any]:
    """Return the class and the state of a record, as ZODB reads them."""
    unpickler = pickle.Unpickler(io.BytesIO(record))
    return unpickler.load(), unpickler.load()


@pytest.mark.parametrize("size", SIZES)
def test_a_record_has_the_requested_size_and_can_be_unpickled(
    maker: RecordMaker, size: int
) -> None:
    record = maker.record(OID, size)
    assert len(record) == size == record_size(size)
    cls, state = state_of(record)
    assert cls.__name__ == "Persistent"
    assert state.endswith(OID)


@pytest.mark.parametrize("size", SIZES)
def test_a_resolvable_record_has_the_requested_size_and_a_resolving_class(
    maker: RecordMaker, size: int
) -> None:
    record = maker.resolvable(OID, size)
    assert len(record) == size
    cls, state = state_of(record)
    assert cls in {Length, Resolvable}
    assert hasattr(cls, "_p_resolveConflict")
    assert isinstance(state, int if cls is Length else bytes)


def test_a_requested_size_below_the_smallest_gives_the_smallest_record(maker: RecordMaker) -> None:
    assert len(maker.record(OID, 7)) == len(maker.resolvable(OID, 7)) == SMALLEST == record_size(7)


@pytest.mark.parametrize("size", SIZES)
def test_a_record_belongs_only_to_its_object_and_only_if_unchanged(
    maker: RecordMaker, size: int
) -> None:
    record = maker.record(OID, size)
    assert belongs_to(record, OID)
    assert not belongs_to(record[:-1], OID)
    assert not belongs_to(record[:-3] + b"!" * 3, OID)
    assert not belongs_to(record, p64(0x123457))
    assert not belongs_to(b"!" + record, OID)


def test_resolving_a_conflict_of_small_records_keeps_their_size_within_a_byte(
    maker: RecordMaker,
) -> None:
    _, old = state_of(maker.resolvable(OID, 44))
    _, new = state_of(maker.resolvable(OID, 45))
    resolved = Length()._p_resolveConflict(old, new, new)
    assert abs(len(pickled(Length(resolved))) - 45) <= 1


def test_a_record_pickled_by_conflict_resolution_belongs_to_its_object() -> None:
    record = RecordMaker(0, 0.5).resolvable(OID, 400)
    cls, state = state_of(record)
    again = pickle.dumps(cls, 3) + pickle.dumps(state, 3)
    assert belongs_to(again, OID)
    assert not belongs_to(again, p64(0x123457))


@pytest.mark.parametrize("size", [SMALLEST, 60, 400])
@pytest.mark.parametrize("make", ["record", "resolvable"])
def test_a_record_in_other_bytes_keeps_its_object_and_kind(
    maker: RecordMaker, make: str, size: int
) -> None:
    again = pickled_again(getattr(maker, make)(OID, size))
    assert belongs_to(again, OID)
    assert resolves(again) is (make == "resolvable")


def test_content_has_the_requested_compressibility() -> None:
    content = RecordMaker(0, 0.5).content(100_000)
    assert 0.4 < len(zlib.compress(content)) / len(content) < 0.65
    assert len(zlib.compress(RecordMaker(0, 0.0).content(100_000))) > 99_000


@pytest.mark.parametrize(("other", "same"), [(b"garbled", True), (b"garbled too", False)])
def test_records_that_cannot_be_unpickled_are_equal_only_byte_for_byte(
    other: bytes, same: bool
) -> None:
    assert is_same_object(b"garbled", other) is same
