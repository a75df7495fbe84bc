"""Count round trips and bytes through each driver and each way of connecting with a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.integration.command import SOURCES, left_behind, metadata_of, open_directory, run

# The runs are shared by the tests of the module.
pytestmark = [
    pytest.mark.servers("PostgreSQL", "PgBouncer", "MariaDB", "memcached", "MySQLdb"),
    pytest.mark.xdist_group("traffic"),
    pytest.mark.timeout(900),
]

OBJECTS, SIZE = 10, 300
BRIEF = ("update", "--object-counts", str(OBJECTS), "-p", "1", "-n", "1", "-l", "1", "-o", "a.json")
Metadata = Mapping[str, object]
Facts = Mapping[str, Metadata]
"""The metadata of an update, by contender."""


def relstorage(name: str, adapter: str, *options: str) -> str:
    lines = "".join(f"{option}\n" for option in options)
    return (
        f"<zodb {name}>\n<relstorage>\nkeep-history false\n{lines}{adapter}</relstorage>\n</zodb>\n"
    )


def postgresql(
    name: str, driver: str, dsn: str = "", *options: str, server: str = "pg", of: str = ""
) -> str:
    """Return a contender on a server, whose password may be that *of* another one behind it."""
    dsn = dsn or f"host='${server}_host'"
    settings = f"{dsn} dbname='{name}' user='zodbshootout' password='${of or server}_password'"
    adapter = (
        f"<postgresql>\ndriver {driver}\ndsn {settings} port='${server}_port'\n</postgresql>\n"
    )
    return relstorage(name, adapter, *options)


def mysql(name: str, driver: str, *more: str, server: str = "my") -> str:
    address = f"host ${server}_host\nport ${server}_port\nuser zodbshootout\n"
    lines = "".join(f"{line}\n" for line in (f"passwd ${server}_password", *more))
    text = f"driver {driver}\ndb {name}\n{address}{lines}"
    return relstorage(name, f"<mysql-or-mariadb>\n{text}</mysql-or-mariadb>\n")


def zeo(name: str, *settings: str) -> str:
    lines = "".join(f"{setting}\n" for setting in settings)
    return f"<zodb {name}>\n<clientstorage>\n{lines}</clientstorage>\n</zodb>\n"


def uri(name: str, text: str) -> str:
    return f"<zodburi {name}>\nuri {text}\n</zodburi>\n"


CACHED = ("cache-servers $mc", "cache-module-name relstorage.pylibmc_wrapper")
SQLITE = "<sqlite3>\ndata-dir $scratch/sqlite\n</sqlite3>\n"
CONTENDERS = {
    "zeo": zeo("zeo", "server $main"),
    "zeo_ssl": zeo(
        "zeo_ssl", "server localhost:$safe_port", "<ssl>", "certificate $safe_certificate",
        "key $safe_key", "authenticate $safe_authority", "check-hostname true", "</ssl>",
    ),
    "zeo_uri": uri("zeo_uri", "zeo://$main?storage=uri"),
    # libpq would encrypt by default.
    "pg_psycopg2": postgresql("pg_psycopg2", "psycopg2", "host='$pg_host' sslmode=disable"),
    "pg_psycopg2cffi": postgresql("pg_psycopg2cffi", "psycopg2cffi"),
    "pg_pg8000": postgresql("pg_pg8000", "pg8000"),
    "pg_require": postgresql(
        "pg_require", "psycopg2", "host='$tls_host' sslmode=require", server="tls"
    ),
    # libpq looks for host in the certificate, and connects to hostaddr.
    "pg_full": postgresql(
        "pg_full", "psycopg2",
        "host=localhost hostaddr=$tls_host sslmode=verify-full sslrootcert=$tls_authority",
        server="tls",
    ),
    "pg_pooled": postgresql("pg_pooled", "psycopg2", server="pool", of="pg"),
    "pg_mc": postgresql("pg_mc", "psycopg2", "host='$pg_host'", *CACHED),
    "sqlite_mc": relstorage("sqlite_mc", SQLITE, *CACHED),
    "my_mysqldb": mysql("my_mysqldb", "MySQLdb"),
    "my_pymysql": mysql("my_pymysql", "PyMySQL"),
    "my_ssl": mysql("my_ssl", "PyMySQL", "read_default_file $safe_my_options", server="safe_my"),
    "my_connector": mysql("my_connector", "Py MySQL Connector/Python"),
}  # fmt: skip
TRIPS = {
    **dict.fromkeys(("zeo", "zeo_ssl", "zeo_uri"), "2"),
    **dict.fromkeys(("pg_psycopg2", "pg_require", "pg_full", "pg_pooled", "pg_mc"), "12"),
    "pg_psycopg2cffi": "11",
    "pg_pg8000": "26",
    **dict.fromkeys(("my_mysqldb", "my_pymysql", "my_ssl", "my_connector"), "14"),
}
"""The round trips of an update, however many objects it has."""
NEEDED = {"pg_psycopg2cffi": "psycopg2cffi", "my_connector": "mysql"}
"""The modules of drivers that may be missing."""
INSTALLED = [name for name in CONTENDERS if find_spec(NEEDED.get(name, "ZODB"))]


@pytest.fixture(scope="module")
def counted() -> Iterator[Facts]:
    """The metadata of one run of all contenders."""
    with open_directory() as place:
        contenders = [CONTENDERS[name] for name in INSTALLED]

        def server(kind: str, name: str, *line: str) -> str:
            mine = [one for one in INSTALLED if f"${name}_password" in CONTENDERS[one]]
            lines = "".join(f"{text}\n" for text in (*line, *(f"database {one}" for one in mine)))
            return f"<{kind} {name}>\n{lines}</{kind}>\n"

        (place / "x.conf").write_text(
            "%import ZEO\n%import relstorage\n%import zodbshootout.mysql\n"
            "<zeoserver main>\n<mappingstorage>\n</mappingstorage>\n"
            "<mappingstorage uri>\n</mappingstorage>\n</zeoserver>\n"
            "<zeoserver safe>\nssl true\n<mappingstorage>\n</mappingstorage>\n</zeoserver>\n"
            "<memcachedserver mc>\n</memcachedserver>\n"
            f"{server('postgresqlserver', 'pg')}{server('postgresqlserver', 'tls', 'ssl true')}"
            "<pgbouncer pool>\nserver $pg\n</pgbouncer>\n"
            f"{server('mysqlserver', 'my')}{server('mysqlserver', 'safe_my', 'ssl true')}"
            f"{''.join(contenders)}"
        )
        # The folder tests/mysql would hide MySQL Connector/Python.
        done = run(place, "x.conf", "-c", "1", *BRIEF, PYTHONPATH=str(SOURCES))
        assert done.status == 0, done.out + done.err
        assert left_behind(place) == []
        yield facts(place, INSTALLED)


def facts(place: Path, names: Sequence[str]) -> Facts:
    return {name: metadata_of(place / "a.d" / f"{name}.json", "update") for name in names}


@pytest.mark.parametrize("name", INSTALLED)
def test_traffic_is_counted_however_a_server_is_reached(name: str, counted: Facts) -> None:
    metadata = counted[name]
    assert "traffic_not_counted" not in metadata
    if name in TRIPS:
        assert set(str(metadata["trips"]).split()) == {TRIPS[name]}
        assert all(size > OBJECTS * SIZE for size in numbers(metadata, "sent_bytes"))
    assert ("cache_trips" in metadata) == name.endswith("_mc")


def test_each_object_of_a_commit_is_a_round_trip_of_pylibmc_to_memcached(counted: Facts) -> None:
    assert "trips" not in counted["sqlite_mc"]
    for name in ("pg_mc", "sqlite_mc"):
        assert set(numbers(counted[name], "cache_trips")) == {OBJECTS}
        assert min(numbers(counted[name], "cache_sent_bytes")) > OBJECTS * SIZE


@pytest.mark.parametrize(
    ("plain", "encrypted"),
    [
        ("zeo", "zeo_ssl"),
        ("pg_psycopg2", "pg_require"),
        ("pg_psycopg2", "pg_full"),
        ("my_pymysql", "my_ssl"),
    ],
)
def test_encryption_adds_bytes(plain: str, encrypted: str, counted: Facts) -> None:
    sent = min(numbers(counted[encrypted], "sent_bytes"))
    assert sent > max(numbers(counted[plain], "sent_bytes"))


def numbers(metadata: Metadata, key: str) -> list[int]:
    return [int(number) for number in str(metadata[key]).split()]


@pytest.mark.parametrize(
    ("words", "contenders", "trips"),
    [
        (
            ("--gevent",),
            [
                postgresql("pg_gevent", "gevent psycopg2"),
                postgresql("pg_pg8000", "pg8000"),
                mysql("my_gevent", "gevent MySQLdb"),
            ],
            {"pg_gevent": 11, "pg_pg8000": 26, "my_gevent": 14},
        ),
        (
            ("--threads", "shared"),
            [zeo("zeo", "server $main"), postgresql("pg_psycopg2", "psycopg2")],
            {"zeo": 2, "pg_psycopg2": 12},
        ),
    ],
)
def test_one_client_of_several_in_a_process_is_counted(
    words: Sequence[str], contenders: Sequence[str], trips: Mapping[str, int], place: Path
) -> None:
    def databases(prefix: str) -> str:
        return "".join(f"database {name}\n" for name in trips if name.startswith(prefix))

    (place / "x.conf").write_text(
        "%import ZEO\n%import relstorage\n%import zodbshootout.mysql\n"
        "<zeoserver main>\n<mappingstorage>\n</mappingstorage>\n</zeoserver>\n"
        f"<postgresqlserver pg>\n{databases('pg')}</postgresqlserver>\n"
        f"<mysqlserver my>\n{databases('my')}</mysqlserver>\n{''.join(contenders)}"
    )
    done = run(place, "x.conf", "-c", "2", *words, *BRIEF)
    assert done.status == 0, done.out + done.err
    counted = facts(place, list(trips))
    assert {name: set(numbers(counted[name], "trips")) for name in trips} == {
        name: {number} for name, number in trips.items()
    }
    assert left_behind(place) == []
