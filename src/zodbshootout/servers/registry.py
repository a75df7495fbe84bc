"""Which server each kind of section describes."""

from __future__ import annotations

from collections.abc import Mapping

from zodbshootout.config.sections import ServerSection
from zodbshootout.servers.private import Server
from zodbshootout.servers.zeo import ZEOServer

_SERVERS: Mapping[str, type[Server]] = {"zeoserver": ZEOServer}


def server_of(section: ServerSection) -> Server:
    """Return the server that a section describes, not yet started."""
    return _SERVERS[section.kind](section)
