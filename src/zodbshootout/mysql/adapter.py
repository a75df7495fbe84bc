"""RelStorage's adapter for MySQL, corrected for the server that it connects to."""

from __future__ import annotations

from typing import Any

from relstorage.adapters.mysql import MySQLAdapter

from zodbshootout.mysql.schema import SchemaInstaller
from zodbshootout.mysql.version import REPORTED, VersionDetector, number, product


class MySQLOrMariaDBAdapter(MySQLAdapter):  # type: ignore[misc]
    """RelStorage's adapter with another version detector and another schema installer."""

    version_detector: Any

    def _create(self) -> None:
        if self.version_detector is None:
            self.version_detector = VersionDetector()
        super()._create()
        self.schema = SchemaInstaller(
            driver=self.driver,
            connmanager=self.connmanager,
            runner=self.runner,
            keep_history=self.keep_history,
            version_detector=self.version_detector,
        )

    @property
    def server_version(self) -> str:
        """What the server says its version is; it is asked once.

        What the driver raises when it cannot connect goes through.
        """
        if self.version_detector.server_version is None:
            self.connmanager.open_and_call(self._ask_for_version)
        return str(self.version_detector.server_version)

    def _ask_for_version(self, _connection: Any, cursor: Any) -> None:
        self.version_detector.get_version(cursor)

    @property
    def corrections(self) -> tuple[str, ...]:
        """What is done otherwise than RelStorage would do it on this server, in a few words each.

        What the driver raises when it cannot connect goes through.
        """
        version = self.server_version
        found = []
        if self.schema.leaves_out_references:
            found.append("object_state without inline foreign keys")
        if product(version) == "MariaDB":
            found.append(f"MariaDB {number(version)} reported as MySQL {REPORTED}")
        return tuple(found)
