"""The addresses of servers, and whether the servers accept connections."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from zodbshootout.model.specification import Address, host_and_port

__all__ = ["Address", "Requirement", "accepts", "connect", "host_and_port", "is_here", "printable"]

TIMEOUT = 3.0
"""Seconds to wait for a server to accept a connection, and then for its answer."""


@dataclass(frozen=True)
class Requirement:
    """A server that must be running before a storage can be opened."""

    addresses: tuple[Address, ...]
    """Alternative addresses: the server is running if one of them accepts connections."""
    missing_message: str
    """The message to show if the server is not running; it says how to start the server."""
    storage: str = ""
    """The name by which the server knows the storage; empty if the server uses no names."""

    def obstacle(self) -> str | None:
        """Return a message if the server is not running or refuses the client, else ``None``."""
        return None if any(map(accepts, self.addresses)) else self.missing_message


def is_here(address: Address) -> bool:
    """Return whether an address is a socket's path, a loopback address or this host's name."""
    if isinstance(address, str):
        return True
    host = address[0] or "localhost"
    return host in {"localhost", "::1", socket.gethostname()} or host.startswith("127.")


def printable(address: Address) -> str:
    """Return an address as users write it."""
    if isinstance(address, str):
        return address
    host, port = address
    return host_and_port(host or "localhost", port)


def connect(address: Address) -> socket.socket:
    """Connect to a server, with :data:`TIMEOUT`.

    :raises OSError: if the server accepts no connection
    """
    if isinstance(address, tuple):
        host, port = address
        return socket.create_connection((host or "localhost", port), TIMEOUT)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(TIMEOUT)
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


def accepts(address: Address) -> bool:
    """Return whether a server at *address* accepts connections."""
    try:
        connect(address).close()
    except OSError:
        return False
    return True
