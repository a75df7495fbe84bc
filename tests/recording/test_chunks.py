"""The format of a recorded workload."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recording.recordings import events_of
from zodbshootout.recording.chunks import (
    NONE,
    Event,
    FormatError,
    Kind,
    Segment,
    encode,
    header,
    read_chunks,
    read_header,
)

TICK = 100
EVENT = Event(Kind.LOAD, b"\0" * 7 + b"\1", 300, b"\3" * 8, 5000, 7000)

oids = st.binary(min_size=8, max_size=8)
instants = st.integers(0, 2**32 * TICK // 4)


@st.composite
def segments(draw: st.DrawFn) -> list[Segment]:
    """Draw events of several connections, with increasing instants."""
    drawn: list[Segment] = []
    for connection in draw(st.lists(st.integers(1, 2**32 - 1), min_size=1, unique=True)):
        clock, fields = draw(st.integers(0, 2**62)), list[object]()
        for _ in range(draw(st.integers(1, 5))):
            start = clock + draw(instants)
            clock = start + draw(instants)
            kind = draw(st.sampled_from(list(Kind)))
            number = draw(st.integers(0, 2**64 - 1))
            fields += (int(kind), draw(oids), number, draw(oids), start, clock)
        drawn.append((connection, fields))
    return drawn


def file_of(*chunks: bytes, facts: str = "fact") -> io.BytesIO:
    return io.BytesIO(header({"fact": facts}) + b"".join(chunks))


def read(file: io.BytesIO) -> list[list[Segment]]:
    read_header(file)
    return list(read_chunks(file))


def rounded(fields: Sequence[object]) -> list[Event]:
    return [
        event._replace(start=event.start // TICK * TICK, end=event.end // TICK * TICK)
        for event in events_of(fields)
    ]


@pytest.mark.slow
@given(segments(), segments())
def test_events_are_read_as_written_rounded_to_a_tenth_of_a_microsecond(
    first: list[Segment], second: list[Segment]
) -> None:
    chunks = read(file_of(encode(first), encode(second)))
    for written, chunk in zip((first, second), chunks, strict=True):
        assert [connection for connection, _ in chunk] == [number for number, _ in written]
        for (_, before), (_, after) in zip(written, chunk, strict=True):
            assert list(events_of(after)) == rounded(before)


def test_overlapping_events_are_shifted_and_long_gaps_are_shortened() -> None:
    later = EVENT._replace(start=6000, end=6500)
    much_later = EVENT._replace(start=10**15, end=10**15)
    ((_, fields),) = read(file_of(encode([(1, [*EVENT, *later, *much_later])])))[0]
    first, second, third = events_of(fields)
    assert first == EVENT
    assert (second.start, second.end) == (7000, 7500)
    assert third.start == 7500 + (2**32 - 1) * TICK


def test_facts_in_the_header_are_read_back() -> None:
    assert read_header(file_of(facts="é")) == {"fact": "é"}


@pytest.mark.parametrize("text", [b"", b"FS21", b"zodb-workload", b"zodb-workload x\n{}\n"])
def test_a_foreign_file_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError, match="not a recorded workload"):
        read_header(io.BytesIO(text))


def test_a_file_of_a_later_version_is_refused() -> None:
    with pytest.raises(FormatError, match=r"version 2 .* reads versions up to 1"):
        read_header(io.BytesIO(b"zodb-workload 2\n{}\n"))


def test_a_file_is_refused_if_it_is_cut_off_within_a_chunk() -> None:
    chunk = encode([(1, [*EVENT])])
    whole = file_of(chunk, chunk).getvalue()
    ends = {len(whole), len(whole) - len(chunk), len(whole) - 2 * len(chunk)}
    for length in range(whole.index(b"\n") + 1, len(whole)):
        cut = io.BytesIO(whole[:length])
        if length in ends:
            assert len(read(cut)) == sorted(ends).index(length)
        else:
            with pytest.raises(FormatError, match="cut off"):
                read(cut)


def test_a_cut_off_file_can_be_truncated_to_its_whole_chunks() -> None:
    chunk = encode([(1, [*EVENT])])
    whole = file_of(chunk, chunk[:-1]).getvalue()
    with pytest.raises(FormatError, match="truncate -s ") as raised:
        read(io.BytesIO(whole))
    length = int(str(raised.value).rpartition(" ")[2])
    assert len(read(io.BytesIO(whole[:length]))) == 1


def test_a_damaged_chunk_is_refused() -> None:
    chunk = encode([(1, [*EVENT])])
    for place in (0, len(chunk) - 1):
        damaged = bytearray(chunk)
        damaged[place] ^= 1
        with pytest.raises(FormatError, match="damaged"):
            read(file_of(bytes(damaged)))


def test_events_without_an_oid_and_a_serial_have_zeros() -> None:
    begin = Event(Kind.BEGIN, NONE, 3, NONE, 0, 0)
    ((_, fields),) = read(file_of(encode([(9, [*begin])])))[0]
    assert list(events_of(fields)) == [begin]
