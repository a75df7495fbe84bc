from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zodbshootout.client.data.objects import BLOCK, SHORTEST_CONTENT, Payload


@given(
    st.integers(min_value=1, max_value=5000),
    st.floats(min_value=0, max_value=1),
)
def test_content_has_the_requested_length_and_enough_blanks(
    size: int, compressibility: float
) -> None:
    content = Payload(0, 0, size, compressibility).contents(1, 0, 3)[0]
    assert len(content) == size
    blanks = size - max(min(size, SHORTEST_CONTENT), round(size * (1 - compressibility)))
    assert content.count(b" ") >= blanks


@pytest.mark.parametrize("size", [300, 999, 10_000])
@pytest.mark.parametrize("compressibility", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_zlib_removes_the_requested_part_of_the_content(size: int, compressibility: float) -> None:
    contents = Payload(0, 0, size, compressibility).contents(20, 0)
    lost = 1 - sum(len(zlib.compress(content)) for content in contents) / (20 * size)
    # zlib adds 11 bytes of its own, 8 bytes are never blank, and each run of blanks costs a few.
    assert compressibility - 19 / size - 0.05 <= lost <= compressibility + 0.02


def test_content_differs_by_seed_client_object_revision_and_compressibility() -> None:
    content = Payload(0, 0, 240, 0.5).contents(1, 0, 1)[0]
    payload = Payload(0, 0, 240, 0.5)
    others = [
        payload.contents(1, 0, 2)[0],
        payload.contents(1, 1, 1)[0],
        Payload(1, 0, 240, 0.5).contents(1, 0, 1)[0],
        Payload(0, 1, 240, 0.5).contents(1, 0, 1)[0],
        Payload(0, 0, 240, 0.6).contents(1, 0, 1)[0],
    ]
    assert content not in others
    assert content == payload.contents(1, 0, 1)[0]


def test_content_at_full_compressibility_still_differs_between_objects() -> None:
    assert len(set(Payload(0, 0, 240, 1.0).contents(1000, 0))) == 1000


@given(st.integers(1, 350), st.integers(0, 250), st.integers(1, 600))
def test_content_does_not_depend_on_how_many_objects_are_requested_at_once(
    objects: int, first: int, size: int
) -> None:
    payload = Payload(0, 0, size, 0.5)
    assert payload.contents(objects, 3, first) == payload.contents(first + objects, 3)[first:]


def test_content_does_not_repeat_in_any_block_of_objects() -> None:
    contents = Payload(0, 0, 240, 0.5).contents(10 * BLOCK, 0)
    assert len(set(contents)) == 10 * BLOCK
