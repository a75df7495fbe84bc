from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property

from zodbshootout.client.database import prelude
from zodbshootout.client.reachability import host_and_port
from zodbshootout.config.configuration import ServerSection
from zodbshootout.model.specification import Interpreter, variables_for
from zodbshootout.servers import allowed_settings
from zodbshootout.servers.address import is_loopback
from zodbshootout.servers.server import START_TIMEOUT, Server, ServerContext
from zodbshootout.versions import installed_versions

_FILE = "zeo.conf"
_CLIENT_IMPORT = "%import ZEO"
"""The import that client sections need.  The server's file omits this import, because the import
would redefine the <ssl> section of ``runzeo``."""
_OURS = Interpreter("", sys.executable, "", sees_ours=True)
_PACKAGES = ("ZEO", "ZODB", "uvloop")
"""Packages that affect a server; ZEO uses uvloop's event loop if it is installed."""
_VERSIONS = (
    "import json, sys; from zodbshootout.versions import installed_versions; "
    "print(json.dumps(installed_versions(sys.argv[1:])))"
)


class ZEOServer(Server):
    """ZEO's own ``runzeo`` with the storages in the section."""

    own_settings = frozenset({"address", "pid_filename"})
    allowed_settings = allowed_settings.ZEO

    def __init__(self, section: ServerSection, context: ServerContext) -> None:
        super().__init__(section, context)
        self._python = context.pythons.get(self.name, _OURS)
        if not section.config.ssl and not is_loopback(self.host):
            raise self.mistake(
                f"with listen {self.host}, anyone on that network could use it; set ssl true",
                "listen",
            )
        if section.config.ssl and f"{self.name}_certificate" not in context.names:
            raise self.mistake(
                f"it has ssl, but no contender has an <ssl> with ${self.name}_certificate, "
                f"${self.name}_key and ${self.name}_authority",
                "ssl",
            )

    def prepare(self) -> None:
        settings = {
            "address": host_and_port(self.host, self.port),
            "pid-filename": str(self.directory.path / "zeo.pid"),
            **self.section.settings,
        }
        lines = (f"  {name} {text.replace('$', '$$')}\n" for name, text in settings.items())
        text = self.section.text
        imports = (item.line.text for item in text.all_imports if item.line.text != _CLIENT_IMPORT)
        storage = "\n".join([*imports, text.storage])
        self.directory.write(
            _FILE,
            f"{prelude(self.context.names)}"
            f"<zeo>\n{''.join(lines)}{self._encryption()}</zeo>\n{storage}",
        )

    def _encryption(self) -> str:
        if not self.section.config.ssl:
            return ""
        parts = {"certificate": "certificate", "key": "key", "authenticate": "authority"}
        lines = (f"    {key} ${self.name}_{part}\n" for key, part in parts.items())
        return f"  <ssl>\n{''.join(lines)}  </ssl>\n"

    def command(self) -> Sequence[str]:
        path = str(self.directory.path / _FILE)
        return [self._python.executable, "-m", "ZEO.runzeo", "-C", path]

    def environment(self) -> dict[str, str]:
        return variables_for(self._python, os.environ)

    @cached_property
    def versions(self) -> Mapping[str, str]:
        versions = (
            installed_versions(_PACKAGES) if self._python is _OURS else self._versions_there()
        )
        return {f"{name}_server": version for name, version in versions.items()}

    def _versions_there(self) -> Mapping[str, str]:
        """Return the versions in another Python; empty if that Python fails."""
        command = [self._python.executable, "-c", _VERSIONS, *_PACKAGES]
        try:
            done = subprocess.run(
                command, check=True, capture_output=True, timeout=START_TIMEOUT,
                stdin=subprocess.DEVNULL, env=self.environment(),
            )  # fmt: skip
            versions: dict[str, str] = json.loads(done.stdout)
        except (OSError, subprocess.SubprocessError, ValueError):
            return {}
        return versions
