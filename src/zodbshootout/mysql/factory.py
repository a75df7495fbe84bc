"""The ``<mysql-or-mariadb>`` section."""

from __future__ import annotations

from typing import Any

from relstorage.config import MySQLAdapterFactory


class MySQLOrMariaDBAdapterFactory(MySQLAdapterFactory):  # type: ignore[misc]
    """RelStorage's ``<mysql>`` section with our adapter."""

    def create(self, options: Any) -> Any:
        """Return the adapter, without connecting to a database."""
        # Imported late, as in RelStorage, so that reading a configuration needs no database driver.
        from zodbshootout.mysql.adapter import MySQLOrMariaDBAdapter

        values = {key: getattr(self.config, key) for key in self.config.getSectionAttributes()}
        del values["driver"]  # RelStorage's section put the driver into the options
        configured = {key: value for key, value in values.items() if value is not None}
        return MySQLOrMariaDBAdapter(options=options, **configured)
