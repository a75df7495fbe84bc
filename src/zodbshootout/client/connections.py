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
"""The other end of a connection: its address, and where it is."""


def peers() -> frozenset[Peer]:
    """Return the peers of all connected sockets of this process.

    Sockets without a name are left out: they connect a process with itself or with its parent.
    """
    return frozenset(_peers())


def place_of(servers: Collection[Peer]) -> Place | None:
    """Return where *servers* run, elsewhere if one of them does, or ``None`` if there are none."""
    places = {place for _, place in servers}
    return Place.ELSEWHERE if Place.ELSEWHERE in places else next(iter(places), None)


def _peers() -> Iterator[Peer]:
    with suppress(OSError):
        for file in list(_OPEN_FILES.iterdir()):
            with suppress(OSError):  # that of this listing is closed by now
                if stat.S_ISSOCK(os.fstat(int(file.name)).st_mode):
                    yield from _peer(int(file.name))


def _peer(descriptor: int) -> Iterator[Peer]:
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        peer, own = connection.getpeername(), connection.getsockname()
        if connection.family == socket.AF_UNIX and peer:
            yield str(peer), Place.HERE
        elif connection.family in {socket.AF_INET, socket.AF_INET6}:
            is_here = peer[0] == own[0] or ip_address(peer[0]).is_loopback
            yield (str(peer[0]), int(peer[1])), Place.HERE if is_here else Place.ELSEWHERE
