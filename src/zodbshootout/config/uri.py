"""ZODB URIs, which zodburi resolves: a database in one word.

Each URI is translated into the section that would open the same storage.  That section is never
opened; like the section of any contender, it shows for example how many processes can open it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import ZConfig
import ZODB.config
from ZConfig.matcher import SectionValue

from zodbshootout.client.masking import Mask
from zodbshootout.config.advice import SUBSTITUTION_ERRORS, explained, not_converted
from zodbshootout.config.secrets import of_uri
from zodbshootout.config.source import Source
from zodbshootout.config.tree import path_of
from zodbshootout.errors import UserError, suggestion

_BEGINNING = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):(?P<rest>//|\()?", re.IGNORECASE)
_DEMO = re.compile(r"demo:\((?P<base>.*)\)/\((?P<changes>.*)\)(?:#.*)?")
_SEVERAL_SERVERS = re.compile(r"zeo://[^/?#]*,")
_TRUE = frozenset({"1", "on", "true", "t", "yes"})
_ZEO_PORT = 9991
"""zodburi's default port."""


def _unusable(uri: str, reason: str) -> ValueError:
    """Return an error of one line without passwords; ZConfig adds the place in the file."""
    return ValueError(Mask(of_uri(uri))(f"{uri.rstrip(':')}: {reason}"))


def is_uri(word: str) -> bool:
    """Return whether *word* looks like a ZODB URI, even one of an unknown scheme."""
    match = _BEGINNING.match(word)
    return match is not None and (match["rest"] is not None or match["scheme"] in schemes())


def schemes() -> list[str]:
    """Return the schemes for which a resolver is installed."""
    return sorted({resolver.name for resolver in entry_points(group="zodburi.resolvers")})


def scheme_of(uri: str) -> str:
    """Return the part of a URI before the first colon."""
    return uri.partition(":")[0]


def source_of(uri: str) -> Source:
    """Return a configuration with one contender, which *uri* describes, named after its scheme."""
    try:
        checked(uri)
    except ValueError as error:
        raise UserError(str(error)) from error
    name = scheme_of(uri)
    literal = uri.replace("$", "$$")
    return Source(Path(name), f"<zodburi {name}>\n    uri {literal}\n</zodburi>\n")


def checked(uri: str) -> str:
    """Return *uri* unchanged.

    :raises ValueError: if it does not describe a storage; ZConfig adds the line
    """
    _described(uri)
    return uri


class URISection:
    """A ``<zodburi NAME>`` section."""

    def __init__(self, section: Any) -> None:
        storage, options = _described(section.uri)
        values = {"uri": section.uri, "storage": storage, **options}
        self.config = SectionValue(values, section.getSectionName(), section.getSectionMatcher())
        """The settings of the section, and the section that would open the same storage."""


def _described(uri: str) -> tuple[Any, dict[str, Any]]:
    """Return the section that would open the same storage, if known, and options of the DB."""
    _check_form(uri)
    factory, options = _resolved(uri)
    scheme = scheme_of(uri)
    if scheme == "zconfig":
        return getattr(factory, "__self__", None), options  # the section in the file
    return (_DESCRIPTIONS[scheme](uri) if scheme in _DESCRIPTIONS else None), options


def _check_form(uri: str) -> None:
    """Refuse what zodburi would misunderstand, or refuse without a reason."""
    scheme = scheme_of(uri)
    if not uri.isprintable():
        raise _unusable(scheme, "a URI is one line of printable characters")
    slashed = {"zconfig", *_DESCRIPTIONS} - {"demo"}
    if scheme in slashed and not uri.startswith(f"{scheme}://"):
        raise _unusable(uri, f"it has to begin with {scheme}://")
    if _SEVERAL_SERVERS.match(uri):
        raise _unusable(
            uri,
            "a URI names one server; for several write a <zeoclient> into a FILE, with a line "
            "'server HOST:PORT' for each",
        )
    if scheme == "demo":
        parts = _DEMO.fullmatch(uri)
        if parts is None:
            raise _unusable(uri, "write demo:(BASE)/(CHANGES), with a URI for each")
        checked(parts["base"])
        checked(parts["changes"])


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
    except Exception as error:  # other packages add resolvers
        raise _unusable(uri, _reason(error, uri)) from error
    return factory, options


def _reason(error: Exception, uri: str) -> str:
    """Return the message of an exception without the URI, in one line."""
    if isinstance(error, SUBSTITUTION_ERRORS):  # ZConfig quotes the value, which may be secret
        number = getattr(error, "lineno", None)
        place = f"line {number}: " if number else ""
        return f"{place}a $ in a value is written $$, and a name after a single $ is defined before"
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
    for key, value in parse_qsl(uri.partition("?")[2].partition("#")[0]):
        if isinstance(error, ValueError) and repr(value).lower() in text.lower():
            switch = {"true": 1, "yes": 1, "on": 1, "false": 0, "no": 0, "off": 0}.get(
                value.lower()
            )
            advice = "" if switch is None else f"; write {key}={switch}"
            return f"{key}: {not_converted(key, value, text)}{advice}"
    _, _, rest = text.rpartition(uri)
    return rest.strip(" :") or text or type(error).__name__


