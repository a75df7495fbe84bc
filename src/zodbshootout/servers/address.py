"""Addresses of servers: which are free, and at which something answers."""

from __future__ import annotations

import socket

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


def split(address: str) -> tuple[str, int]:
    """Return the host and the port of ``host:port``."""
    host, _, port = address.rpartition(":")
    return host, int(port)


def free_address() -> str:
    """Return ``host:port`` of a port on the loopback interface that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        host, port = probe.getsockname()
    return f"{host}:{port}"
