"""Notes on the share of loads that the caches of storages served."""

from __future__ import annotations

from typing import Any

from tests.reports.results import cells_of
from tests.runs import cell, failed, measured
from zodbshootout.reports.caches import cache_notes
from zodbshootout.results.result import CellResult

SMALL = ": is it too small for these objects?"
UNUSABLE = ": can clients read and write it, and is it large enough?"


def served(
    benchmark: str, contender: str, hits: int, of: int, objects: int = 1000, **metadata: Any
) -> CellResult:
    return measured(
        cell(benchmark, contender, objects=objects), [1.0], [1.0],
        storage_cache_hits=hits, cacheable_loads=of, loads=of + 1, iterations=50, **metadata,
    )  # fmt: skip


def notes(*results: CellResult) -> list[str]:
    return list(cache_notes(cells_of(results)))


def test_small_shares_are_listed_by_benchmark_and_equal_ones_are_joined() -> None:
    assert notes(
        served("hot", "zeo", 12, 100), served("hot", "pg", 0, 100), served("hot", "my", 0, 100),
        served("hot", "fine", 90, 100), served("prefetch_cold", "pg", 1, 100),
    ) == [
        f"hot: the storage's cache served 12% of the loads of zeo; 0% of pg, my{SMALL}",
        f"prefetch_cold: the storage's cache served 1% of the loads of pg{SMALL}",
    ]  # fmt: skip


def test_the_shares_of_several_rows_are_a_range_if_one_of_them_is_small() -> None:
    assert notes(
        served("hot", "zeo", 100, 100, objects=10), served("hot", "zeo", 3, 100, objects=9999)
    ) == [f"hot: the storage's cache served 3% to 100% of the loads of zeo{SMALL}"]


def test_there_is_no_note_on_a_large_share_or_one_that_is_unknown() -> None:
    counting = measured(cell("cold", "zeo"), [1.0], storage_cache_hits=0, loads=100)
    assert notes(
        served("hot", "zeo", 101, 100), measured(cell("hot", "fs"), [1.0], loads=100), counting,
        failed(cell("hot", "pg"), "gone"), served("hot", "no", 0, 0),
    ) == []  # fmt: skip


def warm(contender: str, hits: int, without_hits: int, setting: str, **more: str) -> CellResult:
    setting_of: dict[str, Any] = {"persistent_cache": setting, **more} if setting else {}
    return served("warm", contender, hits, 100, openings_without_hits=without_hits, **setting_of)


def test_persistent_caches_are_listed_with_their_setting() -> None:
    assert notes(warm("zeo", 100, 0, "client"), warm("zeo2", 99, 0, "cache-path")) == [
        "warm: the persistent cache (client) served 100% of the loads of zeo",
        "warm: the persistent cache (cache-path) served 99% of the loads of zeo2",
    ]


def test_a_persistent_cache_that_served_nothing_may_be_unusable_or_ignored() -> None:
    setting, flaw = "cache-local-dir", "RelStorage ignores it"
    head = f"warm: the persistent cache ({setting}) served"
    assert notes(
        warm("pg", 0, 50, setting), warm("my", 100, 0, setting),
        warm("sqlite", 0, 50, setting, persistent_cache_flaw=flaw),
    ) == [
        f"{head} 0% of the loads of pg; 100% of my{UNUSABLE}",
        f"{head} 0% of the loads of sqlite: {flaw}",
    ]  # fmt: skip


def test_a_note_says_how_often_a_persistent_cache_served_nothing() -> None:
    (note,) = notes(warm("pg", 94, 3, "cache-local-dir"))
    assert note.endswith("served 94% of the loads of pg (nothing in 6 of 100 openings)")


def test_a_newly_opened_db_without_a_persistent_cache_has_nothing_to_be_served_from() -> None:
    assert notes(warm("zeo", 0, 50, "")) == []


def stale(contender: str, hits: int) -> CellResult:
    return served(
        "open_stale", contender, hits, 99, openings_without_hits=0, changed_loads=33,
        persistent_cache="client",
    )  # fmt: skip


def test_a_cache_serves_what_has_not_changed() -> None:
    head = "open_stale: the persistent cache (client) served"
    assert notes(stale("zeo", 66)) == [f"{head} 67% of the loads of zeo"]
    (note,) = notes(stale("zeo", 0))
    assert note.endswith("and does the server report every change?")
