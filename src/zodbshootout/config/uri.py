"""ZODB URIs: words that describe a database, and that zodburi resolves."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import ZConfig
import ZODB.config
from ZConfig.matcher import SectionValue

from zodbshootout.config.advice import explained, not_converted
from zodbshootout.config.source import Source
from zodbshootout.config.tree import path_of
from zodbshootout.errors import UserError, suggestion
from zodbshootout.plugins import entries

_BEGINNING = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):(?P<rest>//|\()?", re.IGNORECASE)
_DEMO = re.compile(r"demo:\((.*)\)/\((.*)\)(?:#.*)?")
_SEVERAL_SERVERS = re.compile(r"zeo://[^/?#]*,")
_ZEO_PORT = 9991
"""zodburi's default port."""
_ADAPTERS = {
    "mysql": "MySQLAdapterFactory",
    "oracle": "OracleAdapterFactory",
    "postgres": "PostgreSQLAdapterFactory",
    "sqlite": "Sqlite3AdapterFactory",
}
"""The section classes of RelStorage's adapters, by scheme."""
_SLASHED = frozenset({"file", "memory", "zconfig", "zeo", *_ADAPTERS})
"""The schemes whose URIs begin with ``SCHEME://``."""


def _unusable(uri: str, reason: str) -> ValueError:
    """Return an error in one line; ZConfig adds the place in the file."""
    return ValueError(f"{uri.rstrip(':')}: {reason}")


def is_uri(word: str) -> bool:
    """Return whether *word* looks like a ZODB URI, even one of an unknown scheme."""
    match = _BEGINNING.match(word)
    return match is not None and (match["rest"] is not None or match["scheme"] in schemes())


def schemes() -> list[str]:
    """Return the schemes for which a resolver is installed."""
    return sorted({resolver.name for resolver in entries("zodburi.resolvers")})


def scheme_of(uri: str) -> str:
    """Return the part of a URI before the first colon."""
    return uri.partition(":")[0]


def source_of(uri: str) -> Source:
    """Return a configuration with one contender: the database of *uri*, named after the scheme."""
    try:
        checked(uri)
    except ValueError as error:
        raise UserError(str(error)) from error
    name = scheme_of(uri)
    literal = uri.replace("$", "$$")
    return Source(Path(name), f"<zodburi {name}>\n    uri {literal}\n</zodburi>\n")


def checked(uri: str) -> str:
    """Return *uri* unchanged.

    :raises ValueError: if *uri* does not describe a storage; ZConfig adds the line to the message
    """
    _described(uri)
    return uri


class URISection:
    """A ``<zodburi NAME>`` section."""

    def __init__(self, section: Any) -> None:
        storages, options = _described(section.uri)
        own = {"uri": section.uri, "parameters": _query(section.uri), "storage": storages}
        name, matcher = section.getSectionName(), section.getSectionMatcher()
        self.config = SectionValue({**own, **options}, name, matcher)
        """The section's settings; ``storage`` is a list of sections equivalent to the URI."""


def _described(uri: str) -> tuple[list[Any], dict[str, Any]]:
    """Return sections that are equivalent to a URI, and the options of the DB.

    A ``zconfig:`` URI is equivalent to the section in its file.
    """
    _check_form(uri)
    factory, options = _resolved(uri)
    if scheme_of(uri) == "zconfig":
        return [factory.__self__], options  # type: ignore[attr-defined]
    _check_place(uri)
    return _stand_ins(uri), options


def _check_form(uri: str) -> None:
    """Refuse a URI that zodburi would misunderstand, or would refuse without giving a reason."""
    scheme = scheme_of(uri)
    if not uri.isprintable():
        raise _unusable(scheme, "a URI is one line of printable characters")
    if scheme in _SLASHED and not uri.startswith(f"{scheme}://"):
        raise _unusable(uri, f"it has to begin with {scheme}://")
    if _SEVERAL_SERVERS.match(uri):
        raise _unusable(
            uri,
            "a URI names one server; for several, write a <zeoclient> into a FILE, with a line "
            "'server HOST:PORT' for each",
        )
    if scheme == "demo":
        for part in _parts_of_demo(uri):
            checked(part)


def _parts_of_demo(uri: str) -> Sequence[str]:
    parts = _DEMO.fullmatch(uri)
    if parts is None:
        raise _unusable(uri, "write demo:(BASE)/(CHANGES), with a URI for each")
    return parts.groups()


