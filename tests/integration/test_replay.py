"""Replay workloads of a real application on real storages."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from pathlib import Path

import pyperf
import pytest
from BTrees.Length import Length
from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping
from transaction import TransactionManager
from ZODB import DB
from ZODB.blob import Blob
from ZODB.FileStorage import FileStorage
from ZODB.POSException import ConflictError
from ZODB.utils import z64

from tests.integration.command import Done, cells, left_behind, run
from tests.recording.recordings import connections, files_in
from zodbshootout.client.data.sized_records import record_size
from zodbshootout.recording import record
from zodbshootout.recording.chunks import Kind

pytestmark = pytest.mark.servers("PostgreSQL")

TRANSACTIONS = 60
"""The number of transactions of each thread of the application."""
FILESTORAGE = (
    "<filestorage>\npath $scratch/{name}.fs\nblob-dir $scratch/{name}.blobs\n</filestorage>\n"
)
ZEO = "<zeoclient>\nserver $main\nblob-dir $scratch/zeo.cache\n</zeoclient>\n"
SQLITE = (
    "<relstorage>\nblob-dir $scratch/sqlite.blobs\n"
    "<sqlite3>\ndata-dir $scratch/sqlite\n</sqlite3>\n</relstorage>\n"
)
POSTGRESQL = (
    "<relstorage>\nblob-dir $scratch/pg.blobs\n<postgresql>\ndsn host='$pg_host' port='$pg_port' "
    "dbname='zodbshootout' user='zodbshootout' password='$pg_password'\n</postgresql>\n"
    "</relstorage>\n"
)
SERVERS = (
    "%import relstorage\n%import zodbshootout.recording\n"
    "<zeoserver main>\n<filestorage>\npath $scratch/zeo.fs\nblob-dir $scratch/zeo.blobs\n"
    "</filestorage>\n</zeoserver>\n"
    "<postgresqlserver pg>\ndatabase zodbshootout\nuser zodbshootout\n</postgresqlserver>\n"
)
STORAGES = {
    "filestorage": FILESTORAGE.format(name="filestorage"),
    "zeo": ZEO,
    "sqlite": SQLITE,
    "postgresql": POSTGRESQL,
}


def application(place: Path, threads: int) -> Path:
    """Record threads that read pages and change pages, sessions and a counter; return the path."""
    path, data = place / "main.workload", str(place / "Data.fs")
    blobs = str(place / "blobs")
    db = DB(FileStorage(data, blob_dir=blobs))
    with db.transaction() as connection:
        root = connection.root()
        root["pages"] = OOBTree({n: PersistentMapping(text="x" * n) for n in range(50, 400)})
        root["sessions"] = OOBTree()
        root["hits"] = Length()
        root["image"] = Blob(b"x" * 3000)
    db.close()
    db = DB(record(FileStorage(data, blob_dir=blobs), path), cache_size=100)
    workers = [threading.Thread(target=_work, args=(db, number)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    db.close()
    return path


def _work(db: DB, number: int) -> None:
    chance = random.Random(number)
    for request in range(TRANSACTIONS):
        transactions = TransactionManager(explicit=True)
        connection = db.open(transactions)
        while True:
            transactions.begin()
            try:
                _request(connection.root(), chance, f"{number}-{request}")
                transactions.commit()
            except ConflictError:
                transactions.abort()
            else:
                break
        connection.close()


def _request(root: PersistentMapping, chance: random.Random, name: str) -> None:
    pages = [root["pages"][chance.randrange(50, 400)] for _ in range(chance.randrange(1, 9))]
    for page in pages:
        page["text"]
    with suppress(KeyError):
        root["sessions"][name]
    kind = chance.random()
    if kind < 0.15:
        root["sessions"][name] = PersistentMapping(user=name)
        root["hits"].change(1)
    elif kind < 0.3:
        pages[0]["text"] = "y" * chance.randrange(50, 400)
    elif kind < 0.35:
        root["image"].open().close()
    elif kind < 0.4:
        root[name] = Blob(b"y" * chance.randrange(100, 2000))


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return application(tmp_path_factory.mktemp("alone"), threads=1)


def contenders(*names: str, wrapped: str = "{section}") -> str:
    return SERVERS + "".join(
        f"<zodb {name}>\n{wrapped.format(section=STORAGES[name], name=name)}</zodb>\n"
        for name in names
    )


def replay(place: Path, configuration: str, workload: Path, *words: str) -> Done:
    (place / "x.conf").write_text(configuration)
    return run(
        place, "x.conf", "replay", "--workload", str(workload), "-o", "x.json", *words,
    )  # fmt: skip


def calls(path: Path, last: int) -> list[list[tuple[str, int, int, bool]]]:
    """Return the busiest connection's last transactions, with objects numbered by appearance."""
    events = max(connections(path).values(), key=len)
    transactions: list[list[tuple[str, bytes, int, bool]]] = [[]]
    for event in events:
        kind = Kind(event.kind)
        if kind in {Kind.BEGIN, Kind.BEGIN_ALL} and transactions[-1]:
            transactions.append([])
        elif kind in {Kind.LOAD, Kind.STORE, Kind.STORE_RESOLVABLE, Kind.STORE_BLOB, Kind.FINISH}:
            is_new = kind.name.startswith("STORE") and event.serial == z64
            size = 0 if kind is Kind.FINISH else record_size(event.number)
            transactions[-1].append((kind.name, event.oid, size, is_new))
    names: dict[bytes, int] = {}
    done = [transaction for transaction in transactions if transaction][-last:]
    return [
        [
            (kind, names.setdefault(oid, len(names)) if size else -1, size, new)
            for kind, oid, size, new in calls
        ]
        for calls in done
    ]


