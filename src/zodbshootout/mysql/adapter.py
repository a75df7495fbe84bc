"""RelStorage's adapter for MySQL, with corrections for MariaDB and for recent MySQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from relstorage.adapters.mysql import MySQLAdapter
from relstorage.adapters.mysql.schema import MySQLSchemaInstaller, MySQLVersionDetector

REPORTED = "5.7.44"
"""The version that RelStorage is told for every MariaDB.  RelStorage's SQL for MySQL 5.7 works in
MariaDB."""

_FIRST_WITH_INLINE_REFERENCES = {"MariaDB": (10, 5), "MySQL": (9, 0)}
_REFERENCES = re.compile(
    r"""
    (?P<of_the_table> FOREIGN \s+ KEY \s* \w* \s* \([^)]*\) \s* REFERENCES )
    | \s+ REFERENCES \s+ (?: "[^"]*" | `[^`]*` | [\w.]+ ) (?: \s* \([^)]*\) )?
      (?: \s+ ON \s+ (?:DELETE|UPDATE) \s+ (?:CASCADE|RESTRICT|SET \s+ NULL|NO \s+ ACTION) )*
    """,
    re.IGNORECASE | re.VERBOSE,
)


def product(version: str) -> str:
    """Return ``MariaDB`` or ``MySQL``, given the version that the server reports."""
    return "MariaDB" if "mariadb" in version.lower() else "MySQL"


def number(version: str) -> str:
    """Return the digits and dots at the start of a version."""
    return re.split(r"[^\d.]", version, maxsplit=1)[0]


def honours_inline_references(version: str) -> bool:
    """Return whether ``REFERENCES`` in a column definition creates a foreign key.

    Servers older than MariaDB 10.5 or MySQL 9.0 ignore such a ``REFERENCES``.
    """
    parts = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    return parts >= _FIRST_WITH_INLINE_REFERENCES[product(version)]


def without_inline_references(statement: str) -> str:
    """Return a CREATE TABLE statement without ``REFERENCES`` in column definitions.

    ``FOREIGN KEY (...) REFERENCES ...`` stays.
    """
    return _REFERENCES.sub(lambda match: match["of_the_table"] or "", statement)


class VersionDetector(MySQLVersionDetector):  # type: ignore[misc]
    """A detector that presents MariaDB to RelStorage as MySQL 5.7; MySQL keeps its version."""

    server_version: str | None = None
    """The version that the server itself reports; ``None`` until the server has been asked."""

    def _fetch_version_from_server(self, cursor: Any) -> str:
        version = self.server_version = str(super()._fetch_version_from_server(cursor))
        return REPORTED if product(version) == "MariaDB" else version


class SchemaInstaller(MySQLSchemaInstaller):  # type: ignore[misc]
    """An installer of RelStorage's schema without the foreign keys that the server rejects.

    The ``version_detector`` must be a :class:`VersionDetector`.
    """

    @property
    def leaves_out_references(self) -> bool:
        """Whether our ``object_state`` differs from RelStorage's.

        The detector must have read the server's version already.
        """
        return self._original_template != self.CREATE_OBJECT_STATE_TMPL

    @property
    def CREATE_OBJECT_STATE_TMPL(self) -> str:  # noqa: N802 - RelStorage's name
        """The statement that creates ``object_state`` on this server."""
        if honours_inline_references(self.version_detector.server_version):
            return without_inline_references(self._original_template)
        return self._original_template

    @property
    def _original_template(self) -> str:
        # If this RelStorage has no such template, there is nothing to leave out.
        return getattr(super(), "CREATE_OBJECT_STATE_TMPL", "")

    def _create_object_state(self, cursor: Any) -> None:
        self.version_detector.get_version(cursor)
        super()._create_object_state(cursor)

    def _read_proc_files(self) -> Mapping[str, str]:
        # RelStorage would look in the directory of this class's module, find no procedures, and
        # cache this result for all installers.
        own = MySQLSchemaInstaller(
            driver=self.driver,
            version_detector=self.version_detector,
            connmanager=self.connmanager,
            runner=self.runner,
            keep_history=self.keep_history,
        )
        return dict(own.procedures)


class MySQLOrMariaDBAdapter(MySQLAdapter):  # type: ignore[misc]
    """RelStorage's adapter with our version detector and schema installer."""

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
        """The version that the server reports; the server is asked only once.

        If connecting fails, the driver's exception propagates.
        """
        if self.version_detector.server_version is None:
            self.connmanager.open_and_call(
                lambda _, cursor: self.version_detector.get_version(cursor)
            )
        return str(self.version_detector.server_version)

    @property
    def corrections(self) -> tuple[str, ...]:
        """The differences from RelStorage's own adapter on this server, each in a few words.

        If connecting fails, the driver's exception propagates.
        """
        version = self.server_version
        corrections = []
        if self.schema.leaves_out_references:
            corrections.append("object_state without inline foreign keys")
        if product(version) == "MariaDB":
            corrections.append(f"MariaDB {number(version)} reported as MySQL {REPORTED}")
        return tuple(corrections)
