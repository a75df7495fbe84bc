"""The storages of private ZEO servers, and which of them a contender uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from zodbshootout.config.configuration import ServerSection
from zodbshootout.config.references import references
from zodbshootout.config.tree import Section

_DEFAULT = "1"
"""The name of a storage whose section has no name; clients ask for this name by default."""
_CLIENTS = frozenset({"zeoclient", "clientstorage"})
"""The types of sections that connect to ZEO servers."""
_URI = re.compile(r"zeo://(?P<server>[^/?#]*)[^?#)]*(\?(?P<query>[^#)]*))?")
"""A pattern for URIs of ZEO servers, even inside the URI of a DemoStorage."""


@dataclass(frozen=True)
class ServedStorage:
    """A storage that a contender uses through a private ZEO server."""

    server: ServerSection
    section: Any


def storages_of(server: ServerSection) -> dict[str, Any]:
    """Return the sections of a ZEO server's storages, by name."""
    storages = getattr(server.config, "storage", ())
    return {storage.name or _DEFAULT: storage for storage in storages}


def _texts_of(server: ServerSection) -> dict[str, Section]:
    """Return the sections of a ZEO server's storages, as written in the file, by name."""
    storages = (section for section in server.text.sections if section.type != "settings")
    return {section.name or _DEFAULT: section for section in storages}


def check_storages(server: ServerSection) -> None:
    """Check that a ZEO server has storages, and that their names differ.

    :raises UserError: if the server has no storage, or two storages have the same name
    """
    if not storages_of(server):
        flaw = f"<zeoserver {server.name}> contains no storage, such as <filestorage>"
        raise server.text.mistake(flaw)
    names: set[str] = set()
    for section in (section for section in server.text.sections if section.type != "settings"):
        name = section.name or _DEFAULT
        if name in names:
            raise section.mistake(
                f"two storages of server {server.name} are called {name!r}, the default "
                f"name; give each a different name, as in <{section.type} 2>"
            )
        names.add(name)


def served_storages(text: Section, servers: Sequence[ServerSection]) -> list[ServedStorage]:
    """Return the storages of *servers* that a section uses, directly or through another server.

    If no ZEO client is found for a server, return all its storages: a section of an unknown type
    may use them.

    :raises UserError: if a client names a storage that its server does not have
    """
    used: dict[Any, ServedStorage] = {}
    pending = [text]
    while pending:
        outer = pending.pop()
        for server, name in _connections(outer, servers):
            storage = _storage(server, name, outer)
            if storage not in used:
                used[storage] = ServedStorage(server, storage)
                pending.append(_texts_of(server)[name])
    known = [storage.server for storage in used.values()]
    unknown = [server for server in servers if server.kind == "zeoserver" and server not in known]
    return [
        *used.values(),
        *(
            ServedStorage(server, storage)
            for server in unknown
            for storage in storages_of(server).values()
        ),
    ]


def _connections(
    text: Section, servers: Sequence[ServerSection]
) -> Iterator[tuple[ServerSection, str]]:
    """Yield, for each ZEO client in a section, its server and the name of its storage.

    An address leads to a server called ``main`` if it contains ``$main`` or ``$main_port``.
    """
    for address, storage in _addresses(text):
        referred = references(address)
        for server in servers:
            own = {server.name, f"{server.name}_port"}
            if server.kind == "zeoserver" and not referred.isdisjoint(own):
                yield server, storage


def _addresses(text: Section) -> Iterator[tuple[str, str]]:
    """Yield each address in a section's ZEO clients, with the name of the client's storage."""
    for section in text.walk():
        if section.type in _CLIENTS:
            storage = section.key("storage")
            name = storage.value if storage else _DEFAULT
            yield from ((key.value, name) for key in section.keys if key.name.lower() == "server")
        uri = section.key("uri")
        for match in _URI.finditer(uri.value if uri else ""):
            yield match["server"], dict(parse_qsl(match["query"] or "")).get("storage", _DEFAULT)


def _storage(server: ServerSection, name: str, text: Section) -> Any:
    storages = storages_of(server)
    if name not in storages:
        advice = " or ".join(f"'storage {known}'" for known in storages)
        flaw = f"server {server.name} has no storage {name!r}; write {advice}"
        raise text.mistake(flaw, f"storage {name}")
    return storages[name]