def _resolved(uri: str) -> tuple[Callable[[], Any], dict[str, Any]]:
    """Return zodburi's factory of the storage, and options of the DB."""
    try:
        import zodburi
    except ImportError:
        raise _unusable(uri, "zodburi is not installed; install it: pip install zodburi") from None
    if scheme_of(uri) not in schemes():
        product, _, _ = scheme_of(uri).partition("+")  # the rest is a driver for SQLAlchemy
        advice = suggestion(product, schemes())
        raise _unusable(uri, f"no resolver knows the scheme {scheme_of(uri)!r}; {advice}")
    try:
        factory, options = zodburi.resolve_uri(uri)
    except Exception as error:  # other packages' resolvers may raise anything
        raise _unusable(uri, _reason(error, uri)) from error
    return factory, options


def _reason(error: Exception, uri: str) -> str:
    """Return an exception's message in one line, with the URI left out."""
    if isinstance(error, ZConfig.ConfigurationError):  # in the file that a zconfig: URI names
        path = path_of(uri)
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        source = Source(path, text)
        if source.is_of_zope:
            return f"this is Zope's configuration; measure it with: zodbshootout {path}"
        return explained(error, source, ZODB.config.getDbSchema(), {})
    # str() of a KeyError is the repr() of its message.
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    text = " ".join(str(message).split())
    for key, value in _query(uri).items():
        if isinstance(error, ValueError) and repr(value).lower() in text.lower():
            switch = {"true": 1, "yes": 1, "on": 1, "false": 0, "no": 0, "off": 0}.get(
                value.lower()
            )
            advice = "" if switch is None else f"; write {key}={switch}"
            return f"{key}: {not_converted(text)}{advice}"
    _, _, rest = text.rpartition(uri)
    return rest.strip(" :") or text or type(error).__name__


def _check_place(uri: str) -> None:
    """Refuse a URI that does not name a place for the data, or names an impossible one."""
    scheme = scheme_of(uri)
    path = uri.partition("://")[2].partition("?")[0]
    if scheme == "file":
        _check_file(uri, path)
    elif scheme == "zeo" and not (urlsplit(uri).netloc or urlsplit(uri).path):
        raise _unusable(uri, "name the server, as in zeo://localhost:8100 or zeo:///path/of/socket")
    elif scheme == "sqlite" and "data_dir" not in _query(uri):
        advice = f"sqlite://?data_dir={path or '/some/directory'}"
        raise _unusable(uri, f"name its directory like this: {advice}")
    elif scheme == "postgres" and None in (
        urlsplit(uri).hostname, urlsplit(uri).port, urlsplit(uri).username,
    ):  # fmt: skip
        raise _unusable(
            uri,
            "RelStorage has no defaults for the parts of this URI; write "
            "postgres://USER:PASSWORD@HOST:PORT/DATABASE",
        )


def _check_file(uri: str, path: str) -> None:
    # A Path would raise if the name is too long.
    if os.path.isdir(path or "."):  # noqa: PTH112
        raise _unusable(uri, "this is a directory; name a file in it")
    parent = os.path.dirname(path) or "."  # noqa: PTH120
    if not os.path.isdir(parent):  # noqa: PTH112
        advice = "" if path.startswith("/") else f"; did you mean file:///{path}?"
        raise _unusable(uri, f"there is no directory {parent}{advice}")


def _query(uri: str) -> dict[str, str]:
    return dict(parse_qsl(uri.partition("?")[2].partition("#")[0]))


def _settings(**values: Any) -> SectionValue:
    """Return settings as ZConfig would pass them to a section."""
    return SectionValue(values, None, None)


def _stand_ins(uri: str) -> list[Any]:
    """Return sections that name the servers and the driver that a URI's storage uses."""
    scheme = scheme_of(uri)
    if scheme == "demo":
        base, changes = (_described(part)[0] for part in _parts_of_demo(uri))
        return [ZODB.config.DemoStorage(_settings()), *base, *changes]
    if scheme == "zeo":
        parts = urlsplit(uri)
        address: object = parts.path
        if parts.netloc:
            address = (parts.hostname or "", parts.port or _ZEO_PORT)
        server = [SimpleNamespace(address=address)]
        return [ZODB.config.ZEOClient(_settings(server=server, **_query(uri)))]
    if scheme in _ADAPTERS:
        from relstorage import config

        query = _query(uri)
        driver = query.pop("driver", "auto")
        adapter = getattr(config, _ADAPTERS[scheme])(_settings(driver=driver))
        return [config.RelStorageFactory(_settings(adapter=adapter, **query))]
    return []
