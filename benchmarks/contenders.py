"""Sections of configurations for this package's modules."""

from __future__ import annotations

IMPORTS = "%import relstorage\n"

POSTGRESQL_SERVER = """
<postgresqlserver pg>
    database zodbshootout
    user zodbshootout
</postgresqlserver>
"""
POSTGRESQL = """
<zodb postgresql>
    cache-size 5000
    <relstorage>
        keep-history false
        <postgresql>
            dsn host='$pg_host' port='$pg_port' dbname='zodbshootout' user='zodbshootout' \
password='$pg_password'
        </postgresql>
    </relstorage>
</zodb>
"""


def zeo_server(name: str) -> str:
    """Return the section of a private ZEO server on a FileStorage."""
    return f"""
<zeoserver {name}>
    <filestorage>
        path $scratch/{name}.fs
    </filestorage>
</zeoserver>
"""


def zeo(contender: str, server: str) -> str:
    """Return the section of a contender on the ZEO server *server*."""
    return f"""
<zodb {contender}>
    cache-size 5000
    <zeoclient>
        server ${server}
    </zeoclient>
</zodb>
"""


def sqlite(contender: str, directory: str = "$scratch", cache_size: int = 5000) -> str:
    """Return the section of a contender on RelStorage with its own SQLite database.

    It names a driver, because RelStorage sometimes takes the one for gevent, which is a quarter
    slower.
    """
    return f"""
<zodb {contender}>
    cache-size {cache_size}
    <relstorage>
        keep-history false
        <sqlite3>
            data-dir {directory}/{contender}
            driver sqlite3
        </sqlite3>
    </relstorage>
</zodb>
"""
