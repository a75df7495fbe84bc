"""The shared memory of a PostgreSQL server that is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.command import open_directory
from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.guardian import Guardian
from zodbshootout.servers.address import given_names
from zodbshootout.servers.postgresql import PostgreSQLServer
from zodbshootout.servers.server import ServerContext
from zodbshootout.servers.shared_memory import SharedMemory

pytestmark = pytest.mark.servers("PostgreSQL")


def test_a_killed_postgresql_leaves_no_shared_memory() -> None:
    source = Source(Path("x.conf"), "<postgresqlserver pg/>\n")
    with open_directory() as place, Guardian() as guardian:
        (scratch := place / "scratch").mkdir(mode=0o700)
        with given_names(source, scratch) as names:
            context = ServerContext(scratch, source, names, guardian)
            server = PostgreSQLServer(parse(source, names).servers[0], context)
            try:
                server.start()
                assert server.pid is not None
                memory = SharedMemory.of(server.pid, server.data)
                assert memory.segment in system_v_segments()
                assert memory.files
                server.kill()
                assert memory.segment not in system_v_segments()
                assert not [path for path in memory.files if path.exists()]
                server.resume()
                assert server.is_ready()
            finally:
                server.stop()


def system_v_segments() -> set[int]:
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {int(line.split()[1]) for line in lines}
