"""Which server it is, and which version RelStorage is told."""

from __future__ import annotations

import re
from typing import Any

from relstorage.adapters.mysql.schema import MySQLVersionDetector

REPORTED = "5.7.44"
"""What RelStorage takes MariaDB for: what it sends to MySQL 5.7 MariaDB understands."""

_FIRST_WITH_INLINE_REFERENCES = {"MariaDB": (10, 5), "MySQL": (9, 0)}
_NUMBER = re.compile(r"\d+(?:\.\d+)*")


def product(version: str) -> str:
    """Return ``MariaDB`` or ``MySQL``, going by what the server says its version is."""
    return "MariaDB" if "mariadb" in version.lower() else "MySQL"


def number(version: str) -> str:
    """Return the version without what follows its digits and dots."""
    found = _NUMBER.match(version)
    return found[0] if found else version


def honours_inline_references(version: str) -> bool:
    """Say whether ``REFERENCES`` in the definition of a column makes a foreign key there.

    Servers before MariaDB 10.5 and MySQL 9.0 read over it.
    """
    parts = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    return parts >= _FIRST_WITH_INLINE_REFERENCES[product(version)]


class VersionDetector(MySQLVersionDetector):  # type: ignore[misc]
    """Tells RelStorage that MariaDB is MySQL 5.7, and the truth about MySQL."""

    server_version: str | None = None
    """What the server itself says, ``None`` until it was asked."""

    def _fetch_version_from_server(self, cursor: Any) -> str:
        version = self.server_version = str(super()._fetch_version_from_server(cursor))
        return REPORTED if product(version) == "MariaDB" else version
