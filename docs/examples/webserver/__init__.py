"""A web server, as an example of a server that the run starts."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from zodbshootout.api.servers import Server


class WebServer(Server):
    """Python's web server, reached over TCP."""

    own_settings = frozenset({"bind", "directory"})

    def prepare(self) -> None:
        self.directory.write("index.html", "It works.\n")

    def command(self) -> Sequence[str]:
        settings = self.section.settings.items()
        return [
            sys.executable, "-m", "http.server", str(self.port), f"--bind={self.host}",
            f"--directory={self.directory.path}",
            *(f"--{name}={text}" for name, text in settings),
        ]  # fmt: skip
