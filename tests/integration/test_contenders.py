"""Measure and verify storages on real servers through every driver."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.integration.command import cells, left_behind, metadata_of, run

pytestmark = pytest.mark.servers("PostgreSQL", "MariaDB", "memcached", "MySQLdb")

OBJECTS = 2
SINGLE = "--debug-single-value"
"""No traffic is counted then, for which each cell would get a relay and a client more."""
BRIEF = ("--object-counts", str(OBJECTS), SINGLE)


def relstorage(name: str, adapter: str, *options: str, history: bool = False) -> str:
    lines = "".join(f"{option}\n" for option in options)
    return (
        f"<zodb {name}>\ncache-size 5000\n<relstorage>\nkeep-history {str(history).lower()}\n"
        f"blob-dir $scratch/{name}.blobs\n{lines}{adapter}</relstorage>\n</zodb>\n"
    )


def postgresql(name: str, *options: str, driver: str = "auto", history: bool = False) -> str:
    adapter = (
        f"<postgresql>\ndriver {driver}\ndsn host='$pg_host' port='$pg_port' dbname='{name}' "
        "user='zodbshootout' password='$pg_password'\n</postgresql>\n"
    )
    return relstorage(name, adapter, *options, history=history)


def mysql(name: str, *options: str, driver: str = "auto", history: bool = False) -> str:
    adapter = (
        f"<mysql-or-mariadb>\ndriver {driver}\nhost $my_host\nport $my_port\ndb {name}\n"
        "user zodbshootout\npasswd $my_password\n</mysql-or-mariadb>\n"
    )
    return relstorage(name, adapter, *options, history=history)


def sqlite(name: str, *options: str, driver: str = "auto", history: bool = False) -> str:
    adapter = f"<sqlite3>\ndriver {driver}\ndata-dir $scratch/{name}\n</sqlite3>\n"
    return relstorage(name, adapter, *options, history=history)


MEMCACHED = ("cache-servers $mc", "cache-module-name relstorage.pylibmc_wrapper")
PYTHON_MEMCACHED = ("cache-servers $mc", "cache-module-name memcache")


def persistent(name: str) -> str:
    return f"cache-local-dir $scratch/{name}.cache"


CONTENDERS = {
    "pg_hp": postgresql("pg_hp", history=True),
    "pg_hf": postgresql("pg_hf", persistent("pg_hf")),
    "pg_lost": postgresql("pg_lost", "cache-local-dir /proc/nonexistent/x"),
    "pg_mc": postgresql("pg_mc", *MEMCACHED),
    "pg_mc_python": postgresql("pg_mc_python", *PYTHON_MEMCACHED),
    "pg_pg8000_hf": postgresql("pg_pg8000_hf", driver="pg8000"),
    "my_hp": mysql("my_hp", persistent("my_hp"), history=True),
    "my_hf": mysql("my_hf"),
    "my_mc": mysql("my_mc", *MEMCACHED),
    "my_pymysql_hf": mysql("my_pymysql_hf", driver="PyMySQL"),
    "sqlite_hp": sqlite("sqlite_hp", history=True),
    "sqlite_hf": sqlite("sqlite_hf", persistent("sqlite_hf")),
}
"""Each driver and each kind of cache, and each server with and without history."""
DRIVERS = {
    "pg_hf": "psycopg2",
    "pg_pg8000_hf": "pg8000",
    "my_hf": "MySQLdb",
    "my_pymysql_hf": "PyMySQL",
    "sqlite_hf": "sqlite3",
}
MYSQL = "(MariaDB|MySQL)"
SERVERS = {
    "pg_mc": ("PostgreSQL server", ("PostgreSQL", "memcached", "pylibmc")),
    "pg_mc_python": ("PostgreSQL server", ("PostgreSQL", "memcached", "python-memcached")),
    "pg_pg8000_hf": ("PostgreSQL server", ("PostgreSQL", "pg8000")),
    "my_hf": (f"{MYSQL} server", (MYSQL, "mysqlclient")),
    "my_pymysql_hf": (f"{MYSQL} server", (MYSQL, "PyMySQL")),
    "sqlite_hf": ("SQLite page cache", ("SQLite",)),
}
"""The caches that may serve a cold read, and the products with a version in the metadata."""
GREENLETS = {
    "pg_gevent_hp": postgresql("pg_gevent_hp", driver="gevent psycopg2", history=True),
    "my_gevent_hf": mysql("my_gevent_hf", driver="gevent MySQLdb"),
    "sqlite_gevent": sqlite("sqlite_gevent", driver="gevent sqlite3"),
}
PATCHED = {
    "pg_pg8000_hp": postgresql("pg_pg8000_hp", driver="pg8000", history=True),
    "my_pymysql_hp": mysql("my_pymysql_hp", driver="PyMySQL", history=True),
}
"""Drivers without support for gevent, which rely on its patches to Python."""


def write_configuration(path: Path, contenders: dict[str, str]) -> None:
    """Write a configuration with contenders, a database for each of them, and their servers."""

    def databases(prefix: str) -> str:
        return "".join(f"database {name}\n" for name in contenders if name.startswith(prefix))

    path.write_text(
        "%import relstorage\n%import zodbshootout.mysql\n"
        f"<postgresqlserver pg>\n{databases('pg_')}</postgresqlserver>\n"
        f"<mysqlserver my>\n{databases('my_')}</mysqlserver>\n"
        f"<memcachedserver mc>\n</memcachedserver>\n{''.join(contenders.values())}"
    )


def check_all_measured(path: Path, contenders: dict[str, str], benchmarks: list[str]) -> None:
    states = {key: state for key, (state, _) in cells(path).items()}
    assert states == {
        (name, benchmark): "measured" for name in contenders for benchmark in benchmarks
    }


def fact(path: Path, benchmark: str, name: str) -> object:
    return metadata_of(path, benchmark)[name]


def test_every_server_driver_and_cache_is_measured(place: Path) -> None:
    benchmarks = ["warm", "cold"]  # these store objects before they read them
    write_configuration(place / "x.conf", CONTENDERS)
    done = run(place, "x.conf", *benchmarks, "-c", "1", *BRIEF, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    check_all_measured(place / "a.cells.jsonl", CONTENDERS, benchmarks)
    results = place / "a.d"
    for name, driver in DRIVERS.items():
        assert fact(results / f"{name}.json", "cold", "driver") == driver
    for name in ("pg_mc", "pg_mc_python", "my_mc"):
        assert "memcached" in str(fact(results / f"{name}.json", "cold", "cleared_caches"))
    for name, (cache, versions) in SERVERS.items():
        metadata = metadata_of(results / f"{name}.json", "cold")
        left, system = json.loads(metadata["uncleared_caches"])
        assert re.fullmatch(cache, left)
        assert system == "operating system"
        for version in versions:
            assert any(re.fullmatch(f"version_{version}", key) for key in metadata)
    for name in ("pg_hf", "my_hp"):
        hits = fact(results / f"{name}.json", "warm", "storage_cache_hits")
        assert isinstance(hits, int)
        assert hits > 0
    served = "warm: the persistent cache (cache-local-dir) served"
    lost = "can clients read and write it, and is it large enough?"
    assert f"{served} 100% of the loads of pg_hf, my_hp; 0% of pg_lost: {lost}\n" in done.out
    assert "reported as MySQL 5.7.44" in str(fact(results / "my_hf.json", "cold", "corrections"))
    assert "foreign keys" in str(fact(results / "my_hp.json", "cold", "corrections"))
    assert left_behind(place) == []


@pytest.mark.parametrize(
    ("words", "benchmarks", "contenders"),
    [
        ((), ["cold", "conflicts"], GREENLETS | PATCHED),
        (("--threads", "unique"), ["conflicts"], GREENLETS),
    ],
)
def test_gevent_and_patched_drivers_are_measured_with_greenlets(
    words: tuple[str, ...], benchmarks: list[str], contenders: dict[str, str], place: Path
) -> None:
    write_configuration(place / "x.conf", contenders)
    how = ("--gevent", *words, "-c", "2", *BRIEF)
    done = run(place, "x.conf", *benchmarks, *how, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    check_all_measured(place / "a.cells.jsonl", contenders, benchmarks)
    assert left_behind(place) == []


@pytest.mark.parametrize("words", [("conflicts",), ("cold", "--threads")])
def test_a_large_crew_is_measured_on_each_server(words: tuple[str, ...], place: Path) -> None:
    how = ("-c", "10", "--object-counts", "1", SINGLE)
    done = run(place, "sample", *words, *how, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    check_all_measured(
        place / "a.cells.jsonl", dict.fromkeys(("postgresql", "mysql", "mysql_mc", "zeo"), ""),
        [words[0]],
    )  # fmt: skip
    assert left_behind(place) == []


@pytest.mark.parametrize("name", ["pg", "website-sample"])
def test_the_sample_configurations_run_unchanged(name: str, place: Path) -> None:
    done = run(place, name, "hot", "--threads", *BRIEF, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    assert {state for state, _ in cells(place / "a.cells.jsonl").values()} == {"measured"}
    assert left_behind(place) == []
