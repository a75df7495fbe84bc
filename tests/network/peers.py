"""Servers and clients that do what a test has written down, and count what they do."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from zodbshootout.network.relays import Address

Script = Callable[[socket.socket], object]
PATIENCE = 60.0
"""The seconds after which a peer that waits in vain fails."""


def listening(address: Address = ("127.0.0.1", 0), receive_buffer: int = 0) -> socket.socket:
    """Return a socket that listens at an address."""
    server = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    if receive_buffer:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    server.bind(address)
    server.listen(socket.SOMAXCONN)
    server.settimeout(PATIENCE)
    return server


@contextmanager
def serving(script: Script, address: Address = ("127.0.0.1", 0)) -> Iterator[Address]:
    """Run a script on the first connection to a server; its errors are raised at the end."""

    def serve() -> None:
        connection, _ = server.accept()
        connection.settimeout(PATIENCE)
        with connection:
            script(connection)

    with listening(address) as server, ThreadPoolExecutor(1) as pool:
        future = pool.submit(serve)
        yield server.getsockname()
        future.result()


def connected(address: Address) -> socket.socket:
    """Return a connection to an address."""
    client = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    client.settimeout(PATIENCE)
    try:
        client.connect(address)
    except BaseException:
        client.close()
        raise
    return client


def received(connection: socket.socket, size: int) -> bytes:
    """Return a number of bytes as soon as they have come, or fewer if no more will come."""
    content = bytearray()
    while len(content) < size:
        chunk = connection.recv(min(size - len(content), 1 << 16))
        if not chunk:
            break
        content += chunk
    return bytes(content)


def answering(*exchanges: tuple[int, int]) -> Script:
    """Return a server's script: the sizes of requests, and of the answer to each."""

    def script(connection: socket.socket) -> None:
        for size, answer in exchanges:
            assert len(received(connection, size)) == size
            connection.sendall(bytes(answer))

    return script
