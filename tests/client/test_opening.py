"""Opening a DB from its specification."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from zodbshootout.client.database import open_db, prelude
from zodbshootout.client.storage_types.relstorage import RelStorageType
from zodbshootout.model.outcome import BadSection
from zodbshootout.model.specification import Storage

FILE = (
    "<zodb a>\ncache-size 77\npool-size 3\n<filestorage>\npath ${here}/x.fs\n</filestorage>\n"
    "</zodb>\n"
)
SQLITE = (
    "%import relstorage\n<zodb a>\n<relstorage>\n<sqlite3>\ndata-dir $here/s\n</sqlite3>\n"
    "</relstorage>\n</zodb>\n"
)


def of_uri(uri: str) -> Storage:
    return Storage(f"<zodburi a>\nuri {uri}\n</zodburi>\n")


def test_a_section_is_opened_with_its_names_substituted(tmp_path: Path) -> None:
    odd = tmp_path / "a $b $$ ${c} d"
    odd.mkdir()
    with closing(open_db(Storage(FILE, names={"here": str(odd)}))) as db:
        assert db.storage.getName() == str(odd / "x.fs")
        assert (db.getCacheSize(), db.getPoolSize()) == (77, 3)


def test_a_section_imports_its_packages_and_settles_its_driver(tmp_path: Path) -> None:
    with closing(open_db(Storage(SQLITE, names={"here": str(tmp_path)}))) as db:
        assert db.storage._adapter.driver.__name__ == "sqlite3"


def test_imports_of_one_section_do_not_affect_another(tmp_path: Path) -> None:
    open_db(Storage(SQLITE, names={"here": str(tmp_path)})).close()
    with pytest.raises(BadSection, match="unknown type name: 'relstorage'"):
        open_db(Storage(SQLITE.partition("\n")[2], names={"here": str(tmp_path)}))


def test_a_uri_is_opened_with_its_zodburi_options(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/x.fs?connection_cache_size=77&database_name=d"
    with closing(open_db(of_uri(uri))) as db:
        assert db.storage.getName() == str(tmp_path / "x.fs")
        assert (db.getCacheSize(), db.database_name) == (77, "d")


@pytest.mark.parametrize(
    "uri",
    [
        "sqlite://?data_dir={}/s",
        "sqlite://?data_dir={}/s&driver=auto",
        "sqlite://?data_dir={}/s&driver=sqlite3",
        "sqlite://?data_dir={}/s#fragment",
    ],
)
def test_opening_a_uri_settles_its_driver(uri: str, tmp_path: Path) -> None:
    with closing(open_db(of_uri(uri.format(tmp_path)))) as db:
        assert db.storage._adapter.driver.__name__ == "sqlite3"


def test_opening_a_zconfig_uri_settles_the_driver_in_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[str] = []
    monkeypatch.setattr(
        RelStorageType, "settle", lambda section: settled.append(type(section).__name__)
    )
    (tmp_path / "zodb.conf").write_text(SQLITE.replace("$here", str(tmp_path)))
    open_db(of_uri(f"zconfig://{tmp_path}/zodb.conf")).close()
    assert settled == ["RelStorageFactory"]


def test_a_storage_is_closed_if_its_db_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = of_uri(f"file://{tmp_path}/x.fs")

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("ZODB.DB", fail)
        open_db(storage)
    open_db(storage).close()  # the file is not locked any more


def test_names_are_defined_literally() -> None:
    assert prelude({"a": "$b", "c": "d"}) == "%define a $$b\n%define c d\n"


@pytest.mark.slow
def test_a_client_imports_neither_other_subpackages_nor_unneeded_libraries() -> None:
    code = (
        "import sys, zodbshootout.client.database\n"
        "from zodbshootout.client.storage_types import storage_types\n"
        "storage_types()\n"
        "ours = {name.split('.')[1] for name in sys.modules if name.startswith('zodbshootout.')}\n"
        "print(*sorted(ours - {'client', 'errors', 'model', 'plugins', 'versions'}))\n"
        "print(*sorted({'ZEO', 'relstorage', 'zodburi', 'pyperf', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n\n"
