"""Servers that no run has started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pwd import getpwnam
from typing import Any

from zodbshootout.client.reachability import Address, accepts, printable
from zodbshootout.guardian import Ending, Guardian
from zodbshootout.servers.installation import MEMCACHED, MYSQL, POSTGRESQL

_ENDING = Ending(grace=60.0)


def account(name: str) -> str:
    """Return the system user that runs a server started by root."""
    try:
        return getpwnam(name).pw_name
    except KeyError:
        return "nobody"


def as_user(name: str) -> dict[str, Any]:
    return {"user": account(name)} if os.geteuid() == 0 else {}


def open_to(user: str, directory: Path) -> Path:
    """Make a directory that belongs to the user of a server; return it."""
    directory.mkdir()
    if os.geteuid() == 0:
        shutil.chown(directory, account(user))
    return directory


@contextmanager
def server(place: Path, user: str, command: Sequence[object], address: Address) -> Iterator[None]:
    """Run a server, as *user* if this is root, until the end of the context or of this process."""
    words = [str(word) for word in command]
    with Guardian() as guardian, (place / "server.log").open("ab") as log:
        process = guardian.start(words, _ENDING, stdout=log, stderr=log, cwd=place, **as_user(user))
        try:
            deadline = time.monotonic() + 60
            while not accepts(address):
                assert process.poll() is None, (place / "server.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield
        finally:
            process.end()


@contextmanager
def zeo(place: Path, address: Address) -> Iterator[None]:
    command = [sys.executable, "-m", "ZEO.runzeo", "-a", printable(address)]
    data = place / f"{printable(address).replace('/', '')}.fs"
    with server(place, "root", [*command, "-f", data], address):
        yield


@contextmanager
def memcached(place: Path, address: Address, *options: str) -> Iterator[None]:
    where = ["-s", address, "-a", "777"] if isinstance(address, str) else ["-p", address[1]]
    command = [MEMCACHED.program("memcached", given=None), *where, *options]
    with server(place, "memcache", command, address):
        yield


@contextmanager
def postgresql(place: Path, port: int = 5432, hosts: str = "") -> Iterator[str]:
    """Run PostgreSQL on a Unix socket and on *hosts*; yield the socket.

    The user ``zodbshootout`` may do everything, without a password.
    """
    data, directory = (open_to("postgres", place / name) for name in ("pg", "pg.run"))
    initdb, postgres = (POSTGRESQL.program(name, given=None) for name in ("initdb", "postgres"))
    words = [initdb, "-D", str(data), "-A", "trust", "-U", "zodbshootout", "--no-sync"]
    subprocess.run(words, check=True, capture_output=True, cwd=place, **as_user("postgres"))
    options = ["-k", directory, "-p", port, "-c", f"listen_addresses={hosts}"]
    socket = str(directory / f".s.PGSQL.{port}")
    with server(place, "postgres", [postgres, "-D", data, *options], socket):
        yield socket


@contextmanager
def mysql(place: Path, port: int = 0) -> Iterator[str]:
    """Run MariaDB on a Unix socket and, if there is a *port*, on it; yield the socket.

    The user ``u`` may do everything in the databases ``a`` and ``b``, without a password.
    """
    data, socket = open_to("mysql", place / "my"), place / "my" / "mysql.sock"
    names = ("mariadb-install-db", "mariadbd")
    install, mariadbd = (MYSQL.program(name, given=None) for name in names)
    words = [install, "--no-defaults", f"--datadir={data}", "--force", "--skip-test-db"]
    subprocess.run(words, check=True, capture_output=True, cwd=place, **as_user("mysql"))
    statements = ["CREATE DATABASE a", "CREATE DATABASE b"]
    for host in ("localhost", "127.0.0.1"):
        statements += [f"CREATE USER u@'{host}'", f"GRANT ALL ON *.* TO u@'{host}'"]
    (place / "accounts.sql").write_text("".join(f"{one};\n" for one in statements))
    network = ["--bind-address=127.0.0.1", f"--port={port}"] if port else ["--skip-networking"]
    command = [mariadbd, "--no-defaults", f"--datadir={data}", f"--socket={socket}",
               *network, f"--init-file={place}/accounts.sql"]  # fmt: skip
    with server(place, "mysql", command, str(socket)):
        yield str(socket)


@contextmanager
def standby(place: Path, primary: int, port: int) -> Iterator[None]:
    """Run a hot standby, on a *port*, of the PostgreSQL server on port *primary* of this host."""
    data, directory = (open_to("postgres", place / name) for name in ("standby", "standby.run"))
    data.chmod(0o700)
    programs = ("pg_basebackup", "postgres")
    back_up, postgres = (POSTGRESQL.program(name, given=None) for name in programs)
    words = [back_up, "-D", data, "-R", "-h", "127.0.0.1", "-p", primary, "-U", "zodbshootout"]
    words += ["-c", "fast", "--no-sync"]
    subprocess.run(
        [str(word) for word in words], check=True, capture_output=True, cwd=place,
        **as_user("postgres"),
    )  # fmt: skip
    options = ["-k", directory, "-p", port, "-c", "listen_addresses=127.0.0.1"]
    with server(place, "postgres", [postgres, "-D", data, *options], ("127.0.0.1", port)):
        deadline = time.monotonic() + 60
        ready = POSTGRESQL.program("pg_isready", given=None)
        while subprocess.run(
            [ready, "-q", "-h", "127.0.0.1", "-p", str(port)], check=False
        ).returncode:
            assert time.monotonic() < deadline, (place / "server.log").read_text()
            time.sleep(0.05)
        yield
