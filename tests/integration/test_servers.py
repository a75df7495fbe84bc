"""Servers that a run starts: their settings, their failures and their end."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import psutil
import psycopg2
import pymysql
import pytest

from tests.faults.runs import faulty
from tests.integration.command import (
    OBJECTS,
    cells,
    environment,
    left_behind,
    metadata_of,
    names_in,
    open_directory,
    processes_in,
    run,
    start,
    wait_until,
)

pytestmark = pytest.mark.servers("PostgreSQL", "MariaDB", "memcached", "MySQLdb")

HOST = "127.0.0.1"
FEW = ("--object-counts", str(OBJECTS))
ONCE = (*FEW, "--debug-single-value")
"""Options of a run that ends.  It counts no traffic, for which it would start more processes."""
shares_serving = pytest.mark.xdist_group("a run that serves")
ENDLESS = (*FEW, "-p", "500", "-n", "1", "-l", "2", "-c", "1", "-o", "on.json")
"""Options of a run that goes on until it is killed or interrupted."""


# Contenders and the servers that they need


def postgresql(name: str, database: str, user: str, driver: str, more: str = "") -> str:
    return (
        f"<zodb {name}>\n<relstorage>\n{more}<postgresql>\ndriver {driver}\n"
        f"dsn dbname='{database}' user='{user}' host='$pg_host' port='$pg_port' "
        "password='$pg_password'\n</postgresql>\n</relstorage>\n</zodb>\n"
    )


def filestorage(name: str, path: str) -> str:
    return f"<zodb {name}>\n<filestorage>\npath {path}\n</filestorage>\n</zodb>\n"


def using(server: str) -> str:
    """Return a contender that has a server started but does not connect to it."""
    return filestorage(f"using_{server}", f"$scratch/${server}_port.fs")


def exposing(*servers: str) -> str:
    """Return a contender whose file name contains the ports and passwords of servers."""
    access = "-".join(f"{name}-${name}_port-${name}_password" for name in servers)
    return filestorage("telling", f"told-{access}.fs")


@dataclass(frozen=True)
class Access:
    """The port and the password of a server that a run has started."""

    port: int
    password: str


def access_of_latest_run(place: Path) -> dict[str, Access]:
    """Return the access to each server of the latest run in *place*."""
    path = max(place.glob("told-*.fs"), key=lambda path: path.stat().st_mtime_ns)
    _, *words = path.stem.split("-")
    parts = zip(words[::3], words[1::3], words[2::3], strict=True)
    return {name: Access(int(port), password) for name, port, password in parts}


GOOD = filestorage("good", "$scratch/good.fs")
SERVERS = (
    "<postgresqlserver pg>\ndatabase one\ndatabase other\nuser alice\nuser bob\n<settings>\n"
    "shared_buffers 24MB\nfsync off\n</settings>\n</postgresqlserver>\n"
    "<mysqlserver maria>\ndatabase a_b\nuser carol\n<settings>\n"
    "innodb_buffer_pool_size 16M\nskip-log-bin\n</settings>\n</mysqlserver>\n"
    "<memcachedserver cache>\n<settings>\nmemory-limit 80\n</settings>\n</memcachedserver>\n"
    "<zeoserver zeo>\n<filestorage>\npath $scratch/zeo.fs\n</filestorage>\n</zeoserver>\n"
)
PYLIBMC = "cache-servers $cache\ncache-module-name relstorage.pylibmc_wrapper\n"
PYTHON_MEMCACHED = "cache-servers $second\ncache-module-name memcache\n"
WITH_PYTHON_MEMCACHED = "<memcachedserver second/>\n" + postgresql(
    "through_second", "one", "alice", "pg8000", PYTHON_MEMCACHED
)
EVERYTHING = (
    f"%import relstorage\n{SERVERS}"
    + postgresql("through_pg", "other", "bob", "psycopg2", PYLIBMC)
    + "<zodb through_zeo>\n<zeoclient>\nserver $zeo\n</zeoclient>\n</zodb>\n"
    + using("maria")
)


# Runs that go on


@contextmanager
def endless_run(place: Path, *benchmarks: str) -> Iterator[subprocess.Popen[str]]:
    """Start a run that goes on, wait for its first results, and kill it at the end."""
    process = start(place, "x.conf", *benchmarks, *ENDLESS)
    try:
        measured = place / "on.json"
        wait_until(lambda: measured.exists() or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        yield process
    finally:
        process.kill()
        process.communicate()
        wait_until(lambda: processes_in(place) == {})


# Servers as their sections describe them


def test_postgresql_keeps_the_databases_of_each_driver_for_the_next_run(place: Path) -> None:
    preserving = {"hp_psycopg2": "psycopg2"}
    drivers = {**preserving, "hf_pg8000": "pg8000"}
    databases = "".join(f"database {name}\n" for name in drivers)
    contenders = "".join(
        postgresql(name, name, "Some-One", driver, f"keep-history {name in preserving}\n")
        for name, driver in drivers.items()
    )
    (place / "x.conf").write_text(
        f"%import relstorage\n<postgresqlserver pg>\n{databases}user Some-One\ndirectory kept\n"
        "<settings>\nlog_line_prefix of=%u in=%d:\nlog_statement ddl\n</settings>\n"
        f"</postgresqlserver>\n{contenders}{exposing('pg')}"
    )
    log = place / "kept" / "server.log"

    def databases_with_table(table: str) -> set[str]:
        """Return the databases in which a client has created a table."""
        statement = rf"^of=Some-One in=(\w+):.*\s+CREATE TABLE {table}\b"
        return set(re.findall(statement, log.read_text(), re.MULTILINE))

    def measure(*words: str) -> Access:
        done = run(place, "x.conf", *words, "-c", "2", "--threads", *ONCE)
        assert done.status == 0, done.out + done.err
        assert left_behind(place) == []
        return access_of_latest_run(place)["pg"]

    first = measure("add", "-o", "a.json")
    assert databases_with_table("object_state") == set(drivers)
    assert databases_with_table("transaction") == set(preserving)
    for name, driver in drivers.items():
        assert metadata_of(place / "a.d" / f"{name}.json", "add")["driver"] == driver
    before = log.read_text()
    second = measure("cold", "--only", "hf_pg8000", "--only", "telling")
    assert log.read_text().startswith(before)
    assert log.read_text().count("CREATE TABLE") == before.count("CREATE TABLE")
    assert first.password != second.password


def statistics_of(access: Access, kind: str = "") -> Mapping[str, str]:
    """Return the statistics that memcached reports."""
    with socket.create_connection((HOST, access.port), 10) as connection:
        connection.sendall(f"stats {kind}".strip().encode() + b"\r\n")
        with connection.makefile() as lines:
            words = (line.split() for line in iter(lines.readline, "END\n"))
            return {line[1]: line[-1] for line in words}


MEMCACHED = ("cache", "second")


def is_used(access: Access) -> bool:
    """Return whether clients have stored objects in memcached, and have cleared it."""
    statistics = statistics_of(access)
    return int(statistics["cmd_set"]) > 20 and int(statistics["cmd_flush"]) > 0


@pytest.fixture(scope="module")
def serving() -> Iterator[Path]:
    """The directory of a run that goes on with servers of all kinds; tests only read it.

    As soon as it has used memcached, it hangs, because other tests need the processors.
    """
    with open_directory() as path:
        servers = exposing("pg", "maria", "cache", "second")
        idle = faulty("idle", "hang", during="run", when=path / "idle")
        text = f"%import faulty\n{EVERYTHING}{WITH_PYTHON_MEMCACHED}{servers}{idle}"
        (path / "x.conf").write_text(text)
        with endless_run(path, "add", "cold"):
            accesses = access_of_latest_run(path)
            with suppress(AssertionError):  # a test reports it
                wait_until(lambda: all(is_used(accesses[name]) for name in MEMCACHED))
            (path / "idle").touch()
            yield path


def ask_postgresql(access: Access, user: str, database: str, statement: str) -> object:
    with closing(psycopg2.connect(
        host=HOST, port=access.port, user=user, password=access.password, dbname=database
    )) as connection, connection, connection.cursor() as cursor:  # fmt: skip
        cursor.execute(statement)
        return cursor.fetchone()[0] if cursor.description else None


@shares_serving
def test_postgresql_has_the_settings_databases_and_users_of_its_section(serving: Path) -> None:
    access = access_of_latest_run(serving)["pg"]
    assert ask_postgresql(access, "alice", "one", "SHOW shared_buffers") == "24MB"
    assert ask_postgresql(access, "alice", "one", "SHOW fsync") == "off"
    ask_postgresql(access, "alice", "one", "CREATE TABLE hers AS SELECT 7")
    assert ask_postgresql(access, "bob", "one", "SELECT * FROM hers") == 7
    ask_postgresql(access, "bob", "other", "CREATE TABLE his AS SELECT 7")
    ask_postgresql(access, "alice", "other", "DROP TABLE his")


@shares_serving
@pytest.mark.parametrize(
    ("user", "database", "knows_password"),
    [
        ("alice", "one", False),
        ("alice", "third", True),
        ("carol", "one", True),
        ("postgres", "postgres", True),
    ],
)
def test_postgresql_refuses_any_other_user_database_or_password(
    user: str, database: str, knows_password: bool, serving: Path
) -> None:
    access = access_of_latest_run(serving)["pg"]
    tried = access if knows_password else Access(access.port, "guessed")
    with pytest.raises(psycopg2.OperationalError):
        ask_postgresql(tried, user, database, "SELECT 1")


def ask_mariadb(access: Access, user: str, database: str, statement: str) -> object:
    with pymysql.connect(
        host=HOST, port=access.port, user=user, password=access.password, database=database
    ) as connection, connection.cursor() as cursor:  # fmt: skip
        cursor.execute(statement)
        row = cursor.fetchone()
        return row and row[0]


@shares_serving
def test_mariadb_has_the_settings_databases_and_users_of_its_section(serving: Path) -> None:
    access = access_of_latest_run(serving)["maria"]
    assert ask_mariadb(access, "carol", "a_b", "SELECT @@innodb_buffer_pool_size") == 16 << 20
    ask_mariadb(access, "carol", "a_b", "CREATE TABLE hers (a int)")
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        ask_mariadb(access, "carol", "a_b", "CREATE DATABASE axb")


@shares_serving
@pytest.mark.parametrize(
    ("user", "database", "password"),
    [
        ("carol", "a_b", ""),
        ("carol", "mysql", None),
        ("root", "a_b", None),
        ("root", "a_b", ""),
        ("", "a_b", ""),
    ],
)
def test_mariadb_refuses_any_other_user_database_or_password(
    user: str, database: str, password: str | None, serving: Path
) -> None:
    access = access_of_latest_run(serving)["maria"]
    tried = access if password is None else Access(access.port, password)
    with pytest.raises(pymysql.err.OperationalError):
        ask_mariadb(tried, user, database, "SELECT 1")


@shares_serving
def test_memcached_has_the_settings_of_its_section(serving: Path) -> None:
    assert statistics_of(access_of_latest_run(serving)["cache"], "settings")["maxbytes"] == str(
        80 << 20
    )


def connections_of(pid: int) -> Sequence[Any]:
    with suppress(psutil.NoSuchProcess):  # workers come and go
        return psutil.Process(pid).net_connections("inet")
    return ()


@shares_serving
def test_servers_are_reached_through_the_loopback_interface_only(serving: Path) -> None:
    listening = [
        connection.laddr.ip
        for process in processes_in(serving)
        for connection in connections_of(process)
        if connection.status == psutil.CONN_LISTEN or connection.type == socket.SOCK_DGRAM
    ]
    assert len(listening) >= 4
    assert all(ip_address(ip).is_loopback for ip in listening)


@shares_serving
def test_database_servers_and_memcached_never_run_as_root(serving: Path) -> None:
    servers = {"postgres", "mariadbd", "memcached"}
    seen = set()
    for pid, command in processes_in(serving).items():
        program = Path(command.split()[0]).name.rstrip(":")
        if program in servers:
            with suppress(psutil.NoSuchProcess):  # PostgreSQL's processes come and go
                assert psutil.Process(pid).uids().effective != 0, command
                seen.add(program)
    assert seen == servers


@pytest.mark.parametrize("name", MEMCACHED)
@shares_serving
def test_relstorage_uses_memcached_with_either_client_library(name: str, serving: Path) -> None:
    assert is_used(access_of_latest_run(serving)[name])


ZEO = (
    "%import ZEO\n"
    "<zeoserver secured>\nssl true\n<filestorage>\npath $scratch/one.fs\n</filestorage>\n"
    "</zeoserver>\n"
    "<zeoserver plain>\n<settings>\ninvalidation-queue-size 5\n</settings>\n<filestorage>\n"
    "path $scratch/other.fs\n</filestorage>\n</zeoserver>\n"
    "<zodb friend>\n<clientstorage>\nserver $secured\nserver-sync true\n<ssl>\n"
    "certificate $secured_certificate\nkey $secured_key\nauthenticate $secured_authority\n"
    "</ssl>\n</clientstorage>\n</zodb>\n"
    "<zodb stranger>\n<clientstorage>\nserver $secured\nwait-timeout 2\n</clientstorage>\n"
    "</zodb>\n"
    "<zodb persistent>\n<zeoclient>\nserver $plain\nclient mine\nvar .\n</zeoclient>\n</zodb>\n"
)


def test_zeo_supports_ssl_and_persistent_caches(place: Path) -> None:
    (place / "x.conf").write_text(ZEO)
    done = run(place, "x.conf", "warm", "-c", "1", *ONCE, "-o", "a.json")
    assert done.status == 3, done.out + done.err
    states = cells(place / "a.cells.jsonl")
    assert states["friend", "warm"] == ("measured", "")
    state, reason = states["stranger", "warm"]
    assert state == "failed"
    assert reason.startswith("cannot be opened: ")
    assert states["persistent", "warm"] == ("measured", "")
    hits = metadata_of(place / "a.d" / "persistent.json", "warm")["storage_cache_hits"]
    assert int(str(hits)) >= OBJECTS
    served = "warm: the persistent cache (client) served 100% of the loads of persistent\n"
    assert served in done.out
    assert list(place.glob("mine-*.zec"))
    assert left_behind(place) == []


# Servers that fail to start

FAILING = (
    (
        "postgresqlserver",
        "<settings>\nshared_buffers 1\n</settings>\n",
        'ended at once: .*FATAL: .*1 .*is outside the valid range .*"shared_buffers"',
    ),
    (
        "mysqlserver",
        "<settings>\ninnodb_flush_method x\n</settings>\n",
        r"ended at once: .*\[ERROR\] .*Error while setting value 'x' to 'innodb.flush.method'",
    ),
    (
        "memcachedserver",
        "<settings>\nslab-growth-factor 1\n</settings>\n",
        "ended at once: .*Factor must be greater than 1",
    ),
    (
        "zeoserver",
        "<settings>\ninvalidation-age x\n</settings>\n<mappingstorage>\n</mappingstorage>\n",
        "ended at once: .*could not convert string to float: 'x'",
    ),
    (
        "postgresqlserver",
        "programs /nowhere\n",
        "has no program initdb in /nowhere; see the server's programs key",
    ),
    ("mysqlserver", "programs /nowhere\n", "has no program mariadbd or mysqld in /nowhere"),
    ("memcachedserver", "programs /nowhere\n", "has no program memcached in /nowhere"),
    (
        "mysqlserver",
        f"database {'x' * 80}\n",
        "could not be prepared: Incorrect database name 'xxx",
    ),
    ("mysqlserver", "run-as no-such-user\n", "cannot run as no-such-user: "),
)


def test_a_server_that_fails_to_start_says_why_and_fails_only_its_contenders(
    place: Path,
) -> None:
    servers = "".join(
        f"<{kind} bad{number}>\n{content}</{kind}>\n{using(f'bad{number}')}"
        for number, (kind, content, _) in enumerate(FAILING)
    )
    (place / "x.conf").write_text(servers + GOOD)
    done = run(place, "x.conf", "add", "-c", "1", *ONCE, "-o", "a.json")
    assert done.status == 3
    states = cells(place / "a.cells.jsonl")
    assert states.pop(("good", "add")) == ("measured", "")
    assert len(states) == len(FAILING)
    for number, (_, _, words) in enumerate(FAILING):
        state, reason = states[f"using_bad{number}", "add"]
        assert state == "failed"
        assert re.match(f"server bad{number} {words}", reason), reason
        assert reason in done.out
    assert left_behind(place) == []


def test_only_servers_that_contenders_need_are_started(place: Path) -> None:
    (place / "x.conf").write_text("".join(
        f"<zeoserver {name}>\n<filestorage>\npath kept-{name}.fs\n</filestorage>\n</zeoserver>\n"
        f"{using(name)}"
        for name in ("wanted", "spare")
    ))  # fmt: skip
    done = run(place, "x.conf", "add", "-c", "1", *ONCE, "--only", "using_wanted", "-o", "a.json")
    assert done.status == 0, done.out + done.err
    assert [path.name for path in place.glob("kept-*.fs")] == ["kept-wanted.fs"]


# Several runs at once


def test_two_runs_of_the_same_file_at_the_same_time_both_succeed(place: Path) -> None:
    (place / "x.conf").write_text(EVERYTHING)
    words = ("x.conf", "add", "-c", "1", *ONCE, "-o")
    with start(place, *words, "a.json") as one, start(place, *words, "b.json") as other:
        outputs = [process.communicate(timeout=200) for process in (one, other)]
    assert (one.returncode, other.returncode) == (0, 0), outputs
    for name in ("a", "b"):
        assert {state for state, _ in cells(place / f"{name}.cells.jsonl").values()} == {"measured"}
    assert left_behind(place) == []


def test_a_kept_server_directory_cannot_be_used_by_two_runs_at_once(place: Path) -> None:
    kinds = ("postgresqlserver", "mysqlserver")
    (place / "x.conf").write_text(
        GOOD + "".join(f"<{kind} {kind}>\ndirectory {kind}\n</{kind}>\n{using(kind)}"
                       for kind in kinds)
    )  # fmt: skip
    words = ("x.conf", "add", "-c", "1", *ONCE, "-o")
    with endless_run(place, "steamin") as first:
        assert run(place, *words, "a.json").status == 3
        states = cells(place / "a.cells.jsonl")
        assert states["good", "add"] == ("measured", "")
        for kind in kinds:
            state, reason = states[f"using_{kind}", "add"]
            assert state == "failed"
            assert reason == (
                f"server {kind} cannot keep its data in {place / kind}: another server is using it"
            )
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)
    done = run(place, *words, "b.json")
    assert done.status == 0, done.out + done.err
    assert left_behind(place) == []


# The end of a run


def shared_memory_of(pids: Iterable[int]) -> set[str]:
    """Return the files and ids of the shared memory of processes, if the system reports them."""
    memory = set()
    for pid in pids:
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                _, _, _, _, inode, *path = line.split()
                if path and path[0].startswith("/dev/shm/"):
                    memory.add(path[0])
                elif path and path[0].startswith("/SYSV"):
                    memory.add(inode)
    return memory


def still_there(memory: Collection[str]) -> list[str]:
    segments = Path("/proc/sysvipc/shm")
    lines = segments.read_text().splitlines()[1:] if segments.exists() else []
    ids = {line.split()[1] for line in lines}
    return [name for name in memory if name in ids or (name[0] == "/" and Path(name).exists())]


@contextmanager
def run_with_all_servers(place: Path) -> Iterator[tuple[subprocess.Popen[str], set[str]]]:
    """Start a run that goes on with servers of all kinds; yield it and their shared memory."""
    (place / "x.conf").write_text(EVERYTHING)
    with endless_run(place, "add", "steamin") as process:
        commands = processes_in(place)
        for program in ("postgres", "mariadbd", "memcached", "ZEO.runzeo"):
            assert any(program in command for command in commands.values()), commands
        memory = shared_memory_of(commands)
        if sys.platform == "linux":
            assert len(still_there(memory)) == len(memory) >= 2
        yield process, memory


def test_a_killed_run_leaves_no_server_no_file_and_no_shared_memory(place: Path) -> None:
    with run_with_all_servers(place) as (process, memory):
        process.kill()
        process.communicate()
        wait_until(lambda: left_behind(place) == [] and still_there(memory) == [])


def test_ctrl_c_stops_the_servers_at_once_and_prints_the_results_so_far(place: Path) -> None:
    with run_with_all_servers(place) as (process, memory):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "interrupted; results so far were saved" in err
        assert "Traceback" not in err
        assert f"{OBJECTS} objects of 300 bytes" in out
        assert "not run" in out
        assert left_behind(place) == []
        assert still_there(memory) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere shared memory is not told of")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_ended_during_database_creation_leaves_no_shared_memory(
    number: int, place: Path
) -> None:
    (place / "x.conf").write_text(f"<postgresqlserver pg/>\n{using('pg')}")
    memory: set[str] = set()

    def creates_database() -> bool:
        commands = processes_in(place)
        creating = [pid for pid in commands if re.search("--boot|--single", commands[pid])]
        memory.update(shared_memory_of(creating))
        return bool(memory)

    with start(place, "x.conf", "add", "-c", "1", *ONCE) as process:
        wait_until(creates_database)
        process.send_signal(number)
        process.communicate(timeout=30)
    wait_until(lambda: left_behind(place) == [])
    assert still_there(memory) == []


# Users other than root


def as_ordinary_user() -> list[str]:
    """Return the prefix of a command that root runs as an ordinary user.

    If that user may not enter the directory of this Python, such as root's home, the prefix grants
    that right and no other.
    """
    user = pwd.getpwnam("nobody")
    become = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    look = "import os, sys; raise SystemExit(not os.access(sys.executable, os.X_OK))"
    if subprocess.run([*become, sys.executable, "-c", look], check=False).returncode:
        become += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override",
                   "--securebits=+no_setuid_fixup"]  # fmt: skip
    return become


def test_an_ordinary_user_can_run_the_same_servers(place: Path) -> None:
    (place / "x.conf").write_text(EVERYTHING)
    command = [sys.executable, "-m", "zodbshootout", "x.conf", "add", "-c", "1", *ONCE]
    surroundings = environment(place, HOME=str(place))
    if os.geteuid() == 0:
        command = [*as_ordinary_user(), *command]
        for path in (place, place / "tmp"):
            shutil.chown(path, "nobody")
    done = subprocess.run(
        [*command, "-o", "a.json"],
        cwd=place, env=surroundings, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert {state for state, _ in cells(place / "a.cells.jsonl").values()} == {"measured"}
    assert (place / "a.json").stat().st_uid != 0
    assert left_behind(place) == []


def test_a_record_that_is_too_large_for_mariadb_fails_with_the_setting_to_change() -> None:
    drivers = {"one": "PyMySQL", "two": "MySQLdb"}
    contenders = "".join(
        f"<zodb {name}>\n<relstorage>\nkeep-history false\n<mysql-or-mariadb>\ndriver {driver}\n"
        f"host $my_host\nport $my_port\ndb {name}\nuser zodbshootout\npasswd $my_password\n"
        "</mysql-or-mariadb>\n</relstorage>\n</zodb>\n"
        for name, driver in drivers.items()
    )
    server = "<settings>\nmax_allowed_packet 1M\n</settings>\ndatabase one\ndatabase two\n"
    text = f"<mysqlserver my>\n{server}</mysqlserver>\n{contenders}"
    words = ("store", "-s", "300,2M", "--object-counts", "1", "-c", "1")
    with open_directory() as place:
        (place / "x.conf").write_text(f"%import relstorage\n%import zodbshootout.mysql\n{text}")
        done = run(place, "x.conf", *words, "-p", "1", "-n", "1", "-l", "1", "-o", "a.json")
        assert done.status == 3, done.err + done.out
        outcomes = cells(place / "a.cells.jsonl")  # the last one of each, with the larger records
        sizes = names_in(place / "a.json")
    for name in drivers:
        state, reason = outcomes[name, "store"]
        assert state == "failed"
        # The client may still be sending when the server closes the connection.
        assert reason.startswith(("OperationalError: (1153, ", "OperationalError: (2006, "))
        assert reason.endswith(" in <settings>, for example 'max_allowed_packet 64M'")
    assert sizes == {f"{name}: store 1x300B processes-1" for name in drivers}
