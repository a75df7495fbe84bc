"""A server that ends in the middle of a run, refuses, or never answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.runs import check_failed, faulty, measure, outcomes
from tests.integration.command import left_behind, open_directory

ZEO_SERVER = (
    "<zeoserver main>\n<filestorage>\npath $scratch/main.fs\n</filestorage>\n</zeoserver>\n"
)
ZEO = "<zeoclient>\nserver $main\n</zeoclient>\n"


def relstorage(adapter: str, *settings: str, more: str = "") -> str:
    lines = "".join(f"{line}\n" for line in settings)
    return f"<relstorage>\n{more}<{adapter}>\n{lines}</{adapter}>\n</relstorage>\n"


def contender(name: str, storage: str) -> str:
    return f"<zodb {name}>\n{storage}</zodb>\n"


POSTGRESQL = "host='$main_host' port='$main_port' user='zodbshootout' dbname='zodbshootout'"
PLACE = "host $main_host", "port $main_port", "db zodbshootout"
KILLED = {
    "zeo": (ZEO_SERVER, ZEO),
    "postgresql": (
        "<postgresqlserver main/>\n",
        relstorage("postgresql", f"dsn {POSTGRESQL} password='$main_password'"),
    ),
    "mariadb": (
        "<mysqlserver main/>\n",
        relstorage("mysql-or-mariadb", *PLACE, "user zodbshootout", "passwd $main_password"),
    ),
}
IMPORTS = "%import faulty\n%import relstorage\n%import zodbshootout.mysql\n"


@pytest.fixture
def place() -> Iterator[Path]:
    with open_directory() as path:
        yield path


@pytest.mark.parametrize(
    ("server", "where"),
    [("zeo", "run"), ("zeo", "supply"), ("postgresql", "run"), ("mariadb", "run")],
)
def test_a_server_that_is_killed(server: str, where: str, place: Path) -> None:
    section, storage = KILLED[server]
    text = section + faulty("bad", f"kill-{server}", storage, during=where)
    done = measure(place, text, "--timeout", "60", imports=IMPORTS)
    check_failed(done, place, "server main was killed by SIGKILL", failed=("bad add", "bad cold"))


def test_a_server_that_is_killed_between_runs(place: Path) -> None:
    text = ZEO_SERVER + faulty("bad", "kill-zeo", ZEO, during="set_up", when=place / "a.json")
    done = measure(place, text, "--timeout", "60", "-p", "2")
    assert done.status == 3
    assert {state for name, (state, _) in outcomes(place).items() if name.startswith("good")} == {
        "measured"
    }
    assert "server main was killed by SIGKILL" in done.out
    assert left_behind(place) == []


def test_a_connection_that_is_refused(place: Path) -> None:
    text = contender("bad", "<zeoclient>\nserver localhost:1\n</zeoclient>\n") + contender(
        "worse", relstorage("postgresql", "dsn host='localhost' port='1' dbname='x' user='y'")
    )
    done = measure(place, text, imports="%import relstorage\n")
    assert done.status == 3
    found = outcomes(place)
    assert "no ZEO server at localhost:1; start one there" in found["bad add"][1]
    assert found["worse add"][0] == found["worse cold"][0] == "failed"
    assert found["good add"][0] == found["good cold"][0] == "measured"
    assert "Traceback" not in done.out + done.err
    assert left_behind(place) == []


@pytest.mark.parametrize("server", ["postgresqlserver", "mysqlserver"])
def test_authentication_that_is_refused(server: str, place: Path) -> None:
    storage = {
        "postgresqlserver": relstorage("postgresql", f"dsn {POSTGRESQL} password='wrong one'"),
        "mysqlserver": relstorage(
            "mysql-or-mariadb", *PLACE, "user zodbshootout", "passwd wrong one"
        ),
    }[server]
    done = measure(place, f"<{server} main/>\n" + contender("bad", storage), imports=IMPORTS)
    check_failed(done, place, "cannot be opened: ", failed=("bad add", "bad cold"))
    assert "wrong one" not in done.out + done.err


def test_a_schema_that_is_missing(place: Path) -> None:
    storage = relstorage(
        "postgresql", f"dsn {POSTGRESQL} password='$main_password'", more="create-schema false\n"
    )
    text = "<postgresqlserver main/>\n" + contender("bad", storage)
    done = measure(place, text, imports=IMPORTS)
    check_failed(done, place, "cannot be opened: ", failed=("bad add", "bad cold"))


@contextmanager
def silent_server() -> Iterator[int]:
    """Have a server that takes connections and says nothing; return its port."""
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
    for each in taken:
        each.close()


def test_a_storage_that_never_answers_while_it_is_opened(place: Path) -> None:
    with silent_server() as port:
        storage = relstorage(
            "postgresql", f"dsn host='127.0.0.1' port='{port}' dbname='x' user='y'"
        )
        text = contender("bad", storage)
        done = measure(place, text, "--open-timeout", "7", imports=IMPORTS)
    check_failed(
        done,
        place,
        "cannot be opened: not done within its time limit of 7 s (--open-timeout)",
        failed=("bad add", "bad cold"),
    )
    assert "bad: waiting for it to open, 7 s at most (--open-timeout)" in done.err


def test_a_server_that_does_not_come_up_gives_its_last_words(place: Path) -> None:
    (place / "taken").mkdir()
    text = ZEO_SERVER.replace("$scratch/main.fs", "taken") + contender("bad", ZEO)
    done = measure(place, text)
    check_failed(
        done, place, "server main ended at once:", "Is a directory", failed=("bad add", "bad cold")
    )
