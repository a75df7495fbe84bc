"""The addresses in DSNs and URIs, and others in their place."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from zodbshootout.client.reachability import Address
from zodbshootout.client.routes import addresses, in_dsn, in_uri, memcached_address


def elsewhere(address: Address, *, is_cache: bool = False) -> Address:
    return f"/relay/{address.rpartition('/')[2]}" if isinstance(address, str) else ("::1", 7)


def where_it_is(address: Address, *, is_cache: bool = False) -> Address:
    return address


DSNS = [
    ("dbname=x host=db port=5433", [("db", 5433)], " host='::1' port='7'"),
    ("host='db'", [("db", 5432)], " host='::1' port='7'"),
    ("host=a,b port=1,2", [("a", 1), ("b", 2)], " host='::1,::1' port='7,7'"),
    ("host=a,b", [("a", 5432), ("b", 5432)], " host='::1,::1' port='7,7'"),
    ("host=/run/pg port=9", ["/run/pg/.s.PGSQL.9"], " host='/relay' port='9'"),
    ("host=db sslmode=verify-full", [("db", 5432)], " hostaddr='::1' port='7'"),
    ("host=db hostaddr=10.0.0.1", [("10.0.0.1", 5432)], " hostaddr='::1' port='7'"),
    ("hostaddr=10.0.0.1", [("10.0.0.1", 5432)], " hostaddr='::1' port='7'"),
    ("postgresql://u:p@db:5433/x", [("db", 5433)], "?host=::1&port=7"),
    ("postgresql://db/x?sslmode=disable", [("db", 5432)], "&host=::1&port=7"),
    ("unix_sock=/run/pg.sock port=9", ["/run/pg.sock"], " unix_sock='/relay/pg.sock'"),
    ("host=db unix_sock='/run/pg.sock'", ["/run/pg.sock"], " unix_sock='/relay/pg.sock'"),
    ("dbname=x", [], ""),
    ("host=db port=x", [], ""),
    ("postgresql://u:p@[h/x", [], ""),
]


@pytest.mark.parametrize(("dsn", "named", "added"), DSNS)
def test_a_dsn_leads_elsewhere_by_its_last_settings(
    dsn: str, named: list[Address], added: str
) -> None:
    assert list(addresses(lambda route: in_dsn(dsn, route))) == named
    assert in_dsn(dsn, elsewhere) == dsn + added
    assert in_dsn(dsn, where_it_is) == dsn


URIS = [
    ("zeo://db:8100?wait=1", [("db", 8100)], "zeo://[::1]:7?wait=1"),
    ("zeo://db", [("db", 9991)], "zeo://[::1]:7"),
    ("zeo:///run/zeo.sock?storage=2", ["/run/zeo.sock"], "zeo:///relay/zeo.sock?storage=2"),
    ("postgres://u:p%40@db/x", [("db", 5432)], "postgres://u:p%40@[::1]:7/x"),
    (
        "postgres://db/x?cache_servers=mc,mc:2:5,/run/mc.sock&a=%2B#1",
        [("db", 5432), ("mc", 11211), ("mc", 2), "/run/mc.sock"],
        "postgres://[::1]:7/x?cache_servers=[::1]:7,[::1]:7:5,/relay/mc.sock&a=%2B#1",
    ),
    (
        "mysql://u@localhost/x?unix_socket=/run/my.sock&cache_servers=mc",
        ["/run/my.sock", ("mc", 11211)],
        "mysql://u@localhost/x?unix_socket=/relay/my.sock&cache_servers=[::1]:7",
    ),
    (
        "mysql:///x?unix_socket=/run/my.sock",
        ["/run/my.sock"],
        "mysql:///x?unix_socket=/relay/my.sock",
    ),
    ("file:///tmp/Data.fs", [], "file:///tmp/Data.fs"),
    ("memory://", [], "memory://"),
    ("zeo://[h", [], "zeo://[h"),
    ("zeo://h:x", [], "zeo://h:x"),
]


@pytest.mark.parametrize(("uri", "named", "routed"), URIS)
def test_a_uri_leads_elsewhere(uri: str, named: list[Address], routed: str) -> None:
    assert list(addresses(lambda route: in_uri(uri, route))) == named
    assert unquote(in_uri(uri, elsewhere)) == unquote(routed)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("mc.example.org:11212", ("mc.example.org", 11212)),
        ("127.0.0.1", ("127.0.0.1", 11211)),
        ("localhost:11212:3", ("localhost", 11212)),
        ("inet:localhost:1", ("localhost", 1)),
        ("[::1]:11212", ("::1", 11212)),
        ("[::1]", ("::1", 11211)),
        ("inet6:[::1]:2", ("::1", 2)),
        ("unix:/run/mc.sock", "/run/mc.sock"),
        ("/run/mc.sock", "/run/mc.sock"),
        ("udp:localhost:11211", None),
    ],
)
def test_memcached_addresses_are_read_as_client_libraries_read_them(
    text: str, address: Address | None
) -> None:
    assert memcached_address(text) == address
