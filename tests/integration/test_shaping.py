"""Check the effects of options that shape or destroy data or inspect the clients."""

from __future__ import annotations

import pstats
import re
import shutil
import sqlite3
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import pytest
from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping
from ZODB.blob import Blob
from ZODB.config import databaseFromString
from ZODB.serialize import referencesf
from ZODB.utils import z64

from tests.integration.command import Done, cells, run
from zodbshootout.client.data.btrees import btree_class
from zodbshootout.client.data.datasets import TOP, Dataset, contents, find_objects, grown_tree
from zodbshootout.client.data.filler import CHUNK, CHUNKS_AT_ONCE
from zodbshootout.client.data.objects import Item
from zodbshootout.model.specification import CrewShape, MappingType, Parameters

CONTENDERS = ("fs", "zeo", "sqlite")
FILE = "<filestorage>\npath {0}.fs\nblob-dir {0}.blobs\n</filestorage>\n"
SQLITE = (
    "<relstorage>\nkeep-history false\nblob-dir {0}-cache.blobs\n"
    "<sqlite3>\ndata-dir {0}\n{1}</sqlite3>\n</relstorage>\n"
)
CONF = (
    "%import relstorage\n"
    f"<zodb fs>\n{FILE.format('fs')}</zodb>\n"
    f"<zeoserver main>\n{FILE.format('zeo')}</zeoserver>\n"
    "<zodb zeo>\n<zeoclient>\nserver $main\nblob-dir zeo-cache.blobs\n</zeoclient>\n</zodb>\n"
    f"<zodb sqlite>\n{SQLITE.format('sqlite', '')}</zodb>\n"
)
TWIN = f"<zodb twin>\n{FILE.format('fs')}</zodb>\n"
OBJECTS = 5
ONCE = ("-p", "1", "-n", "1", "-l", "2", "--object-counts")
TREASURE = "somebody's treasure"


def shares(fixture: str) -> pytest.MarkDecorator:
    """Return a mark that has one pytest-xdist process run all tests of a fixture."""
    return pytest.mark.xdist_group(f"shaping {fixture}")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "x.conf").write_text(CONF)
    return tmp_path


def shoot_out(place: Path, *words: str, objects: int = OBJECTS, answers: str | None = None) -> Done:
    return run(place, "x.conf", *ONCE, str(objects), *words, answers=answers)


def measure(place: Path, *words: str, objects: int = OBJECTS, answers: str | None = None) -> Done:
    done = shoot_out(place, *words, objects=objects, answers=answers)
    assert done.status == 0, done.out + done.err
    return done


def parameters(objects: int = OBJECTS, **more: Any) -> Parameters:
    return Parameters(CrewShape(1), objects=objects, **more)


@contextmanager
def opened(place: Path, contender: str) -> Iterator[Any]:
    storage = (
        SQLITE.format(place / contender, "driver sqlite3\n")
        if contender == "sqlite"
        else FILE.format(place / contender)
    )
    db = databaseFromString(f"%import relstorage\n<zodb>\n{storage}</zodb>\n")
    try:
        yield db
    finally:
        db.close()


@contextmanager
def connected(place: Path, contender: str) -> Iterator[Any]:
    with opened(place, contender) as db, db.transaction() as connection:
        yield connection


def records(db: Any) -> dict[bytes, tuple[bytes, bytes]]:
    """Return the serial and the current record of every object, reachable or not."""
    by_oid = {}
    following = None
    while True:
        oid, serial, record, following = db.storage.record_iternext(following)
        by_oid[oid] = serial, record
        if following is None:
            return by_oid


def reachable(all_records: dict[bytes, tuple[bytes, bytes]]) -> set[bytes]:
    reached: set[bytes] = set()
    waiting = [z64]
    while waiting:
        oid = waiting.pop()
        if oid not in reached:
            reached.add(oid)
            waiting += referencesf(all_records[oid][1])
    return reached


# Blobs

CONTENT_SIZE = 1000
LIKE = parameters(object_size=CONTENT_SIZE, blobs=True)


@pytest.fixture(scope="module")
def with_blobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("blobs")
    (place / "x.conf").write_text(CONF)
    shoot_out(place, "add", "update", "hot", "--blobs", "-s", str(CONTENT_SIZE), "-c", "1",
              "--include-mapping", "-o", "a.json")  # fmt: skip
    return place


def outcomes(place: Path, benchmark: str) -> dict[str, tuple[str, str]]:
    return {
        contender: outcome
        for (contender, name), outcome in cells(place / "a.cells.jsonl").items()
        if name == benchmark and contender in CONTENDERS
    }


def added(connection: Any, contender: str, like: Parameters) -> Any:
    """Return a mapping that ``add`` has filled with objects."""
    mappings = find_objects(
        connection.root(), Dataset.ADD, replace(like, owner=contender), 0
    ).values()
    return next(mapping for mapping in mappings if mapping)


def files_of(connection: Any, contender: str, dataset: Dataset) -> list[bytes]:
    """Return the contents of the blob files of a tree."""
    if dataset is Dataset.ADD:
        documents = added(connection, contender, LIKE).values()
    else:
        owned = replace(LIKE, owner=contender)
        documents = find_objects(connection.root(), dataset, owned, 0).values()
    return [Path(document.blob.committed()).read_bytes() for document in documents]


@shares("blobs")
def test_trap_8_an_update_rewrites_the_files_of_blobs(with_blobs: Path) -> None:
    assert outcomes(with_blobs, "update") == dict.fromkeys(CONTENDERS, ("measured", ""))
    for contender in CONTENDERS:
        with connected(with_blobs, contender) as connection:
            stored = files_of(connection, contender, Dataset.UPDATE)
        assert {len(content) for content in stored} == {CONTENT_SIZE}
        assert stored in [contents(Dataset.UPDATE, LIKE, 0, revision) for revision in range(1, 60)]


@shares("blobs")
@pytest.mark.parametrize(("benchmark", "dataset"), [("add", Dataset.ADD), ("hot", Dataset.READ)])
def test_blobs_have_the_requested_size_and_the_generated_content(
    benchmark: str, dataset: Dataset, with_blobs: Path
) -> None:
    assert outcomes(with_blobs, benchmark) == dict.fromkeys(CONTENDERS, ("measured", ""))
    for contender in CONTENDERS:
        with connected(with_blobs, contender) as connection:
            stored = files_of(connection, contender, dataset)
        assert {len(content) for content in stored} == {CONTENT_SIZE}
        assert stored == contents(dataset, LIKE, 0, revision=0)


@shares("blobs")
def test_a_storage_without_blobs_is_not_supported_with_the_blobs_option(with_blobs: Path) -> None:
    states = cells(with_blobs / "a.cells.jsonl")
    for benchmark in ("add", "update", "hot"):
        state, reason = states["mapping", benchmark]
        assert state == "not supported"
        assert "MappingStorage" in reason
        assert "blob-dir" in reason


# The mapping and the records


MANY = 100
"""A number of objects for which a BTree needs several leaves."""
TREES = (
    (("IO",), IOBTree, {"object_size": 300, "mapping": MappingType.IO}),
    (("OO",), OOBTree, {"object_size": 999, "mapping": MappingType.OO}),
    (
        ("IO", "--btree-leaf-size", "5", "--btree-internal-size", "7"),
        btree_class("IOBTree", 5, 7),
        {"object_size": 5000, "mapping": MappingType.IO, "leaf_size": 5, "internal_size": 7},
    ),
)
"""The arguments of --btrees, the expected class, and the parameters that select the tree."""


@pytest.fixture(scope="module")
def with_btrees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("btrees")
    (place / "x.conf").write_text(CONF)
    for words, _, shape in TREES:
        measure(place, "update", "--btrees", *words, "-s", str(shape["object_size"]), "-c", "1",
                objects=MANY)  # fmt: skip
    return place


def updated(connection: Any, contender: str, like: Parameters) -> Any:
    """Return the mapping whose objects ``update`` has changed."""
    return find_objects(connection.root(), Dataset.UPDATE, replace(like, owner=contender), 0)


def leaves(btree: Any) -> Iterator[list[Any]]:
    """Return the keys in each leaf."""
    leaf = btree.__getstate__()[1]
    while leaf is not None:
        pairs, *following = leaf.__getstate__()
        yield list(pairs[::2])
        leaf = following[0] if following else None


def inner_nodes(btree: Any) -> Iterator[list[Any]]:
    """Return the children of each node that is not a leaf."""
    children = list(btree.__getstate__()[0][::2])
    yield children
    for child in children:
        if type(child) is type(btree):
            yield from inner_nodes(child)


