"""Addresses of servers: which are free, and at which something answers."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

HOST = "127.0.0.1"
"""The loopback interface, on which all private servers listen and nobody else can reach them."""
CONNECT_TIMEOUT = 3.0
"""Seconds within which a server that is there accepts a connection."""


def accepts(address: tuple[str, int] | str) -> bool:
    """Say whether something accepts connections at a host and port, or at a socket's path."""
    try:
        if isinstance(address, str):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(CONNECT_TIMEOUT)
                probe.connect(address)
        else:
            host, port = address
            socket.create_connection((host or "localhost", port), CONNECT_TIMEOUT).close()
    except OSError:
        return False
    return True


def greets(address: tuple[str, int]) -> bool:
    """Say whether a server at *address* speaks first, as MySQL's do when they are ready."""
    try:
        with socket.create_connection(address, CONNECT_TIMEOUT) as connection:
            return bool(connection.recv(1))
    except OSError:
        return False


@contextmanager
def reserved_port() -> Iterator[int]:
    """Have a free port on the loopback interface that nobody else is given meanwhile.

    On Linux a socket that is bound and does not listen keeps the port from every other program
    that asks for some free port, and from outgoing connections, but not from a server that asks
    for just this one with ``SO_REUSEADDR``, as servers do.
    """
    with socket.socket() as holder:
        if sys.platform == "linux":
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((HOST, 0))
        port: int = holder.getsockname()[1]
        if sys.platform != "linux":
            holder.close()
        yield port
