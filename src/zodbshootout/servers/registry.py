"""Which server each kind of section describes."""

from __future__ import annotations

from collections.abc import Mapping

from zodbshootout.config.configuration import ServerSection
from zodbshootout.servers.memcached import MemcachedServer
from zodbshootout.servers.mysql import MySQLServer
from zodbshootout.servers.postgresql import PostgreSQLServer
from zodbshootout.servers.server import Server, ServerContext
from zodbshootout.servers.zeo import ZEOServer

_SERVERS: Mapping[str, type[Server]] = {
    "memcachedserver": MemcachedServer,
    "mysqlserver": MySQLServer,
    "postgresqlserver": PostgreSQLServer,
    "zeoserver": ZEOServer,
}


def server_of(section: ServerSection, context: ServerContext) -> Server:
    """Return the server that a section describes, not yet started.

    :raises UserError: when the section sets what only the run may set
    """
    return _SERVERS[section.kind](section, context)
