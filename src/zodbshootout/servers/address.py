"""Addresses of servers: which are free, and at which something answers."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

HOST = "127.0.0.1"
"""The loopback interface, on which private servers listen by default; no other host reaches it."""
CONNECT_TIMEOUT = 3.0
"""Seconds that a server may take to accept a connection."""
_NO_HOST = "203.0.113.0"
"""An address that no host has: it is reserved for documentation."""


def accepts(address: tuple[str, int] | str) -> bool:
    """Return whether something accepts connections at a host and port, or at a socket's path."""
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
    """Return whether a server at *address* speaks first, as MySQL's do when they are ready."""
    try:
        with socket.create_connection(address, CONNECT_TIMEOUT) as connection:
            return bool(connection.recv(1))
    except OSError:
        return False


def is_loopback(host: str) -> bool:
    """Return whether no other host can reach a *host*."""
    return _resolved(host).is_loopback


def is_unspecified(host: str) -> bool:
    """Return whether a *host* stands for all addresses of this one."""
    return _resolved(host).is_unspecified


def client_address(host: str) -> str | None:
    """Return the only address from which clients reach a *host*, ``None`` if there are others."""
    address = _resolved(host)
    if not address.is_loopback:
        return None
    return "::1" if isinstance(address, ipaddress.IPv6Address) else HOST


def _resolved(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the address of a *host*, or an address that no host has if it cannot be resolved."""
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ipaddress.ip_address(_NO_HOST)
    return ipaddress.ip_address(answers[0][4][0])


def host_and_port(host: str, port: int | str) -> str:
    """Return an address in one word: ``host:port``, or ``[host]:port`` for IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextmanager
def reserved_port(host: str = HOST) -> Iterator[int]:
    """Reserve a free port of this *host* as long as the context lasts.

    On Linux a socket that is bound and does not listen keeps the port from every other program
    that asks for any free port, and from outgoing connections, but not from a server that asks
    for this very port with ``SO_REUSEADDR``, as servers do.  Elsewhere nothing is reserved: the
    port was free a moment ago.

    :raises OSError: if *host* is not an address of this host
    """
    family, *_, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    with socket.socket(family) as holder:
        if sys.platform == "linux":
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(address)
        port: int = holder.getsockname()[1]
        if sys.platform != "linux":
            holder.close()
        yield port