@shares("btrees")
@pytest.mark.parametrize(("words", "cls", "shape"), TREES)
def test_objects_are_stored_in_a_btree_of_the_requested_kind(
    words: tuple[str, ...], cls: Any, shape: dict[str, Any], with_btrees: Path
) -> None:
    like = parameters(objects=MANY, **shape)
    for contender in CONTENDERS:
        with connected(with_btrees, contender) as connection:
            mapping = updated(connection, contender, like)
            assert type(mapping) is cls
            stored = [item.content for item in mapping.values()]
            revisions = range(1, 10)
            assert stored in [contents(Dataset.UPDATE, like, 0, number) for number in revisions]
            keys = list(leaves(mapping))
            assert list(chain.from_iterable(keys)) == list(mapping)
            fullest = max(map(len, keys))
            assert fullest <= cls.max_leaf_size
            assert (fullest <= 5) == ("leaf_size" in shape)
            assert max(map(len, inner_nodes(mapping))) <= cls.max_internal_size


@pytest.mark.parametrize(
    ("place_of", "like"),
    [
        pytest.param("filled", parameters(object_size=128), marks=shares("filled")),
        *(
            pytest.param("with_btrees", parameters(objects=MANY, **shape), marks=shares("btrees"))
            for _, _, shape in TREES
        ),
    ],
)
def test_trap_7_the_records_that_storages_return_have_the_requested_size(
    place_of: str, like: Parameters, request: pytest.FixtureRequest
) -> None:
    for contender in CONTENDERS:
        with connected(request.getfixturevalue(place_of), contender) as connection:
            items = updated(connection, contender, like).values()
            sizes = [len(connection._storage.load(item._p_oid)[0]) for item in items]
            assert len(sizes) == like.objects
            assert statistics.fmean(sizes) == pytest.approx(like.object_size, rel=0.05)


def test_a_grown_tree_has_the_objects_of_all_benchmarks_and_of_the_filling(place: Path) -> None:
    sizes = ("--min-objects", "1k,2k", "-c", "1")
    measure(place, "add", "update", "warm", "cold", "hot", "--btrees", "--grown", *sizes)
    like = parameters(mapping=MappingType.IO, grown=True)
    for contender in CONTENDERS:
        with connected(place, contender) as connection:
            grown = grown_tree(connection.root(), like)
            assert (grown.layers, grown.total) == (2, 2000)
            added = sum(1 for key in grown.tree if key % 4 == 3)
            assert added >= 2 * 2 * OBJECTS
            assert len(grown.tree) == 2000 + grown.placed + added
            assert len(updated(connection, contender, like).values()) == OBJECTS


def test_a_database_that_is_too_large_for_one_of_several_sizes_fails(place: Path) -> None:
    measure(place, "update", "--only", "fs", "--min-objects", "20", "-c", "1")
    done = shoot_out(place, "update", "--only", "fs", "--min-objects", "10,30", "-c", "1")
    assert done.status == 3
    assert "the database already has 20 objects from an earlier --min-objects" in done.err
    assert "20 more in the database" not in done.out
    assert "30 more in the database" in done.out


# The rest of the database

FILLED = ("-s", "128", "-c", "1")
MINIMUM = 3_500


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Databases with many objects and some garbage; tests only read them."""
    place = tmp_path_factory.mktemp("filled")
    (place / "x.conf").write_text(CONF)
    measure(place, "add", "update", "steamin", *FILLED, "--min-objects", str(MINIMUM))
    return place


@pytest.fixture(scope="module")
def packed(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same databases after a run with ``--pack`` that recreates no removed objects."""
    place = shutil.copytree(filled, tmp_path_factory.mktemp("packed") / "copy")
    measure(place, "steamin", *FILLED, "--pack")
    return place


def filler_in(connection: Any) -> Any:
    return connection.root()[TOP]["filler"]


def filling_objects(connection: Any) -> list[Any]:
    return [item for chunk in filler_in(connection).chunks.values() for item in chunk.objects]


def revisions(db: Any) -> Counter[bytes]:
    """Return the number of revisions of each object in a FileStorage."""
    return Counter(record.oid for transaction in db.storage.iterator() for record in transaction)


