from __future__ import annotations

from collections.abc import Sequence

from zodbshootout.servers.account import NOBODY
from zodbshootout.servers.private import Server
from zodbshootout.servers.programs import MEMCACHED


class MemcachedServer(Server):
    """memcached, reached over TCP."""

    own_settings = frozenset({"listen", "port", "udp_port", "user"})
    accounts = ("memcache", "memcached", NOBODY)

    def command(self) -> Sequence[str]:
        settings = self.section.settings.items()
        return [
            MEMCACHED.program("memcached", given=self.section.programs),
            f"--listen={self.host}",
            f"--port={self.port}",
            "--udp-port=0",
            *(f"--{name}={text}" if text else f"--{name}" for name, text in settings),
        ]
