"""The network connections of this process, whichever library has opened them."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

from zodbshootout.model.specification import Address
from zodbshootout.model.storage_facts import Place

_OPEN_FILES = Path("/dev/fd")
"""The directory that lists the open files of a process, on Linux and macOS."""
Peer = tuple[Address, Place]
"""The other end of a connection: its address, and whether it is on this machine."""
Socket = tuple[int, str]
"""The inode number and the local address of a socket; together they identify the socket."""


def peers() -> frozenset[Peer]:
    """Return the peers of all connected sockets of this process.

    Sockets without a name are left out: they connect a process to itself or to its parent.
    """
    return frozenset(peer for _, peer in _connections())


def sockets() -> dict[Socket, Address]:
    """Return the connected sockets of this process, and the address of the other end of each.

    Sockets without a name are left out.
    """
    return {one: address for one, (address, _) in _connections()}


def place_of(servers: Collection[Peer]) -> Place | None:
    """Return whether *servers* all run here, or some elsewhere; ``None`` if there are none."""
    places = {place for _, place in servers}
    return Place.ELSEWHERE if Place.ELSEWHERE in places else next(iter(places), None)


def _connections() -> Iterator[tuple[Socket, Peer]]:
    with suppress(OSError):
        for file in list(_OPEN_FILES.iterdir()):
            with suppress(OSError):  # the listing's own descriptor is closed by now
                status = os.fstat(int(file.name))
                if stat.S_ISSOCK(status.st_mode):
                    yield from _connection(int(file.name), status.st_ino)


def _connection(descriptor: int, number: int) -> Iterator[tuple[Socket, Peer]]:
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        peer, own = connection.getpeername(), connection.getsockname()
        if connection.family == socket.AF_UNIX and peer:
            yield (number, str(own)), (str(peer), Place.HERE)
        elif connection.family in {socket.AF_INET, socket.AF_INET6}:
            is_here = peer[0] == own[0] or ip_address(peer[0]).is_loopback
            place = Place.HERE if is_here else Place.ELSEWHERE
            yield (number, str(own)), ((str(peer[0]), int(peer[1])), place)
