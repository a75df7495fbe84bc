"""The names that a private server needs."""

from zodbshootout.config.configuration import ServerSection
from zodbshootout.guardian import Ending
from zodbshootout.servers import ServerFailed
from zodbshootout.servers.installation import Installation, ServerDirectory
from zodbshootout.servers.server import DatabaseServer, Server

__all__ = [
    "DatabaseServer", "Ending", "Installation", "Server", "ServerDirectory", "ServerFailed",
    "ServerSection",
]  # fmt: skip
