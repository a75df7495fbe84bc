"""A distance is added to every server, or the contender is not supported at the distance.

Configurations say in many ways where a server is.  No figure of no distance may stand in the row of
a distance, so a contender is as slow as its twin that refers to the section of its server, or it is
refused with the line to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration import foreign
from tests.integration.command import left_behind, open_directory, run
from zodbshootout.model.outcome import State
from zodbshootout.results.figures import time_of
from zodbshootout.results.files import read_results
from zodbshootout.results.result import CellResult
from zodbshootout.servers.address import reserved_port

pytestmark = [
    pytest.mark.servers("PostgreSQL", "MariaDB", "memcached"),
    pytest.mark.xdist_group("unseen servers"),
    pytest.mark.timeout(600),
]

RTT = 0.002
WORDS = ("update", "-c", "1", "--object-counts", "10", "--rtt", "0,2ms",
         "-p", "1", "-n", "1", "-l", "1")  # fmt: skip
HOST = "127.0.0.1"


def relstorage(adapter: str, *lines: str) -> str:
    return "\n".join(["<relstorage>", "keep-history false", *lines, adapter, "</relstorage>"])


def postgresql(dsn: str, *lines: str, driver: str = "psycopg2") -> str:
    adapter = f"<postgresql>\ndriver {driver}\ndsn {dsn}\n</postgresql>"
    return relstorage(adapter, *lines)


def mysql(*lines: str) -> str:
    adapter = "\n".join(["<mysql-or-mariadb>", "driver PyMySQL", "user u", *lines])
    return relstorage(f"{adapter}\n</mysql-or-mariadb>")


def zeo(*servers: str) -> str:
    lines = "".join(f"server {server}\n" for server in servers)
    return f"<zeoclient>\n{lines}</zeoclient>"


@dataclass(frozen=True)
class Servers:
    """The servers that run already, and the files that lead to them."""

    place: Path
    socket: str
    my_socket: str
    zeo_socket: str
    pg: int
    my: int
    zeo: int
    mc: int

    @property
    def sections(self) -> str:
        addresses = {"db": self.pg, "maria": self.my, "main": self.zeo, "mc": self.mc}
        whole = {name: f"{HOST}:{port}" for name, port in addresses.items()}
        whole |= {"s": self.socket, "m": self.my_socket, "z": self.zeo_socket}
        return "".join(
            f"<externalserver {name}>\naddress {address}\n</externalserver>\n"
            for name, address in whole.items()
        )

    def twins(self) -> dict[str, str]:
        """Return storages that refer to the sections of all their servers."""
        memcached = ("cache-servers $mc", "cache-module-name relstorage.pylibmc_wrapper")
        return {
            "pg": postgresql("host=$db_host port=$db_port dbname=pg user=zodbshootout"),
            "pg_url": postgresql("postgresql://zodbshootout@$db/pg_url?application_name=x"),
            "pg_socket": postgresql("host=$s_host port=$s_port dbname=pg_socket user=zodbshootout"),
            "pg_cached": postgresql("host=$db_host port=$db_port dbname=pg_cached "
                                    "user=zodbshootout", *memcached),
            "my": mysql("host $maria_host", "port $maria_port", "db a"),
            "zeo": zeo("$main"),
            "my_socket": mysql("unix_socket $m", "db b"),
            "zeo_socket": zeo("$z"),
            "zeo_several": zeo(f"{HOST}:1", "$main"),
        }  # fmt: skip

    def unseen(self) -> dict[str, str]:
        """Return storages that connect to another server than those of sections."""
        user = "user=zodbshootout"
        socket = self.socket.rpartition("/")[0].replace("/", "%2F")
        twin = f"host=$db_host port=$db_port dbname=unseen {user}"
        memcached = "cache-module-name relstorage.pylibmc_wrapper"
        return {
            "host": postgresql(f"host={HOST} port={self.pg} dbname=unseen {user}"),
            "environment": postgresql(f"dbname=unseen {user}"),
            "service": postgresql("service=zodb"),
            "ipv6_url": postgresql(
                f"postgresql://zodbshootout@[::1]:{self.pg}/unseen?application_name=x"
            ),
            "socket_url": postgresql(
                f"postgresql://zodbshootout@{socket}:{self.pg}/unseen?application_name=x"
            ),
            "pg8000": postgresql(f"host={HOST} port={self.pg} dbname=unseen {user}",
                                 driver="pg8000"),
            "replica": postgresql(twin, f"replica-conf {self.place}/replicas"),
            "cached": postgresql(twin, f"cache-servers {HOST}:{self.mc}", memcached),
            "cached_udp": postgresql(twin, f"cache-servers udp:{HOST}:{self.mc}", memcached),
            "mysql": mysql(f"host {HOST}", f"port {self.my}", "db b"),
            "defaults": mysql(f"read_default_file {self.place}/my.cnf", "db b"),
            "zeo_host": zeo(f"{HOST}:{self.zeo}"),
            "zeo_tuple": zeo(f"{HOST}:1", f"{HOST}:{self.zeo}"),
        }  # fmt: skip

    def configuration(self, storages: dict[str, str]) -> str:
        contenders = (f"<zodb {name}>\n{text}\n</zodb>\n" for name, text in storages.items())
        return (
            f"%import relstorage\n%import zodbshootout.mysql\n{self.sections}{''.join(contenders)}"
        )


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with open_directory() as place, ExitStack() as stack:
        ports = [stack.enter_context(reserved_port()) for _ in range(4)]
        pg, my, main, mc = ports
        socket = stack.enter_context(foreign.postgresql(place, pg, f"{HOST},::1"))
        my_socket, zeo_socket = stack.enter_context(foreign.mysql(place, my)), f"{place}/zeo.sock"
        stack.enter_context(foreign.memcached(place, (HOST, mc), "-U", str(mc)))
        for address in ((HOST, main), zeo_socket):
            stack.enter_context(foreign.zeo(place, address))
        names = ["pg", "pg_url", "pg_socket", "pg_cached", "unseen"]
        _create(socket, names)
        (place / "replicas").write_text(f"{HOST}:{pg}\n")
        (place / "my.cnf").write_text(f"[client]\nhost={HOST}\nport={my}\n")
        (place / "services").write_text(
            f"[zodb]\nhost={HOST}\nport={pg}\ndbname=unseen\nuser=zodbshootout\n"
        )
        yield Servers(place, socket, my_socket, zeo_socket, pg, my, main, mc)


def _create(socket: str, databases: list[str]) -> None:
    import psycopg2

    host, _, file = socket.rpartition("/")
    settings = {"host": host, "port": file.rpartition(".")[2], "dbname": "postgres"}
    connection = psycopg2.connect(user="zodbshootout", **settings)
    connection.autocommit = True
    for name in databases:
        connection.cursor().execute(f"CREATE DATABASE {name}")
    connection.close()


def measure(servers: Servers, storages: dict[str, str], *words: str) -> list[CellResult]:
    with open_directory() as place:
        (place / "x.conf").write_text(servers.configuration(storages))
        environment = {
            "PGHOST": HOST,
            "PGPORT": str(servers.pg),
            "PGSERVICEFILE": str(servers.place / "services"),
        }
        done = run(place, "x.conf", *WORDS, *words, "-o", "a.json", **environment)
        assert done.status == 0, done.out + done.err
        assert left_behind(place) == []
        return list(read_results(place / "a.json"))


def check_far(result: CellResult) -> None:
    """Check that a cell at the distance took at least as long as its round trips."""
    trips = min(int(trips) for trips in str(result.metadata["trips"]).split())
    assert trips >= 2, result.cell
    assert time_of(result).value > trips * RTT * 0.95, result.cell


def test_a_section_that_refers_to_its_servers_is_at_a_distance(servers: Servers) -> None:
    results = measure(servers, servers.twins())
    assert {result.state for result in results} == {State.MEASURED}
    for result in results:
        if result.cell.parameters.rtt:
            check_far(result)


def test_no_figure_of_no_distance_is_one_of_a_distance(servers: Servers) -> None:
    storages = servers.unseen()
    results = measure(servers, storages)
    assert {result.cell.parameters.rtt for result in results} == {0.0, RTT}
    far = [result for result in results if result.cell.parameters.rtt]
    assert {result.cell.contender for result in far} == storages.keys()
    for result in far:
        assert result.state is State.UNSUPPORTED, result.cell
        assert "<externalserver" in result.reason
    near = [result for result in results if not result.cell.parameters.rtt]
    assert {result.state for result in near} == {State.MEASURED}
    for result in near:
        assert "trips" not in result.metadata
        assert "<externalserver" in str(result.metadata["traffic_not_counted"])


@pytest.mark.parametrize("named", [Servers.twins, Servers.unseen])
def test_private_servers_are_at_a_distance_whatever_the_original_names(
    servers: Servers, named: Callable[[Servers], dict[str, str]]
) -> None:
    for result in measure(servers, named(servers), "--private"):
        assert result.state is State.MEASURED, (result.cell, result.reason)
        if result.cell.parameters.rtt:
            check_far(result)
