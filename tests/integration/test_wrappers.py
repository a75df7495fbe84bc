"""Measure real storages that wrap others, with every kind of crew, blobs, zapping and packing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.integration.command import cells, left_behind, metadata_of, run

CONF = """
%import relstorage
%import zc.zlibstorage
%import foreign

<zodb zlib_fs>
  <zlibstorage>
    <filestorage>
      path $scratch/zlib.fs
      blob-dir $scratch/zlib.blobs
    </filestorage>
  </zlibstorage>
</zodb>

<zodb zlib_sqlite>
  <zlibstorage>
    <relstorage>
      keep-history false
      blob-dir $scratch/zlib_sqlite.blobs
      <sqlite3>
        data-dir $scratch/zlib_sqlite
      </sqlite3>
    </relstorage>
  </zlibstorage>
</zodb>

<zeoserver compressed>
  <serverzlibstorage>
    <filestorage>
      path $scratch/zlib_zeo.fs
      blob-dir $scratch/zlib_zeo.blobs
    </filestorage>
  </serverzlibstorage>
</zeoserver>

<zodb zlib_zeo>
  <zlibstorage>
    <zeoclient>
      server $compressed
      blob-dir $scratch/zlib_zeo-cache.blobs
    </zeoclient>
  </zlibstorage>
</zodb>

<zodb serverzlib>
  <serverzlibstorage>
    <filestorage>
      path $scratch/serverzlib.fs
    </filestorage>
  </serverzlibstorage>
</zodb>

<zodb zlib_blob_fs>
  <zlibstorage>
    <blobstorage>
      blob-dir $scratch/zlib_blob_fs.blobs
      <filestorage>
        path $scratch/zlib_blob_fs.fs
      </filestorage>
    </blobstorage>
  </zlibstorage>
</zodb>

<zodb blob_mapping>
  <blobstorage>
    blob-dir $scratch/blob_mapping.blobs
    <mappingstorage/>
  </blobstorage>
</zodb>

<zodb demo>
  <demostorage/>
</zodb>

<zodb demo_changes>
  <demostorage>
    <filestorage>
      path $scratch/base.fs
    </filestorage>
    <filestorage changes>
      path $scratch/changes.fs
      blob-dir $scratch/changes.blobs
    </filestorage>
  </demostorage>
</zodb>

<zeoserver main>
  <filestorage>
    path $scratch/main.fs
  </filestorage>
</zeoserver>

# Measured before demo_zeo, which then finds its objects there.
<zodb base_zeo>
  <zeoclient>
    server $main
  </zeoclient>
</zodb>

<zodb demo_zeo>
  <demostorage>
    <zeoclient>
      server $main
    </zeoclient>
  </demostorage>
</zodb>

<zodb foreign>
  <foreign>
    <filestorage>
      path $scratch/foreign.fs
    </filestorage>
  </foreign>
</zodb>

<zodb foreign_memory>
  <foreign-memory/>
