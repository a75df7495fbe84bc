"""The storages of private ZEO servers, and those among them that a contender uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zodbshootout.client.reachability import Requirement
from zodbshootout.client.storage_types import (
    nested_sections,
    type_of_section,
)
from zodbshootout.config.configuration import ServerSection
from zodbshootout.config.references import references
from zodbshootout.config.tree import Section

_DEFAULT = "1"
"""The name of a storage whose section has none, and that a client asks for by default."""
_CLIENTS = frozenset({"zeoclient", "clientstorage"})
"""The types of sections that connect to ZEO servers."""


@dataclass(frozen=True)
class ServedStorage:
    """A storage of a private ZEO server that a contender uses."""

    server: ServerSection
    section: Any
    """The section of the storage."""


def storages_of(server: ServerSection) -> dict[str, Any]:
    """Return the sections of the storages that a ZEO server serves, by their names."""
    storages = getattr(server.config, "storage", ())
    return {storage.name or _DEFAULT: storage for storage in storages}


def check_storages(server: ServerSection) -> None:
    """Check that a ZEO server has storages, and that each has a name of its own.

    :raises UserError: if it has none, or two of one name
    """
    if not storages_of(server):
        flaw = f"<zeoserver {server.name}> holds no storage, such as <filestorage>"
        raise server.text.mistake(flaw)
    names: set[str] = set()
    for section in (section for section in server.text.sections if section.type != "settings"):
        name = section.name or _DEFAULT
        if name in names:
            raise section.mistake(
                f"a second storage of server {server.name} is called {name!r}, as one without a "
                f"name is; give it a name of its own, as in <{section.type} 2>"
            )
        names.add(name)


def served_storages(
    text: Section, section: Any, servers: Sequence[ServerSection], names: Mapping[str, str]
) -> list[ServedStorage]:
    """Return what a contender's *section* uses of its *servers*, directly or through another one.

    If it is not known which storage of a server that is, because the type of its client is
    unknown, all storages of the server are returned.

    :raises UserError: if a client names a storage that its server does not have
    """
    used: dict[Any, ServedStorage] = {}
    pending = [(text, section)]
    while pending:
        text, outer = pending.pop()
        for server, name in _connections(outer, servers, names):
            storage = _storage(server, name, text)
            if storage not in used:
                used[storage] = ServedStorage(server, storage)
                pending.append((server.text, storage))
    if text.environment:
        for server, name in _connections_elsewhere(text, servers):
            storage = _storage(server, name, text)
            used[storage] = ServedStorage(server, storage)
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
    section: Any, servers: Sequence[ServerSection], names: Mapping[str, str]
) -> Iterator[tuple[ServerSection, str]]:
    """Yield the servers that clients in a section connect to, with the names of the storages."""
    for inner in nested_sections(section):
        for need in type_of_section(inner).requirements(inner):
            for server in servers:
                if server.kind == "zeoserver" and _is_at(need, names.get(server.name, "")):
                    yield server, need.storage


def _connections_elsewhere(
    text: Section, servers: Sequence[ServerSection]
) -> Iterator[tuple[ServerSection, str]]:
    """Yield the same for a section that another Python reads."""
    for section in text.walk():
        if section.type in _CLIENTS:
            addresses = [key.value for key in section.keys if key.name.lower() == "server"]
            referred = {name for address in addresses for name in references(address)}
            storage = section.key("storage")
            for server in servers:
                own = {server.name, f"{server.name}_port"}
                if server.kind == "zeoserver" and not referred.isdisjoint(own):
                    yield server, storage.value if storage else _DEFAULT


def _is_at(need: Requirement, address: str) -> bool:
    """Return whether a server at *address* is what a client needs.

    The port decides: a host has several names, and the port is reserved for that server.
    """
    port = address.rpartition(":")[2]
    return any(isinstance(place, tuple) and str(place[1]) == port for place in need.addresses)


def _storage(server: ServerSection, name: str, text: Section) -> Any:
    storages = storages_of(server)
    if name not in storages:
        advice = " or ".join(f"'storage {known}'" for known in storages)
        flaw = f"server {server.name} has no storage {name!r}; write {advice}"
        raise text.mistake(flaw, f"storage {name}")
    return storages[name]
