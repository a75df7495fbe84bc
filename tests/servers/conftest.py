from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.guardian import Guardian
from zodbshootout.model.specification import Interpreter
from zodbshootout.servers.address import given_names
from zodbshootout.servers.running import server_of
from zodbshootout.servers.server import Server, ServerContext

MakeServer = Callable[..., Server]


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[MakeServer]:
    """Return a function that makes the first server of a configuration; stop it at the end."""
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    with Guardian() as guardian, ExitStack() as stack:

        def make(
            text: str,
            cls: Callable[..., Server] = server_of,
            clients: int = 1,
            pythons: Mapping[str, Interpreter] | None = None,
        ) -> Server:
            source = Source(tmp_path / "x.conf", text)
            names = stack.enter_context(given_names(source, scratch))
            context = ServerContext(scratch, source, names, guardian, clients, pythons or {})
            server = cls(parse(source, names).servers[0], context)
            stack.callback(server.stop)
            return server

        yield make


@pytest.fixture
def programs(tmp_path: Path) -> str:
    """Return a directory of programs that must not be run."""
    directory = tmp_path / "programs"
    directory.mkdir()
    for name in ("initdb", "mariadb-install-db", "mariadbd", "memcached", "pgbouncer", "postgres"):
        (directory / name).touch(mode=0o755)
    return str(directory)
