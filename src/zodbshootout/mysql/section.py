"""What ZConfig makes of a ``<mysql-or-mariadb>`` section."""

from __future__ import annotations

from typing import Any

from relstorage.config import MySQLAdapterFactory


class MySQLOrMariaDBAdapterFactory(MySQLAdapterFactory):  # type: ignore[misc]
    """RelStorage's ``<mysql>`` section with another adapter behind it."""

    def create(self, options: Any) -> Any:
        """Return the adapter; nothing is connected to yet."""
        # Like RelStorage's own: a configuration is read without the database's modules.
        from zodbshootout.mysql.adapter import MySQLOrMariaDBAdapter

        given = {key: getattr(self.config, key) for key in self.config.getSectionAttributes()}
        del given["driver"]  # RelStorage's section has put it into the options
        set_here = {key: value for key, value in given.items() if value is not None}
        return MySQLOrMariaDBAdapter(options=options, **set_here)
