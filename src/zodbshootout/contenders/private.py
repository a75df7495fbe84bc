"""``--private``: a configuration keeps its settings, but its storages have new data.

The tree of a configuration is changed before anything is opened.  Paths of files are replaced by
paths below ``$scratch``.  Databases are replaced by databases of private servers, and sections for
these servers are added.  A section that may still open the original's data is not measured.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import PurePosixPath
from urllib.parse import parse_qsl, urlsplit

from zodbshootout.client.storage_types import (
    CACHE,
    DATABASE,
    MEMCACHED,
    SERVER,
    PrivateSection,
    storage_types,
)
from zodbshootout.config import source
from zodbshootout.config.formats import OF_ZEO_SERVER
from zodbshootout.config.references import replaced
from zodbshootout.config.tree import Import, Item, Key, Position, Section, Tree
from zodbshootout.errors import UserError

OPTION = "--private"
_PREFIX = "private"
"""The prefix of the names of private servers, and of files below ``$scratch``."""
_DATABASES = frozenset({source.DATABASE, source.ZOPE_DATABASE})
_ANY = PrivateSection(tuple(_DATABASES))
_SETTINGS = frozenset({
    "application_name", "client_encoding", "connect_timeout", "keepalives", "keepalives_count",
    "keepalives_idle", "keepalives_interval", "options", "sslmode", "tcp_user_timeout",
})  # fmt: skip
"""The settings in a DSN that do not identify a server, a database or a user."""
_CONNINFO = re.compile(r"(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|([^\s']+))")
_VERIFYING = frozenset({"verify-ca", "verify-full"})
"""The values of ``sslmode`` with which a client checks the server's certificate."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_NO_ADDRESSES = frozenset({"db", "dbname", "user", "password", *_SETTINGS})
_NO_PLACES = frozenset({"driver"})
"""Keys whose values are not paths, even with a slash as in ``MySQL Connector/Python``."""


def with_private_data(tree: Tree, only: Sequence[str] = ()) -> Tree:
    """Return a tree whose storages have new data.

    A storage that cannot have new data is left out if ``--only`` names other storages.

    :raises UserError: if a storage that is to be measured cannot have new data
    """
    chosen = {name for word in only for name in (word, *word.split(","))}
    servers = {
        section.name
        for section in tree.root.sections
        if section.is_server and section.type != source.EXTERNAL
    }
    change = _Change(servers)
    items: list[Item] = []
    for item in tree.root.items:
        if not isinstance(item, Section):
            items.append(item)
            continue
        attempt = deepcopy(change)  # a section that is left out needs no servers
        try:
            items += attempt.outermost(item)
            change = attempt
        except _Irreplaceable as error:
            if not chosen or (item.name or item.type) in chosen:
                raise UserError(str(error)) from None
    return replace(tree, root=replace(tree.root, items=[*items, *change.servers()]))


class _Irreplaceable(Exception):  # noqa: N818
    """A section cannot have new data; the message says which section, and why."""

    def __init__(self, place: Position, reason: str) -> None:
        super().__init__(f"{place}: {OPTION}: {reason}; choose others with --only")


@dataclass
class _Server:
    """A private server, and what its section has to contain."""

    type: str
    name: str
    place: Position
    """The place of the first section that needs the server."""
    databases: dict[str, str] = field(default_factory=dict)
    """For each database's name, the blob directory that clients share with the server, or ""."""
    encrypted: bool = False


