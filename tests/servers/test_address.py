from __future__ import annotations

import errno
import socket
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from zodbshootout.client.reachability import accepts
from zodbshootout.servers.address import HOST, greets, reserved_port


def server_at(port: int) -> socket.socket:
    """Return a socket that listens like a server."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((HOST, port))
    server.listen()
    return server


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a port cannot be reserved")
def test_a_reserved_port_cannot_be_reserved_or_bound_again() -> None:
    with ExitStack() as stack:
        ports = [stack.enter_context(reserved_port()) for _ in range(200)]
        assert len(set(ports)) == len(ports)
        with socket.socket() as other, pytest.raises(OSError, match="in use") as caught:
            other.bind((HOST, ports[0]))
        assert caught.value.errno == errno.EADDRINUSE


def test_a_reserved_port_accepts_connections_only_while_a_server_listens() -> None:
    with reserved_port() as port:
        assert not accepts((HOST, port))
        with server_at(port):
            assert accepts((HOST, port))
        assert not accepts((HOST, port))
        server_at(port).close()


def test_a_port_is_free_once_it_is_no_longer_reserved() -> None:
    with reserved_port() as port:
        pass
    with socket.socket() as other:
        other.bind((HOST, port))


def test_a_unix_socket_accepts_connections_once_a_server_listens(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server:
        assert not accepts(path)
        server.bind(path)
        server.listen()
        assert accepts(path)


@pytest.mark.parametrize(("greeting", "greeted"), [(b"welcome", True), (b"", False)])
def test_a_server_greets_when_it_speaks_first(greeting: bytes, greeted: bool) -> None:
    with reserved_port() as port, server_at(port) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(greeting)

        thread = threading.Thread(target=answer)
        thread.start()
        assert greets((HOST, port)) == greeted
        thread.join()
    assert not greets((HOST, port))