</zodb>
"""
CONTENDERS = (
    "zlib_fs", "zlib_sqlite", "zlib_zeo", "serverzlib", "zlib_blob_fs", "blob_mapping", "demo",
    "demo_changes", "base_zeo", "demo_zeo", "foreign", "foreign_memory",
)  # fmt: skip
VOLATILE = {"blob_mapping", "demo", "demo_zeo", "foreign_memory"}
EXCLUSIVE = {"zlib_fs", "serverzlib", "zlib_blob_fs", "demo_changes", "foreign"}
PREFETCHING = {"zlib_sqlite", "zlib_zeo", "base_zeo"}
OBJECTS = 2
QUICK = ("--object-counts", str(OBJECTS), "--debug-single-value")
"""No traffic is counted then, for which each cell would get a relay and a client more."""


def unsupported(
    place: Path, *words: str, expected: Mapping[tuple[str, str], str]
) -> Mapping[tuple[str, str], str]:
    """Measure all contenders; return the reasons of unsupported cells that are not *expected*."""
    (place / "x.conf").write_text(CONF)
    done = run(place, "x.conf", *words, *QUICK, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    assert left_behind(place) == []
    states = cells(place / "a.cells.jsonl")
    assert {contender for contender, _ in states} == set(CONTENDERS)
    assert {state for state, _ in states.values()} <= {"measured", "not supported"}
    refused = {cell: reason for cell, (state, reason) in states.items() if state == "not supported"}
    for cell, reason in expected.items():
        assert reason in refused.pop(cell)
    return refused


def metadata(place: Path, contender: str, benchmark: str) -> Mapping[str, object]:
    return metadata_of(place / "a.d" / f"{contender}.json", benchmark)


def test_wrapped_storages_are_measured_by_one_client(tmp_path: Path) -> None:
    names = ("warm", "cold", "prefetch_cold", "hot", "readCurrent_conflicts")
    rest = unsupported(
        tmp_path, *names, "-c", "1",
        expected={
            **{(contender, "warm"): "closing it loses its data" for contender in VOLATILE},
            **{(contender, "prefetch_cold"): "has no prefetch" for contender in CONTENDERS
               if contender not in PREFETCHING},
            ("zlib_sqlite", "readCurrent_conflicts"): "on SQLite commits what a refused",
        },
    )  # fmt: skip
    assert rest == {}
    for contender, cache, server in (
        ("zlib_sqlite", "RelStorage cache", "SQLite page cache"),
        ("zlib_zeo", "ZEO client cache", "ZEO server"),
    ):
        cold, hot = (metadata(tmp_path, contender, benchmark) for benchmark in ("cold", "hot"))
        assert cold["cleared_caches"] == f"pickle cache, {cache}"
        assert cold["uncleared_caches"] == f'["{server}", "operating system"]'
        assert cold["storage_cache_hits"] == 0
        assert int(str(hot["storage_cache_hits"])) >= OBJECTS
        assert "uncleared_caches" not in hot
    left = {
        contender: metadata(tmp_path, contender, "cold")["uncleared_caches"]
        for contender in ("zlib_fs", "demo", "demo_changes", "foreign", "foreign_memory")
    }
    assert left == {
        "zlib_fs": '["operating system"]',
        "demo": "[]",
        "demo_changes": '["operating system"]',
        "foreign": '["unknown: foreign.ForeignStorage", "operating system"]',
        "foreign_memory": '["unknown: foreign.MemoryStorage"]',
    }
    demo = metadata(tmp_path, "demo_zeo", "cold")
    assert demo["cleared_caches"] == "pickle cache, ZEO client cache"
    assert demo["storage_classes"] == (
        "ZODB.DemoStorage.DemoStorage over ZODB.MappingStorage.MappingStorage "
        "over ZEO.ClientStorage.ClientStorage"
    )
    assert "storage_cache_hits" not in demo
    compressed = metadata(tmp_path, "zlib_fs", "cold")
    assert compressed["record_size_bytes"] == 300
    assert "version_zc.zlibstorage" in compressed
    assert "version_SQLite" in metadata(tmp_path, "zlib_sqlite", "cold")


def test_wrapped_storages_are_measured_by_threads_that_share_a_db(tmp_path: Path) -> None:
    rest = unsupported(
        tmp_path, "load", "store", "conflicts", "-c", "2", "--threads",
        expected={("serverzlib", "conflicts"): "ServerZlibStorage compresses resolved conflicts"},
    )  # fmt: skip
    assert rest == {}
    assert metadata(tmp_path, "zlib_sqlite", "load")["storage_cache_hits"] == 0
    assert metadata(tmp_path, "zlib_zeo", "load")["cleared_caches"] == (
        "pickle cache, ZEO client cache"
    )


def test_wrapped_storages_are_measured_by_processes_if_those_can_share_them(
    tmp_path: Path,
) -> None:
    advice = "; use --threads shared, or -c 1"
    rest = unsupported(
        tmp_path, "cold", "-c", "2",
        expected={
            **{(contender, "cold"): f"its data exists in one DB only{advice}"
               for contender in VOLATILE},
            **{(contender, "cold"): f"Storage: only one DB at a time can open it{advice}"
               for contender in EXCLUSIVE - {"demo_changes"}},
            ("demo_changes", "cold"): f"DemoStorage: only one DB at a time can open it{advice}",
        },
    )  # fmt: skip
    assert rest == {}


def test_wrapped_storages_store_blobs_if_the_underlying_storage_does(tmp_path: Path) -> None:
    without = ("serverzlib", "base_zeo", "foreign", "foreign_memory")
    rest = unsupported(
        tmp_path, "cold", "-c", "1", "--blobs",
        expected={(contender, "cold"): "stores no blobs as configured here; see blob-dir"
                  for contender in without},
    )  # fmt: skip
    assert rest == {}
    assert metadata(tmp_path, "zlib_zeo", "cold")["cleared_caches"] == (
        "pickle cache, ZEO client cache, ZEO blob cache"
    )


def test_wrapped_storages_are_zapped_and_packed_if_possible(tmp_path: Path) -> None:
    rest = unsupported(
        tmp_path, "add", "-c", "1", "--zap", "force", "--pack",
        expected={("demo_changes", "add"): "DemoStorage cannot pack changes"},
    )  # fmt: skip
    assert rest == {}
    for contender in set(CONTENDERS) - {"demo_changes"}:
        assert metadata(tmp_path, contender, "add")["zapped"] is (contender not in VOLATILE)


@pytest.mark.parametrize("words", [("--zap", "demo_changes"), ("--zap", "demo")])
def test_a_demostorage_is_not_zapped(words: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(CONF)
    done = run(tmp_path, "x.conf", "add", "-c", "1", *QUICK, *words, "-o", "a.json")
    assert done.status == 2
    assert done.complaint.startswith(f"zodbshootout: --zap: {words[1]} cannot be zapped: Demo")