@shares("filled")
def test_min_objects_creates_loadable_objects_of_the_requested_size(filled: Path) -> None:
    for contender in CONTENDERS:
        with connected(filled, contender) as connection:
            assert len(records(connection.db())) >= MINIMUM
            assert filler_in(connection).total == MINIMUM
            items = filling_objects(connection)
            assert len({item._p_oid for item in items}) == MINIMUM
            some = items[::100]
            assert {type(item) for item in some} == {Item}
            assert len({item.content for item in some}) == len(some)
            assert {len(connection._storage.load(item._p_oid)[0]) for item in some} == {128}


def test_min_objects_creates_more_objects_than_are_written_at_once(place: Path) -> None:
    total = CHUNKS_AT_ONCE * CHUNK + 500
    measure(place, "steamin", "--only", "fs", *FILLED, "--min-objects", str(total))
    with connected(place, "fs") as connection:
        assert filler_in(connection).total == total
        assert len({item._p_oid for item in filling_objects(connection)}) == total


@shares("filled")
def test_min_objects_does_not_rewrite_existing_objects(filled: Path, tmp_path: Path) -> None:
    place = shutil.copytree(filled, tmp_path / "copy")
    measure(place, "steamin", *FILLED, "--min-objects", str(MINIMUM))
    for contender in CONTENDERS:
        with opened(filled, contender) as before, opened(place, contender) as after:
            assert records(after) == records(before)


@shares("filled")
def test_min_objects_survive_packing(packed: Path) -> None:
    for contender in CONTENDERS:
        with connected(packed, contender) as connection:
            assert filler_in(connection).total == MINIMUM
            items = filling_objects(connection)
            assert {item._p_oid for item in items} <= set(records(connection.db()))
            assert len({item.content for item in items[::100]}) == MINIMUM // 100


@shares("filled")
def test_packing_leaves_exactly_the_reachable_objects(filled: Path, packed: Path) -> None:
    for contender in CONTENDERS:
        with opened(filled, contender) as before, opened(packed, contender) as after:
            was = records(before)
            needed = reachable(was)
            assert set(was) > needed
            assert set(records(after)) == needed


@shares("filled")
@pytest.mark.parametrize("contender", ["fs", "zeo"])
def test_packing_leaves_one_revision_of_each_object_and_a_smaller_file(
    contender: str, filled: Path, packed: Path
) -> None:
    with opened(filled, contender) as before, opened(packed, contender) as after:
        assert max(revisions(before).values()) > 1
        assert set(revisions(after).values()) == {1}
    file = f"{contender}.fs"
    assert (packed / file).stat().st_size < (filled / file).stat().st_size


# Destroying data


EXPENDABLE = ("--may-write", "fs,zeo,sqlite")


def bury_treasure(place: Path) -> None:
    for contender in CONTENDERS:
        with connected(place, contender) as connection:
            connection.root()["theirs"] = PersistentMapping(treasure=TREASURE)
            connection.root()["their blob"] = Blob(TREASURE.encode())


def is_untouched(place: Path, contender: str) -> bool:
    with connected(place, contender) as connection:
        root = connection.root()
        if "theirs" not in root:
            return False
        with root["their blob"].open() as file:
            assert file.read() == TREASURE.encode()
        assert dict(root["theirs"]) == {"treasure": TREASURE}
    return True


def blobs_in(place: Path, contender: str) -> int:
    if contender != "sqlite":
        return len(list((place / f"{contender}.blobs").rglob("*.blob")))
    with closing(sqlite3.connect(place / "sqlite" / "main.sqlite3")) as connection:
        chunks: int = connection.execute("SELECT count(*) FROM blob_chunk").fetchone()[0]
    return chunks + len(list((place / "sqlite-cache.blobs").rglob("*.blob")))


def assert_destroyed(place: Path, contender: str, by: str = "") -> None:
    """Check that none of the treasure is left, and that ``add`` has run since.

    *by* is the contender that destroyed it last, if several share the database.
    """
    with connected(place, contender) as connection:
        assert set(connection.root()) == {TOP}
        there = records(connection.db()).values()
        assert not [record for _, record in there if TREASURE.encode() in record]
        stored = [
            item.content for item in added(connection, by or contender, parameters()).values()
        ]
        assert stored == contents(Dataset.ADD, parameters(), 0, revision=0)
    assert blobs_in(place, contender) == 0