@dataclass
class _Change:
    """A change to private data; the same file or database always gets the same replacement."""

    own_servers: Collection[str]
    """The names of the private servers that the configuration already has."""
    _paths: dict[str, str] = field(default_factory=dict)
    _numbers: dict[tuple[str, ...], int] = field(default_factory=dict)
    """The numbers in the names of new databases and ZEO servers, by the originals' locations."""
    _servers: dict[str, _Server] = field(default_factory=dict)

    def outermost(self, section: Section) -> Iterator[Section]:
        """Yield the private form of an outermost *section*, or nothing if only Zope reads it."""
        if section.type in {*_DATABASES, *_rules()}:
            yield self._changed(section)
        elif section.type == source.EXTERNAL:
            return  # private servers replace it
        elif section.is_server:
            yield replace(section, items=list(self._items_of_server(section)))
        elif section.type == "environment":
            yield section
        elif section.type == "zeo":
            raise UserError(f"{section.place}: {OF_ZEO_SERVER}")
        elif section.type == "zodburi":
            raise _Irreplaceable(section.place, "a URI names its data; write a section instead")
        elif section.key("environment") or any(inner.type in _rules() for inner in section.walk()):
            raise _unknown(section)

    def servers(self) -> Iterator[Section]:
        """Yield the sections of the added servers."""
        for server in self._servers.values():
            yield Section(server.type, server.name, server.place, list(_items(server)))

    def _items_of_server(self, section: Section) -> Iterator[Item]:
        for item in section.items:
            if isinstance(item, Section) and item.type != "settings":
                yield self._changed(item)
            elif not (isinstance(item, Key) and item.name.lower() == "directory"):
                yield item

    def _changed_items(
        self, section: Section, rule: PrivateSection, server: _Server | None
    ) -> Iterator[Item]:
        """Yield the changed items of a section, without those that the *rule* leaves out."""
        for item in section.items:
            if isinstance(item, Section):
                package = _rules().get(item.type, _ANY).package
                if package:
                    yield Import(package, item.place)
                yield self._changed(item, server)
            elif isinstance(item, Key):
                if item.name.lower() not in rule.left_out:
                    yield self._kept(item, section, rule)
            else:
                yield item

    def _changed(self, section: Section, around: _Server | None = None) -> Section:
        """Return a section with private data; *around* is the surrounding section's new server."""
        rule = _ANY if section.type in _DATABASES else _rules().get(section.type)
        if rule is None:
            raise _unknown(section)
        server, database = around, ""
        if rule.server:
            if self._is_of_run(section, rule):
                return section
            server, database = self._database(section, rule)
        templates = self._templates(section, rule)
        rule = replace(rule, left_out=(*rule.left_out, *templates))
        items = list(self._changed_items(section, rule, server))
        for name, template in templates.items():
            value = template.replace(SERVER, server.name if server else "")
            value = value.replace(DATABASE, database).replace(CACHE, self._cache(section))
            if name == rule.dsn:
                value = " ".join([value, *_kept_settings(section.key(name), server)])
            items.append(Key(name, value, value, section.place))
        self._note(section, server, database, templates)
        return replace(section, type=rule.becomes or section.type, items=items)

    def _templates(self, section: Section, rule: PrivateSection) -> dict[str, str]:
        """Return a section's new values by key; they may contain placeholders (``SERVER``)."""
        values = dict(rule.values)
        for name, more in rule.values_with.items():
            key = section.key(name)
            if key and not all(map(self._names_own_server, key.value.split())):
                values |= more
        return values

    def _kept(self, key: Key, section: Section, rule: PrivateSection) -> Key:
        """Return a key unchanged or, if its value is the path of a file, with a new path."""
        name = key.name.lower()
        if name in rule.paths:
            value = self._path(key.value)
            return key._replace(written=value, resolved=value)
        may_be_place = "/" in _with_variables(key.value) and name not in _NO_PLACES
        if may_be_place and section.type not in _DATABASES:
            raise _Irreplaceable(
                key.place, f"{key.name} of <{section.type}> may refer to the original's data"
            )
        return key

    def _path(self, original: str) -> str:
        """Return the replacement of a path; a path below ``$scratch`` stays the same."""
        if original.startswith("${scratch}") and not re.search(r"\.\.|\$\(", original):
            return original
        name = re.sub(r"[^\w.-]", "", PurePosixPath(original).name)
        number = len(self._paths) + 1
        return self._paths.setdefault(original, f"${{scratch}}/{_PREFIX}-{number}-{name}")

    def _is_of_run(self, section: Section, rule: PrivateSection) -> bool:
        """Return whether a section connects to a private server that the file already has."""
        settings = [(key.name.lower(), key.value) for key in section.keys]
        if rule.dsn:
            settings = list(_settings_of(dict(settings).get(rule.dsn, "")).items())
        else:
            settings = [(name, value) for name, value in settings if name in rule.location]
        addresses = [(name, value) for name, value in settings if name not in _NO_ADDRESSES]
        ports = [value for name, value in addresses if name in {"port", "server"}]
        hosts = [value for name, value in addresses if name == "host"]
        return (
            bool(ports)
            and {name for name, _ in addresses} <= {"host", "port", "server"}
            and all(map(self._names_own_server, ports))
            and all(host in _LOOPBACK or self._names_own_server(host) for host in hosts)
        )

    def _names_own_server(self, text: str) -> bool:
        """Return whether a text such as ``localhost:${zeo_port}`` names a server of the file."""
        host, _, port = text.rpartition(":")
        named = re.fullmatch(r"\$\{(\w+)\}", port)
        return (
            named is not None
            and host in {"", *_LOOPBACK}
            and any(
                named[1] in {server, f"{server}_host", f"{server}_port"}
                for server in self.own_servers
            )
        )

    def _database(self, section: Section, rule: PrivateSection) -> tuple[_Server, str]:
        """Return a section's private server, and the name of the section's database on it."""
        located = [(key.name.lower(), key.value) for key in section.keys]
        where = (rule.server, *chain(*sorted(pair for pair in located if pair[0] in rule.location)))
        same = [known for known in self._numbers if known[0] == rule.server]
        number = self._numbers.setdefault(where, len(same) + 1)
        name = f"{_PREFIX}_{rule.server.removesuffix('server')}"
        database = f"{_PREFIX}_{number}"
        if rule.database:  # one private server per original server, for all databases
            name = f"{name}_{number}"
            key = section.key(rule.database)
            database = _with_variables(key.value).lower() if key else "1"
        server = self._servers.setdefault(name, _Server(rule.server, name, section.place))
        server.databases.setdefault(database, "")
        return server, database

    def _cache(self, section: Section) -> str:
        """Return a new name for a ZEO client's cache file, or "" if no key names the file."""
        names = [key.value for key in map(section.key, ("var", "client")) if key]
        return self._path("/".join(names)).rpartition("/")[2] if names else ""

    def _note(
        self, section: Section, server: _Server | None, database: str, values: Mapping[str, str]
    ) -> None:
        """Record what a changed section needs from its private servers."""
        if any(MEMCACHED in value for value in values.values()):
            memcached = _Server("memcachedserver", MEMCACHED, section.place)
            self._servers.setdefault(MEMCACHED, memcached)
        if server is None:
            return
        if server.type != "zeoserver":
            dsn = section.key("dsn")
            mode = _settings_of(dsn.value).get("sslmode", "") if dsn else ""
            server.encrypted |= mode in {"require", *_VERIFYING}
            return
        server.encrypted |= section.type == "ssl"
        shared, directory = section.key("shared-blob-dir"), section.key("blob-dir")
        if directory and shared and shared.value.lower() in {"true", "yes", "on"}:
            server.databases[database] = self._path(directory.value)


