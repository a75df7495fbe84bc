"""Databases that are described by ZODB URIs, which zodburi resolves."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote_plus, urlsplit

import ZConfig
import ZODB
from ZConfig.matcher import SectionValue

from zodbshootout.client.reachability import Address, Requirement, printable
from zodbshootout.client.storage_types import StorageType
from zodbshootout.client.storage_types.relstorage import check_driver, suitable_driver
from zodbshootout.client.storage_types.relstorage_servers import memcached_addresses
from zodbshootout.errors import suggestion
from zodbshootout.plugins import entries

_SLASHED = frozenset({"file", "memory", "zconfig", "zeo"})
"""zodburi's schemes whose URIs begin with ``SCHEME://``."""
_LOCAL = frozenset({"file", "memory", "sqlite", "zconfig"})
"""The schemes without a server; the section of a ``zconfig:`` URI tells itself whether it has one.
"""
_SERVED = frozenset({"mysql", "postgres", "zeo"})
"""The schemes whose URIs name a server as ``SCHEME://HOST:PORT``."""
ZEO_PORT = 9991
"""The port of a ``zeo:`` URI that names none."""
_QUOTING = (ZConfig.SubstitutionSyntaxError, ZConfig.SubstitutionReplacementError)
"""ZConfig's errors that quote the value of a key."""


def schemes() -> list[str]:
    """Return the schemes for which a resolver is installed."""
    return sorted({resolver.name for resolver in entries("zodburi.resolvers")})


def scheme_of(uri: str) -> str:
    """Return the part of a URI before the first colon."""
    return uri.partition(":")[0]


class ResolvedURI(str):
    """A URI, and what zodburi makes of it."""

    __slots__ = ("open_storage", "options")
    open_storage: Callable[[], Any]
    """A function that opens the storage."""
    options: dict[str, Any]
    """The options of the DB."""

    def __new__(cls, uri: str) -> ResolvedURI:
        """Resolve a URI, but open nothing.

        :raises ValueError: if *uri* does not describe a storage
        """
        resolved = super().__new__(cls, uri)
        resolved.open_storage, resolved.options = _resolved(uri)
        return resolved


def _resolved(uri: str) -> tuple[Callable[[], Any], dict[str, Any]]:
    scheme = scheme_of(uri)
    try:
        import zodburi
    except ImportError:
        raise ValueError(
            "zodburi is not installed; install it: pip install 'zodbshootout[uri]'"
        ) from None
    if scheme not in schemes():
        product, _, _ = scheme.partition("+")  # the rest is a driver for SQLAlchemy
        advice = suggestion(product, schemes())
        raise ValueError(f"no resolver knows the scheme {scheme!r}; {advice}")
    if scheme in _SLASHED and not uri.startswith(f"{scheme}://"):
        raise ValueError(f"it has to begin with {scheme}://")
    try:
        factory, options = zodburi.resolve_uri(uri)
    except Exception as error:  # other packages' resolvers may raise anything
        raise ValueError(_reason(error)) from error
    return factory, options


def _query(uri: str) -> dict[str, str]:
    return dict(parse_qsl(uri.partition("#")[0].partition("?")[2]))


def _reason(error: Exception) -> str:
    """Return an exception's message in one line."""
    if isinstance(error, ZConfig.ConfigurationError):  # in the file that a zconfig: URI names
        number = getattr(error, "lineno", None)
        place = f"line {number}: " if number else ""
        if isinstance(error, _QUOTING):  # perhaps a password
            return f"{place}write a literal $ in a value as $$, and define a name before $name"
        return f"{place}{' '.join(str(error.message).split())}"
    # str() of a KeyError is the repr() of its message.
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    return " ".join(str(message).split()) or type(error).__name__


class URIDatabase:
    """A ``<zodburi NAME>`` section."""

    def __init__(self, section: Any) -> None:
        self.uri: ResolvedURI = section.uri
        """The URI that is opened; :meth:`StorageOfURI.settle` may add a driver."""
        # The function of a zconfig: URI is a method of the storage's section.
        storage = getattr(self.uri.open_storage, "__self__", None)
        inner = {"storage": storage} if hasattr(storage, "config") else {}
        own = {"uri": section.uri, "parameters": _query(section.uri), **inner}
        name, matcher = section.getSectionName(), section.getSectionMatcher()
        self.config = SectionValue({**own, **self.uri.options}, name, matcher)
        """The URI as it is written, its parameters, the options of the DB and, for a ``zconfig:``
        URI, the section of the storage."""

    def open_storage(self) -> Any:
        """Open the storage without a DB."""
        return self.uri.open_storage()

    def open(self) -> Any:
        """Open the DB."""
        storage = self.open_storage()
        try:
            return ZODB.DB(storage, **self.uri.options)
        except BaseException:
            storage.close()
            raise


class StorageOfURI(StorageType):
    """Any storage that a ZODB URI describes."""

    section_classes = (f"{__name__}.URIDatabase",)

    @classmethod
    def requirements(cls, section: Any) -> Sequence[Requirement]:
        # RelStorage would run without its memcached, and ZEO's client would wait for 30 seconds.
        caches = _query(section.uri).get("cache_servers", "").split(",")
        known = [*_zeo_addresses(section.uri), *memcached_addresses(caches)]
        return [
            Requirement((address,), f"no server at {printable(address)}; start one there")
            for address in known
        ]

    @classmethod
    def settle(cls, section: Any) -> None:
        section.uri = ResolvedURI(_with_driver(section.uri))

    @classmethod
    def server_line(cls, section: Any) -> str | None:
        scheme = scheme_of(section.uri)
        if scheme in _SERVED:
            return f"uri {scheme}://$db in a <zodburi NAME>"
        if "cache_servers" in _query(section.uri):
            return "cache_servers=$db in the uri"
        return "" if scheme in _LOCAL else None


def _zeo_addresses(uri: str) -> list[Address]:
    """Return the address of the server of a ``zeo:`` URI; empty for other URIs."""
    if scheme_of(uri) != "zeo":
        return []
    parts = urlsplit(uri)
    if parts.hostname:
        return [(parts.hostname, parts.port or ZEO_PORT)]
    return [re.split(r"[?#]", uri.removeprefix("zeo://"), maxsplit=1)[0]]


def _with_driver(uri: str) -> str:
    """Return *uri* with a driver added, if RelStorage might choose an unsuitable one."""
    head, mark, fragment = uri.partition("#")
    named = _query(uri).get("driver", "auto")
    check_driver(named)
    driver = suitable_driver(scheme_of(uri))
    if driver is None or named != "auto":
        return uri
    return f"{head}{'&' if '?' in head else '?'}driver={quote_plus(driver)}{mark}{fragment}"


STORAGES = (StorageOfURI,)
