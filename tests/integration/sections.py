"""Sections of contenders and servers that several modules of tests measure."""

from __future__ import annotations

import re
from itertools import count


def filestorage(path: str) -> str:
    return f"<filestorage>\npath {path}\n</filestorage>\n"


def contender(name: str, storage: str, *settings: str) -> str:
    """Return a contender with a section for its storage, and lines of its own."""
    lines = "".join(f"{line}\n" for line in settings)
    return f"<zodb {name}>\n{lines}{storage}</zodb>\n"


def zeo(*settings: str) -> str:
    """Return a client of ``ZEO_SERVER``."""
    lines = "".join(f"{line}\n" for line in ("server $main", *settings))
    return f"<zeoclient>\n{lines}</zeoclient>\n"


def slowing(storage: str, milliseconds: int, *settings: str) -> str:
    """Return a storage whose commits sleep, and *settings* that make them sleep longer."""
    lines = "".join(f"{line}\n" for line in (f"milliseconds {milliseconds}", *settings))
    return f"<slowing>\n{lines}{storage}</slowing>\n"


def with_blobs(configuration: str) -> str:
    """Return a configuration in which each storage has a directory of its own for blobs."""
    numbers = count()
    return re.sub(
        "^(path|server|keep-history) .*$",
        lambda line: f"{line[0]}\nblob-dir $scratch/blobs-{next(numbers)}",
        configuration,
        flags=re.MULTILINE,
    )


ZEO_SERVER = f"<zeoserver main>\n{filestorage('$scratch/zeo.fs')}</zeoserver>\n"
POSTGRESQL_SERVER = "<postgresqlserver pg>\n</postgresqlserver>\n"
POSTGRESQL = (
    "<relstorage>\nkeep-history false\n<postgresql>\n"
    "dsn host='$pg_host' port='$pg_port' dbname='zodbshootout' user='zodbshootout' "
    "password='$pg_password'\n</postgresql>\n</relstorage>\n"
)
MYSQL = "%import zodbshootout.mysql\n"
MYSQL_SERVER = "<mysqlserver my>\n</mysqlserver>\n"
MARIADB = (
    "<relstorage>\nkeep-history false\n<mysql-or-mariadb>\nhost $my_host\nport $my_port\n"
    "user zodbshootout\npasswd $my_password\ndb zodbshootout\n</mysql-or-mariadb>\n</relstorage>\n"
)
SQLITE = (
    "<relstorage>\nkeep-history false\n<sqlite3>\ndata-dir $scratch/sqlite\n</sqlite3>\n"
    "</relstorage>\n"
)
RELSTORAGE = "%import relstorage\n"
