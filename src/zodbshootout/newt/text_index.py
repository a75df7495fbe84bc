"""The ``<newt-with-text-index>`` section."""

from __future__ import annotations

from typing import Any

from newt.db.component import Adapter
from newt.db.search import create_text_index_sql

_FUNCTION = "zodbshootout_text"
_WORDS = r"regexp_replace(state -> 'content' ->> 'hex', '(.{12})', '\1 ', 'g')"
"""SQL that splits content, which Newt DB stores as hexadecimal digits, into words of 6 bytes."""


class AdapterWithTextIndex(Adapter):  # type: ignore[misc]
    """Newt DB's adapter, which also creates a text index when it creates its tables."""

    def create(self, options: Any) -> Any:
        """Return the adapter, without connecting to a database."""
        adapter = super().create(options)
        create_tables = adapter.schema.create

        def create(cursor: Any) -> None:
            create_tables(cursor)
            cursor.execute(create_text_index_sql(_FUNCTION, _WORDS))

        adapter.schema.create = create
        return adapter
