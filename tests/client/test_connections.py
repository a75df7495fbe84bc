"""The network connections of a process."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from zodbshootout.client.connections import peers, place_of, sockets
from zodbshootout.model.storage_facts import Place


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as entered:
        yield entered


def connected(stack: ExitStack, family: socket.AddressFamily, address: Any) -> Any:
    """Return the address of a new server to which a client is connected."""
    server = stack.enter_context(socket.socket(family))
    server.bind(address)
    server.listen()
    stack.enter_context(socket.socket(family)).connect(server.getsockname())
    stack.enter_context(server.accept()[0])
    return server.getsockname()


def test_a_server_on_the_loopback_interface_or_a_socket_file_is_here(
    stack: ExitStack, tmp_path: Path
) -> None:
    before = peers()
    path = str(tmp_path / "socket")
    served = [
        connected(stack, socket.AF_INET, ("127.0.0.1", 0)),
        connected(stack, socket.AF_INET6, ("::1", 0)),
        connected(stack, socket.AF_UNIX, path),
    ]
    connections_made = peers() - before
    addresses = {one if isinstance(one, str) else one[:2] for one in served}
    assert addresses <= {peer for peer, _ in connections_made}
    assert place_of(connections_made) is Place.HERE


def test_another_connection_to_the_same_server_is_another_socket(
    stack: ExitStack, tmp_path: Path
) -> None:
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", 0)),
        (socket.AF_UNIX, str(tmp_path / "socket")),
    ):
        server = stack.enter_context(socket.socket(family))
        server.bind(address)
        server.listen()
        before = sockets()
        with socket.socket(family) as client:
            client.connect(server.getsockname())
            first = sockets().keys() - before
        stack.enter_context(socket.socket(family)).connect(server.getsockname())
        second = sockets().keys() - before
        assert (len(first), len(second)) == (1, 1)
        assert not first & second


def test_sockets_without_a_name_or_a_peer_do_not_count(stack: ExitStack) -> None:
    before = peers()
    for one in (*socket.socketpair(), socket.socket()):
        stack.enter_context(one)
    assert peers() == before
    assert place_of(peers() - before) is None


class Remote(socket.socket):
    """A connection whose other end is elsewhere, as far as it says."""

    def getpeername(self) -> tuple[str, int]:
        return ("203.0.113.1", 5432)


def test_one_server_with_another_address_is_elsewhere(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected(stack, socket.AF_INET, ("127.0.0.1", 0))
    here = peers()
    monkeypatch.setattr("zodbshootout.client.connections.socket.socket", Remote)
    assert place_of(peers() | here) is Place.ELSEWHERE
