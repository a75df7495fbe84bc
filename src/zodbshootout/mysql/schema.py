"""RelStorage's schema, without what the server takes for a foreign key that cannot be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from relstorage.adapters.mysql.schema import MySQLSchemaInstaller

from zodbshootout.mysql.version import honours_inline_references

_REFERENCES = re.compile(
    r"""
    (?P<of_the_table> FOREIGN \s+ KEY \s* \w* \s* \([^)]*\) \s* REFERENCES )
    | \s+ REFERENCES \s+ (?: "[^"]*" | `[^`]*` | [\w.]+ ) (?: \s* \([^)]*\) )?
      (?: \s+ ON \s+ (?:DELETE|UPDATE) \s+ (?:CASCADE|RESTRICT|SET \s+ NULL|NO \s+ ACTION) )*
    """,
    re.IGNORECASE | re.VERBOSE,
)


def without_inline_references(statement: str) -> str:
    """Return a CREATE TABLE without the ``REFERENCES`` in definitions of columns.

    Those of ``FOREIGN KEY (...) REFERENCES ...`` stay.
    """
    return _REFERENCES.sub(lambda found: found["of_the_table"] or "", statement)


class SchemaInstaller(MySQLSchemaInstaller):  # type: ignore[misc]
    """Installs RelStorage's schema, corrected where the server needs that.

    ``version_detector`` has to be one of :class:`zodbshootout.mysql.version.VersionDetector`.
    """

    @property
    def leaves_out_references(self) -> bool:
        """Whether ``object_state`` is not as RelStorage has it; the server has to be known."""
        return self._original_template != self.CREATE_OBJECT_STATE_TMPL

    @property
    def CREATE_OBJECT_STATE_TMPL(self) -> str:  # noqa: N802 - RelStorage's name
        """The statement that makes ``object_state``, as this server takes it."""
        if honours_inline_references(self.version_detector.server_version):
            return without_inline_references(self._original_template)
        return self._original_template

    @property
    def _original_template(self) -> str:
        # Without a template there is nothing in it to be left out.
        return getattr(super(), "CREATE_OBJECT_STATE_TMPL", "")

    def _create_object_state(self, cursor: Any) -> None:
        self.version_detector.get_version(cursor)
        super()._create_object_state(cursor)

    def _read_proc_files(self) -> Mapping[str, str]:
        # RelStorage reads them from beside the module of the installer's class, and keeps what it
        # has found for every installer there is: with this class it would be nothing.
        own = MySQLSchemaInstaller(
            driver=self.driver,
            version_detector=self.version_detector,
            connmanager=self.connmanager,
            runner=self.runner,
            keep_history=self.keep_history,
        )
        return dict(own.procedures)
