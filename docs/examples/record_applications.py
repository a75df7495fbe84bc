"""Record two small applications: one with sessions and counters, and an import.

    python3 record_applications.py DIRECTORY

records into DIRECTORY/sessions.workload and DIRECTORY/import.workload.  Both applications need
ZODB alone.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from BTrees.Length import Length
from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping
from transaction import TransactionManager
from ZODB import DB
from ZODB.FileStorage import FileStorage
from ZODB.POSException import ConflictError

from zodbshootout.recording import record

THREADS = 4
REQUESTS = 500
"""Requests of each thread."""
PAGES = 2000
IMPORTED = 6000
BATCH = 100
"""Objects that are imported in one transaction."""


def main(place: Path) -> None:
    """Record both applications."""
    place.mkdir(parents=True, exist_ok=True)
    with recorded(place / "sessions.workload", make_pages) as db:
        threads = [threading.Thread(target=visit, args=(db, number)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with recorded(place / "import.workload", make_catalogue) as db:
        import_all(db)


@contextmanager
def recorded(path: Path, make: Callable[[PersistentMapping], None]) -> Iterator[DB]:
    """Have a database that is recorded, after its first objects were made."""
    with tempfile.TemporaryDirectory() as directory:
        data = str(Path(directory) / "Data.fs")
        db = DB(FileStorage(data))
        with db.transaction() as connection:
            make(connection.root())
        db.close()
        db = DB(record(FileStorage(data), path), cache_size=500)
        yield db
        db.close()


def make_pages(root: PersistentMapping) -> None:
    """Make the pages, and an empty place for sessions."""
    chance = random.Random(0)
    root["pages"] = OOBTree(
        {n: PersistentMapping(text="x" * int(chance.lognormvariate(6, 1))) for n in range(PAGES)}
    )
    root["sessions"] = OOBTree()
    root["visits"] = Length()


def visit(db: DB, number: int) -> None:
    """Request pages, each in a transaction that is repeated after a conflict."""
    chance = random.Random(number)
    for request in range(REQUESTS):
        transactions = TransactionManager(explicit=True)
        connection = db.open(transactions)
        pages = [int(PAGES * chance.random() ** 3) for _ in range(chance.randrange(1, 10))]
        kind = chance.random()
        while True:
            transactions.begin()
            try:
                show(connection.root(), pages, kind, f"{number}-{request // 10}")
                transactions.commit()
            except ConflictError:
                transactions.abort()
            else:
                break
        connection.close()


def show(root: PersistentMapping, pages: list[int], kind: float, session: str) -> None:
    """Show pages; some visitors log in, or have something in their session change."""
    for page in pages:
        root["pages"][page]["text"]
    if kind < 0.05:
        root["pages"][pages[0]]["text"] = "y" * (100 + 10 * len(pages))
    elif kind < 0.3:
        visitor = root["sessions"].get(session)
        if visitor is None:
            visitor = root["sessions"][session] = PersistentMapping(user=session)
            root["visits"].change(1)
        visitor["last"] = pages[-1]


def make_catalogue(root: PersistentMapping) -> None:
    """Make the indexes to which imported objects are added."""
    root["by name"], root["by size"] = OOBTree(), OOBTree()
    root["number"] = Length()


def import_all(db: DB) -> None:
    """Add objects to two indexes, some hundred in each transaction."""
    chance = random.Random(1)
    for first in range(0, IMPORTED, BATCH):
        with db.transaction() as connection:
            root = connection.root()
            for number in range(first, first + BATCH):
                size = int(chance.lognormvariate(6, 0.7))
                imported = PersistentMapping(name=f"object {number}", text="z" * size)
                root["by name"][imported["name"]] = imported
                root["by size"][size, number] = imported
            root["number"].change(BATCH)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