def test_zap_force_destroys_the_data_of_all_contenders_before_add_is_measured(
    place: Path,
) -> None:
    (place / "x.conf").write_text(CONF + TWIN)
    bury_treasure(place)
    assert all(blobs_in(place, contender) for contender in CONTENDERS)
    done = measure(place, "add", "--zap", "force", "-c", "1", "-o", "a.json")
    assert "[y/N]" not in done.err
    assert cells(place / "a.cells.jsonl") == {
        (contender, "add"): ("measured", "") for contender in (*CONTENDERS, "twin")
    }
    for contender in CONTENDERS:
        assert_destroyed(place, contender, by="twin" if contender == "fs" else contender)


@shares("blobs")
def test_zap_removes_all_blob_files_of_a_contender_and_its_cache(
    with_blobs: Path, tmp_path: Path
) -> None:
    place = shutil.copytree(with_blobs, tmp_path / "copy")
    directories = [path.name for path in place.glob("*.blobs") if any(path.rglob("*.blob"))]
    assert sorted(directories) == ["fs.blobs", "sqlite-cache.blobs", "zeo-cache.blobs", "zeo.blobs"]
    measure(place, "add", "--zap", "force", "-c", "1")
    assert [name for name in directories if any((place / name).rglob("*.blob"))] == []


def test_zap_destroys_the_data_of_only_the_named_contender(place: Path) -> None:
    bury_treasure(place)
    done = measure(place, "add", "--zap", "zeo", "-c", "1", *EXPENDABLE)
    assert "[y/N]" not in done.err
    assert_destroyed(place, "zeo")
    assert is_untouched(place, "fs")
    assert is_untouched(place, "sqlite")


def test_trap_11_enter_another_answer_than_yes_and_a_missing_one_destroy_nothing(
    place: Path,
) -> None:
    bury_treasure(place)
    done = measure(place, "add", "--zap", "-c", "1", *EXPENDABLE, answers="\nY es\n")
    for contender, storage in (("fs", "FileStorage ({})"), ("sqlite", "RelStorage ({})")):
        description = storage.format(place / ("fs.fs" if contender == "fs" else contender))
        assert f"Destroy all data of {contender}, {description}? [y/N]" in done.err
    assert re.search(r"Destroy all data of zeo, ClientStorage \(.*\)\? \[y/N\]", done.err)
    assert all(is_untouched(place, contender) for contender in CONTENDERS)


def test_zapping_without_a_terminal_or_an_unknown_one_is_bad_usage_and_destroys_nothing(
    place: Path,
) -> None:
    bury_treasure(place)
    done = shoot_out(place, "add", "--zap", "nosuch", "-c", "1")
    assert done.status == 2
    assert done.complaint.startswith("zodbshootout: --zap: no contender 'nosuch'")
    done = shoot_out(place, "add", "--zap", "-c", "1")
    assert done.status == 2
    assert done.complaint.startswith(
        "zodbshootout: --zap asks before it destroys anything, but there is no terminal; "
        "name the contenders, as in --zap fs,"
    )
    assert all(is_untouched(place, contender) for contender in CONTENDERS)


def test_only_y_and_yes_destroy_the_data_of_the_contender_in_question(place: Path) -> None:
    bury_treasure(place)
    measure(place, "add", "--zap", "-c", "1", *EXPENDABLE, answers="y\nyeah\nyes\n")
    assert_destroyed(place, "fs")
    assert is_untouched(place, "zeo")
    assert_destroyed(place, "sqlite")


# Inspecting the clients


def run_calls_in(profile: Path, module: str) -> int:
    """Return how many calls of a benchmark's ``run`` a profile contains."""
    stats: Any = pstats.Stats(str(profile))
    return sum(
        calls
        for (file, _, function), (_, calls, *_) in stats.stats.items()
        if function == "run" and file.endswith(f"benchmarks/{module}.py")
    )


MODULES = {"add": "add", "cold": "reading"}
"""The module that defines each benchmark's ``run``."""
SHARED_PROFILER = sys.version_info >= (3, 12)
"""Whether the profile of one thread includes the calls of all threads, on the clock and off it.

Such a profile mixes their calls in one stack and loses count, even in a process with a single
client if the storage has a thread of its own.
"""