@pytest.mark.parametrize("name", list(STORAGES))
def test_a_recorded_replay_makes_the_same_calls_as_the_original_recording(
    name: str, place: Path, workload: Path
) -> None:
    recorded = place / "recorded"
    wrapped = f"<recording>\npath {recorded}\n{{section}}</recording>\n"
    again = ("-c", "1", "-p", "1", "-n", "1", "-l", str(TRANSACTIONS))
    done = replay(place, contenders(name, wrapped=wrapped), workload, *again)
    assert done.status == 0, done
    (original,) = files_in(workload)
    replayed = max(files_in(recorded), key=lambda path: path.stat().st_size)
    assert calls(replayed, TRANSACTIONS) == calls(original, TRANSACTIONS)


def test_zeo_and_postgresql_replay_the_transactions_of_several_clients(place: Path) -> None:
    workload = application(place, threads=3)
    words = ("-c", "3", "-p", "1", "-n", "2", "-l", "20")
    done = replay(place, contenders("zeo", "postgresql"), workload, *words)
    assert done.status == 0, done.err
    states = cells(place / "x.cells.jsonl")
    assert states["zeo", "replay"][0] == "measured", done
    assert states["postgresql", "replay"][0] == "measured", done
    metadata = pyperf.BenchmarkSuite.load(str(place / "x.json")).get_benchmarks()[0].get_metadata()
    assert metadata["workload_connections"] == 3
    assert left_behind(place) == []


def test_a_replay_can_use_the_records_of_a_real_database(place: Path, workload: Path) -> None:
    data = workload.with_name("Data.fs")
    before = data.read_bytes()
    words = ("--data", str(data), "-c", "1", "-p", "1", "-n", "2", "-l", "20")
    done = replay(place, contenders("filestorage", "sqlite"), workload, *words)
    assert done.status == 0, done
    (benchmark, _) = pyperf.BenchmarkSuite.load(str(place / "x.json")).get_benchmarks()
    metadata = benchmark.get_metadata()
    assert metadata["workload_data"] == "Data.fs"
    source = FileStorage(str(data), read_only=True)
    assert 0 < metadata["workload_other_objects"] < len(source)
    source.close()
    assert data.read_bytes() == before


def test_missing_data_and_data_of_another_application_are_refused(
    place: Path, workload: Path
) -> None:
    DB(FileStorage(str(place / "Other.fs"))).close()
    for name, why in (("Other.fs", "it has only 1 of the"), ("missing", "No such file")):
        words = ("--data", str(place / name))
        done = replay(place, contenders("filestorage"), workload, *words)
        assert done.status == 2
        assert done.complaint.startswith(f"zodbshootout: --data: {place / name}")
        assert why in done.complaint
