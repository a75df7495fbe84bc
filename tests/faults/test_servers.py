"""Servers that end during a run, refuse connections or never answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.runs import FaultyRun, check_failed, faulty, measure, measure_together, outcomes
from tests.integration.command import left_behind, open_directory

ZEO = "<zeoclient>\nserver $main\n</zeoclient>\n"
BOTH = ("add", "cold")


def zeo_server(name: str, path: str) -> str:
    return f"<zeoserver {name}>\n<filestorage>\npath {path}\n</filestorage>\n</zeoserver>\n"


ZEO_SERVER = zeo_server("main", "$scratch/main.fs")


def relstorage(adapter: str, *settings: str, more: str = "") -> str:
    lines = "".join(f"{line}\n" for line in settings)
    return f"<relstorage>\n{more}<{adapter}>\n{lines}</{adapter}>\n</relstorage>\n"


def contender(name: str, storage: str) -> str:
    return f"<zodb {name}>\n{storage}</zodb>\n"


DATABASE_SERVERS = "<postgresqlserver pg/>\n<mysqlserver my/>\n"
POSTGRESQL = "host='$pg_host' port='$pg_port' user='zodbshootout' dbname='zodbshootout'"
PLACE = "host $my_host", "port $my_port", "db zodbshootout"
STORAGES = {
    "zeo": ("main", ZEO),
    "postgresql": ("pg", relstorage("postgresql", f"dsn {POSTGRESQL} password='$pg_password'")),
    "mariadb": (
        "my",
        relstorage("mysql-or-mariadb", *PLACE, "user zodbshootout", "passwd $my_password"),
    ),
}
"""The server of each contender, and a storage that it serves."""
IMPORTS = "%import faulty\n%import relstorage\n%import zodbshootout.mysql\n"

pytestmark = [
    pytest.mark.servers("PostgreSQL", "MariaDB"),
    pytest.mark.xdist_group("faulty servers"),
]


@pytest.fixture
def place() -> Iterator[Path]:
    with open_directory() as path:
        yield path


@pytest.fixture(scope="module")
def killed() -> Iterator[FaultyRun]:
    """A run in which a server of each kind is killed while its contender is measured."""
    text = ZEO_SERVER + DATABASE_SERVERS
    for name, (_, storage) in STORAGES.items():
        text += faulty(name, f"kill-{name}", storage, during="run")
    with open_directory() as place:
        yield measure_together(place, text, "--timeout", "60", imports=IMPORTS)


@pytest.mark.parametrize("name", STORAGES)
def test_a_server_killed_on_the_clock_fails_only_its_contender(
    name: str, killed: FaultyRun
) -> None:
    server, _ = STORAGES[name]
    killed.check_failed(name, f"server {server} was killed by SIGKILL", benchmarks=BOTH)
    killed.check_others_are_measured(*STORAGES)


def test_a_server_killed_while_a_slice_is_prepared_fails_its_contender(place: Path) -> None:
    text = ZEO_SERVER + faulty("bad", "kill-zeo", ZEO, during="supply")
    done = measure(place, text, "--timeout", "60")
    check_failed(done, place, "server main was killed by SIGKILL", failed=("bad add", "bad cold"))


@pytest.mark.servers("PgBouncer")
def test_a_pooler_killed_on_the_clock_fails_its_contender(place: Path) -> None:
    pool = POSTGRESQL.replace("$pg_host", "$pool_host").replace("$pg_port", "$pool_port")
    servers = "<postgresqlserver pg/>\n<pgbouncer pool>\nserver $pg\n</pgbouncer>\n"
    storage = relstorage("postgresql", f"dsn {pool} password='$pg_password'")
    text = servers + faulty("bad", "kill-pooler", storage, during="run")
    done = measure(place, text, "--timeout", "60", imports=IMPORTS)
    check_failed(done, place, "server pool was killed by SIGKILL", failed=("bad add", "bad cold"))


def test_a_server_killed_between_runs_is_reported_and_others_are_measured(place: Path) -> None:
    text = ZEO_SERVER + faulty("bad", "kill-zeo", ZEO, during="set_up", when=place / "a.json")
    done = measure(place, text, "--timeout", "60", "-p", "2")
    assert done.status == 3
    assert {state for name, (state, _) in outcomes(place).items() if name.startswith("good")} == {
        "measured"
    }
    assert "server main was killed by SIGKILL" in done.out
    assert left_behind(place) == []


# Databases that cannot be opened


@contextmanager
def silent_server() -> Iterator[int]:
    """Run a server that accepts connections and never answers; yield its port."""
    taken = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def take() -> None:
            while True:
                try:
                    taken.append(listening.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in taken:
        connection.close()


INACCESSIBLE = {
    "wrong_postgresql": relstorage("postgresql", f"dsn {POSTGRESQL} password='wrong one'"),
    "wrong_mysql": relstorage("mysql-or-mariadb", *PLACE, "user zodbshootout", "passwd wrong one"),
    "no_schema": relstorage(
        "postgresql", f"dsn {POSTGRESQL} password='$pg_password'", more="create-schema false\n"
    ),
    "no_zeo": "<zeoclient>\nserver localhost:1\n</zeoclient>\n",
    "no_postgresql": relstorage("postgresql", "dsn host='localhost' port='1' dbname='x' user='y'"),
    "other_section": STORAGES["mariadb"][1].replace("mysql-or-mariadb", "mysql"),
    "failing": "<zeoclient>\nserver $broken\n</zeoclient>\n",
    "silent": relstorage("postgresql", "dsn host='127.0.0.1' port='{port}' dbname='x' user='y'"),
}


@pytest.fixture(scope="module")
def inaccessible() -> Iterator[FaultyRun]:
    """A run with contenders that cannot open their databases, next to a good one."""
    text = DATABASE_SERVERS + zeo_server("broken", "taken")
    text += "".join(contender(name, storage) for name, storage in INACCESSIBLE.items())
    with open_directory() as place, silent_server() as port:
        (place / "taken").mkdir()
        text = text.replace("{port}", str(port))
        yield measure_together(place, text, imports=IMPORTS)


def test_contenders_that_cannot_open_their_databases_do_not_affect_others(
    inaccessible: FaultyRun,
) -> None:
    inaccessible.check_others_are_measured(*INACCESSIBLE)


def test_a_refused_connection_fails_the_contender(inaccessible: FaultyRun) -> None:
    inaccessible.check_failed(
        "no_zeo", "no ZEO server at localhost:1; start one there", benchmarks=BOTH
    )
    inaccessible.check_failed("no_postgresql", benchmarks=BOTH)


@pytest.mark.parametrize("name", ["wrong_postgresql", "wrong_mysql"])
def test_a_wrong_password_fails_the_contender_and_is_not_printed(
    name: str, inaccessible: FaultyRun
) -> None:
    inaccessible.check_failed(name, "cannot be opened: ", benchmarks=BOTH)
    assert "wrong one" not in inaccessible.done.out + inaccessible.done.err


def test_relstorages_own_mysql_section_fails_for_mariadb_with_advice(
    inaccessible: FaultyRun,
) -> None:
    advice = "for this server write '%import zodbshootout.mysql' and <mysql-or-mariadb>"
    inaccessible.check_failed("other_section", advice, benchmarks=BOTH)


def test_a_missing_schema_fails_the_contender(inaccessible: FaultyRun) -> None:
    inaccessible.check_failed("no_schema", "cannot be opened: ", benchmarks=BOTH)


def test_a_storage_that_never_answers_fails_at_the_time_limit(inaccessible: FaultyRun) -> None:
    inaccessible.check_failed(
        "silent",
        "cannot be opened: not done within its time limit of 8 s (--timeout)",
        benchmarks=BOTH,
    )
    waiting = "silent: waiting for it to open, at most 8 s (--timeout)"
    assert waiting in inaccessible.done.err


def test_a_server_that_fails_to_start_is_reported_with_its_last_output(
    inaccessible: FaultyRun,
) -> None:
    inaccessible.check_failed(
        "failing", "server broken ended at once:", "Is a directory", benchmarks=BOTH
    )
