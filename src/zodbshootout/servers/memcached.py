from __future__ import annotations

import signal
from collections.abc import Sequence

from zodbshootout.guardian import Ending
from zodbshootout.servers import allowed_settings
from zodbshootout.servers.installation import MEMCACHED, NOBODY
from zodbshootout.servers.server import Server


class MemcachedServer(Server):
    """memcached, reached over TCP."""

    own_settings = frozenset({"daemon", "listen", "port", "udp_port", "user"})
    allowed_settings = allowed_settings.MEMCACHED
    orderly = abrupt = Ending(signal.SIGKILL)  # a second faster than SIGTERM; no data are kept
    default_connections = 1024
    system_accounts = ("memcache", "memcached", NOBODY)

    def command(self) -> Sequence[str]:
        settings = self.section.settings.items()
        return [
            MEMCACHED.program("memcached", given=self.section.programs),
            f"--listen={self.host}",
            f"--port={self.port}",
            "--udp-port=0",
            f"--conn-limit={self.connections}",
            *(f"--{name}={text}" if text else f"--{name}" for name, text in settings),
        ]