def _settings(**values: Any) -> SectionValue:
    """Return settings as ZConfig passes them to a section."""
    return SectionValue(values, None, None)


def _query(uri: str) -> dict[str, str]:
    """Return the parameters of a URI that are not for the DB."""
    parameters = dict(parse_qsl(uri.partition("?")[2].partition("#")[0]))
    return {
        key: str(value.lower() in _TRUE) if key == "read_only" else value
        for key, value in parameters.items()
        if key != "database_name" and not key.startswith("connection_")
    }


def _of_memory(_: str) -> Any:
    return ZODB.config.MappingStorage(_settings())


def _of_file(uri: str) -> Any:
    query = _query(uri)
    path = uri.removeprefix("file://").partition("?")[0]
    # A Path would raise if the name is too long.
    if os.path.isdir(path or "."):  # noqa: PTH112
        raise _unusable(uri, "this is a directory; name a file in it")
    parent = os.path.dirname(path) or "."  # noqa: PTH120
    if not os.path.isdir(parent):  # noqa: PTH112
        advice = "" if path.startswith("/") else f"; did you mean file:///{path}?"
        raise _unusable(uri, f"there is no directory {parent}{advice}")
    return _demo(ZODB.config.FileStorage(_settings(path=path, **query)), query)


def _of_zeo(uri: str) -> Any:
    query = _query(uri)
    parts = urlsplit(uri)
    address: object = parts.path
    if parts.netloc:
        address = (parts.hostname or "", parts.port or _ZEO_PORT)
    elif not parts.path:
        raise _unusable(uri, "name the server, as in zeo://localhost:8100 or zeo:///path/of/socket")
    server = [SimpleNamespace(address=address)]
    return _demo(ZODB.config.ZEOClient(_settings(server=server, **query)), query)


def _of_demo(uri: str) -> Any:
    parts = _DEMO.fullmatch(uri)
    assert parts is not None
    base, changes = (_described(parts[part])[0] for part in ("base", "changes"))
    changes = changes or SimpleNamespace(config=_settings())
    changes.name = "changes"  # <demostorage> needs this name
    return _over(base, changes)


def _of_sqlite(uri: str) -> Any:
    query = _query(uri)
    if "data_dir" not in query:
        path = uri.removeprefix("sqlite://").partition("?")[0]
        raise _unusable(
            uri, f"name its directory like this: sqlite://?data_dir={path or '/some/directory'}"
        )
    return _of_relstorage("Sqlite3AdapterFactory", query, data_dir=query.pop("data_dir"))


def _of_postgres(uri: str) -> Any:
    parts = urlsplit(uri)
    if not (parts.hostname and parts.port and parts.username):
        raise _unusable(
            uri,
            "RelStorage has no defaults for its parts; write "
            "postgres://USER:PASSWORD@HOST:PORT/DATABASE",
        )
    return _of_relstorage("PostgreSQLAdapterFactory", _query(uri), **_server(uri))


def _of_mysql(uri: str) -> Any:
    return _of_relstorage("MySQLAdapterFactory", _query(uri), **_server(uri))


def _of_oracle(uri: str) -> Any:
    return _of_relstorage("OracleAdapterFactory", _query(uri))


def _server(uri: str) -> dict[str, Any]:
    parts = urlsplit(uri)
    return {
        "host": parts.hostname,
        "port": parts.port,
        "db": parts.path[1:],
        "user": parts.username,
    }


def _of_relstorage(adapter: str, query: dict[str, str], **place: Any) -> Any:
    from relstorage import config

    section = getattr(config, adapter)(_settings(driver=query.pop("driver", "auto"), **place))
    return _demo(config.RelStorageFactory(_settings(adapter=section, **query)), query)


def _demo(section: Any, query: Mapping[str, str]) -> Any:
    """Return the section of a DemoStorage over *section* if the query asks for it."""
    return _over(section) if "demostorage" in query else section


def _over(*sections: Any) -> Any:
    return ZODB.config.DemoStorage(_settings(factories=list(sections)))


_DESCRIPTIONS: Mapping[str, Callable[[str], Any]] = {
    "demo": _of_demo,
    "file": _of_file,
    "memory": _of_memory,
    "mysql": _of_mysql,
    "oracle": _of_oracle,
    "postgres": _of_postgres,
    "sqlite": _of_sqlite,
    "zeo": _of_zeo,
}
"""Translations by scheme.  A storage of another scheme is unknown until it is open."""