@pytest.mark.parametrize(
    ("crew", "contenders", "names", "processes"),
    [
        ((), ("zeo", "sqlite"), ("add", "cold"), 2),
        (("--threads",), CONTENDERS, ("add",), 1),
        (("--gevent",), CONTENDERS, ("add",), 1),
    ],
)
def test_the_profile_of_each_cell_covers_the_runs_of_all_clients(
    crew: tuple[str, ...],
    contenders: tuple[str, ...],
    names: tuple[str, ...],
    processes: int,
    place: Path,
) -> None:
    clients, values, loops = 2, 2, 3
    only = [f"--only={contender}" for contender in contenders]
    measure(place, *names, "-c", str(clients), *crew, *only, "--profile", "d",
            "-p", str(processes), "-n", str(values), "-l", str(loops))  # fmt: skip
    assert {path.name for path in (place / "d").iterdir()} == {
        f"{contender}-{name}.{ending}"
        for contender in contenders
        for name in names
        for ending in ("prof", "txt")
    }
    counted = clients * processes * values * loops
    for contender in contenders:
        for name in names:
            profile = place / "d" / f"{contender}-{name}.prof"
            seen = run_calls_in(profile, MODULES[name])
            if SHARED_PROFILER:
                assert seen > 0
                continue
            if "--gevent" in crew:
                assert seen >= counted
                continue
            assert seen == counted
            line = re.compile(
                rf"^ +{counted} .*benchmarks/{MODULES[name]}\.py:\d+\(run\)$", re.MULTILINE
            )
            assert line.search(profile.with_suffix(".txt").read_text())


LEAKY = (
    "%import faulty\n<zodb leaky>\n<faulty>\nfault leak\n<filestorage>\npath leaky.fs\n"
    "</filestorage>\n</faulty>\n</zodb>\n"
)
LEAKED = re.compile(
    r"leaks: (?P<contender>\w+): add, value (?P<value>\d+): "
    r"(?:faulty\.Leaked \+(?P<more>\d+), now (?P<now>\d+))?"
)
LOOPS = 20


def commits_in(place: Path) -> int:
    with closing(databaseFromString(
        f"<zodb>\n<filestorage>\npath {place / 'leaky.fs'}\n</filestorage>\n</zodb>\n"
    )) as db:  # fmt: skip
        return sum(1 for _ in db.storage.iterator())


@dataclass(frozen=True)
class LeakReport:
    """The output of ``--leaks``, and the number of commits meanwhile."""

    lines: Sequence[str]
    commits: int

    def matches(self) -> list[re.Match[str]]:
        return [match for match in map(LEAKED.match, self.lines) if match]


@pytest.fixture(scope="module")
def leak_report(tmp_path_factory: pytest.TempPathFactory) -> LeakReport:
    place = tmp_path_factory.mktemp("leaks")
    (place / "x.conf").write_text(CONF + LEAKY)
    measure(place, "add", "-c", "1", "--threads", "--only", "leaky")
    before = commits_in(place)
    done = measure(place, "add", "-c", "1", "--threads", "--leaks", "-n", "3", "-l", str(LOOPS))
    return LeakReport(done.err.splitlines(), commits_in(place) - before)


@shares("leaks")
def test_leaks_names_the_class_whose_objects_each_commit_leaves_behind(
    leak_report: LeakReport,
) -> None:
    reports = [match for match in leak_report.matches() if match["more"]]
    assert {match["contender"] for match in reports} == {"leaky"}
    assert [match["value"] for match in reports] == ["1", "2", "3"]
    more = [int(match["more"]) for match in reports]
    assert min(more) >= LOOPS + 1  # and the one that makes the mappings
    assert [int(match["now"]) for match in reports] == list(accumulate(more))
    assert sum(more) == leak_report.commits


@shares("leaks")
def test_leaks_reports_after_every_value(leak_report: LeakReport) -> None:
    assert {(match["contender"], match["value"]) for match in leak_report.matches()} == {
        (contender, value) for contender in (*CONTENDERS, "leaky") for value in ("1", "2", "3")
    }


def test_leaks_with_several_processes_is_bad_usage(place: Path) -> None:
    done = shoot_out(place, "add", "--leaks", "-c", "2")
    assert done.status == 2
    assert done.complaint.startswith("zodbshootout: --leaks counts the objects of one process")
