from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zodbshootout.client.specification import ClientKind
from zodbshootout.client.storage_info import Address, Advice, Limit, Requirement
from zodbshootout.client.storages.cache_servers import addresses
from zodbshootout.contenders.kind import SectionKind

_DRIVERS = {
    "PostgreSQLAdapterFactory": ("postgresql", "psycopg2-binary"),
    "MySQLAdapterFactory": ("mysql", "mysqlclient"),
    "OracleAdapterFactory": ("oracle", "cx_Oracle"),
}
"""The section of an adapter, and the package with the driver that it prefers."""
_PACKAGES = {
    "pg8000": "pg8000",
    "psycopg2cffi": "psycopg2cffi",
    "pymysql": "PyMySQL",
    "c mysql connector/python": "mysql-connector-python",
    "py mysql connector/python": "mysql-connector-python",
}
"""The packages of other drivers, by their names in lower case."""
_NO_GREENLETS = Limit(
    "the driver psycopg2 refuses to run with greenlets; use gevent psycopg2",
    client_kinds=frozenset({ClientKind.GREENLET}),
)
_GREENLETS_ONLY = Limit(
    "the driver gevent psycopg2 refuses to run without --gevent; use psycopg2",
    client_kinds=frozenset(ClientKind) - {ClientKind.GREENLET},
)
_LIMITS = {"psycopg2": [_NO_GREENLETS], "gevent psycopg2": [_GREENLETS_ONLY]}
"""By driver."""
_OUR_SECTION = Advice(
    r"Error: \(?(1005\b.*object_state.*errno: 150\b|1064\b.*'AS excluded\b|3780\b.*'object_state_"
    r"|invalid literal for int\(\).*\+maria)",  # a version that RelStorage cannot read
    "for this server write '%import zodbshootout.mysql' and <mysql-or-mariadb>",
)
"""How RelStorage 4.3 fails on MariaDB, and on MySQL from 9.0 on, in the words of those servers."""


class RelStorageSection(SectionKind):
    """``<relstorage>``."""

    section_classes = ("relstorage.config.RelStorageFactory",)
    storage_name = "RelStorage"
    prefetches = True
    serves_threads = False
    holds_changes = False

    @classmethod
    def limits(cls, section: Any) -> Sequence[Limit]:
        return _LIMITS.get(getattr(section.config.adapter.config, "driver", None) or "", ())

    @classmethod
    def requirements(cls, section: Any) -> Sequence[Requirement]:
        # Without this RelStorage would be measured as if there were a memcached.
        named = addresses(getattr(section.config, "cache_servers", None))
        return [Requirement((address,), _no_memcached(address)) for address in named]

    @classmethod
    def installation(cls, section: Any) -> str | None:
        adapter = section.config.adapter
        if _kind(adapter) not in _DRIVERS:
            return None
        name, preferred = _DRIVERS[_kind(adapter)]
        driver = adapter.config.driver
        package = _PACKAGES.get(driver.lower(), preferred)
        what = "no driver for it" if driver == "auto" else f"the driver {driver!r}"
        verb = "is installed" if driver == "auto" else "is not installed"
        return f"<{name}>: {what} {verb}; install it: pip install {package}"

    @classmethod
    def advice(cls, section: Any) -> Sequence[Advice]:
        adapter = type(section.config.adapter).__name__
        return [_OUR_SECTION] if adapter == "MySQLAdapterFactory" else []


def _kind(adapter: Any) -> str:
    """Return the class name of RelStorage's own section that *adapter* is or derives from."""
    own = (cls.__name__ for cls in type(adapter).__mro__ if cls.__module__ == "relstorage.config")
    return next(own, type(adapter).__name__)


def _no_memcached(address: Address) -> str:
    if isinstance(address, str):
        return f"no memcached at {address}; start one there: memcached -s {address}"
    host, port = address
    return f"no memcached at {host}:{port}; start one there: memcached -l {host} -p {port}"


KINDS = (RelStorageSection,)