def _with_variables(text: str) -> str:
    """Return a text with environment variables replaced by their values."""
    return replaced(text, {f"({name})": value for name, value in os.environ.items()})


def _unknown(section: Section) -> _Irreplaceable:
    return _Irreplaceable(section.place, f"it is not known how to give <{section.type}> new data")


def _items(server: _Server) -> Iterator[Item]:
    place = server.place
    if server.encrypted:
        yield Key("ssl", "true", "true", place)
    for name, blobs in server.databases.items():
        if server.type != "zeoserver":
            yield Key("database", name, name, place)
            continue
        data = f"${{scratch}}/{server.name}-{name}"
        keys = {"path": f"{data}.fs", "blob-dir": blobs or f"{data}.blobs"}
        items: list[Item] = [Key(key, value, value, place) for key, value in keys.items()]
        yield Section("filestorage", name, place, items)


def _kept_settings(dsn: Key | None, server: _Server | None) -> Iterator[str]:
    """Yield the settings of a DSN that do not identify a server, database or user.

    A client that checks the server's certificate trusts the authority of the new *server*.
    """
    for name, value in _settings_of(dsn.value if dsn else "").items():
        if name == "sslmode" and value in _VERIFYING and server is not None:
            yield f"sslrootcert='${{{server.name}_authority}}'"
        if name in _SETTINGS:
            quoted = value.replace("\\", "\\\\").replace("'", "\\'")
            yield f"{name}='{quoted}'"


def _settings_of(dsn: str) -> Mapping[str, str]:
    """Return the settings in a PostgreSQL DSN, by the rules of libpq.

    :raises ValueError: if the DSN is a URL that cannot be parsed
    """
    if not re.match(r"postgres(ql)?://", dsn):
        matches = _CONNINFO.finditer(dsn)
        return {match[1]: re.sub(r"\\(.)", r"\1", match[2] or match[3] or "") for match in matches}
    parts = urlsplit(dsn)
    hosts = [piece.rpartition("@")[2].partition(":") for piece in parts.netloc.split(",")]
    named = {"host": ",".join(host for host, _, _ in hosts)}
    named["port"] = ",".join(port for _, _, port in hosts)
    return {**named, **dict(parse_qsl(parts.query))}


@functools.cache
def _rules() -> Mapping[str, PrivateSection]:
    """Return the rules for changing sections, by section type."""
    rules = [rule for kind in reversed(storage_types()) for rule in kind.private]
    return {type_: rule for rule in rules for type_ in rule.types}
