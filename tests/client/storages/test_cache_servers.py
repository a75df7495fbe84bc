"""Where ``cache-servers`` says that there is a memcached, and what it says of itself."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from zodbshootout.client.database import Database
from zodbshootout.client.specification import Storage
from zodbshootout.client.storage_info import Address
from zodbshootout.client.storages import cache_servers
from zodbshootout.client.storages.cache_servers import address_of, version_of, versions


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
def test_what_client_libraries_take_for_an_address(text: str, address: Address | None) -> None:
    assert address_of(text) == address


Answer = Callable[[bytes], bytes]


@contextmanager
def serving(answer: Answer) -> Iterator[tuple[str, int]]:
    """Have a server that answers every connection's first line once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(answer(connection.makefile("rb").readline()))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def memcached(version: str) -> Answer:
    return lambda line: (
        f"VERSION {version}\r\n".encode() if line == b"version\r\n" else b"ERROR\r\n"
    )


def unused() -> tuple[str, int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        address: tuple[str, int] = listener.getsockname()
    return address


def test_servers_tell_their_versions_and_each_version_is_told_once() -> None:
    with (
        serving(memcached("1.6.18")) as one,
        serving(memcached("1.6.9")) as another,
        serving(memcached("1.6.18")) as third,
    ):
        assert version_of(one) == "1.6.18"
        assert versions([one, unused(), another, third]) == ["1.6.18", "1.6.9"]


@pytest.mark.parametrize(
    "answer", [lambda _: b"", lambda _: b"ERROR\r\n", lambda _: b"VERSION\r\n", lambda _: b"\xff"]
)
def test_what_is_no_version_is_none(answer: Answer) -> None:
    with serving(answer) as address:
        assert version_of(address) is None


def test_nobody_who_answers_tells_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert version_of(unused()) is None
    assert version_of(str(tmp_path / "no.sock")) is None
    monkeypatch.setattr(cache_servers, "TIMEOUT", 0.01)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        assert version_of(listener.getsockname()) is None


def test_the_version_of_memcached_is_one_of_the_contender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "%import relstorage\n<zodb x>\n<relstorage>\n<sqlite3>\n"
        f"data-dir {tmp_path}/s\n</sqlite3>\n</relstorage>\n</zodb>\n"
    )
    with serving(memcached("1.6.18")) as address, Database(Storage(text)) as database:
        assert "memcached" not in database.info().versions
        options = database.db.storage._options
        monkeypatch.setattr(options, "cache_servers", f"{address[0]}:{address[1]}", raising=False)
        info = database.info()
        assert info.versions["memcached"] == "1.6.18"
        assert "memcached" in map(str, database.own_caches())
