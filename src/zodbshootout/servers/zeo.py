from __future__ import annotations

import sys
from collections.abc import Sequence

from zodbshootout.config.configuration import prelude
from zodbshootout.servers.private import Server, Site


class ZEOServer(Server):
    """ZEO's own ``runzeo`` around the storage in the section."""

    def command(self, site: Site) -> Sequence[str]:
        """Write a configuration for runzeo; return the command that reads it."""
        path = site.directory / "zeo.conf"
        path.write_text(
            f"{prelude(site.names)}"
            "<zeo>\n"
            f"  address {site.address}\n"
            f"  pid-filename {site.directory / 'zeo.pid'}\n"
            "</zeo>\n"
            f"{site.source.imports}"
            f"{site.source.nested_text(self.name)}\n",
            encoding="utf-8",
        )
        return [sys.executable, "-m", "ZEO.runzeo", "-C", str(path)]
