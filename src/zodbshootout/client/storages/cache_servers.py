"""The memcached servers of ``cache-servers``: their addresses and versions."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence

from zodbshootout.client.storage_info import Address

DEFAULT_PORT = 11211
TIMEOUT = 3.0
"""Seconds that a server has to answer."""

_NETWORK = re.compile(
    r"((inet6?|tcp):)?(?P<host>\[[^]]+\]|[^:\[\]/]+)(:(?P<port>\d+))?(:(?P<weight>\d+))?"
)


def address_of(text: str) -> Address | None:
    """Return the address of a server as client libraries read it; ``None`` for UDP and the like."""
    path = text.removeprefix("unix:")
    if path.startswith("/"):
        return path
    match = _NETWORK.fullmatch(text)
    return (match["host"].strip("[]"), int(match["port"] or DEFAULT_PORT)) if match else None


def addresses(servers: str | Sequence[str] | None) -> list[Address]:
    """Return the addresses in ``cache-servers`` to which one can connect."""
    words = servers.split() if isinstance(servers, str) else servers or ()
    return [address for address in map(address_of, words) if address is not None]


def versions(servers: Iterable[Address]) -> list[str]:
    """Return the different versions of the servers that answer."""
    return sorted({version for version in map(version_of, servers) if version is not None})


def version_of(address: Address) -> str | None:
    """Return the version of a server, or ``None`` if it does not answer."""
    try:
        with _connected(address) as connection:
            connection.sendall(b"version\r\n")
            answer = connection.makefile("rb").readline()
    except OSError:
        return None
    word, _, version = answer.decode("ascii", "replace").strip().partition(" ")
    return version if word == "VERSION" and version else None


def _connected(address: Address) -> socket.socket:
    if isinstance(address, tuple):
        return socket.create_connection(address, TIMEOUT)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(TIMEOUT)
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection
