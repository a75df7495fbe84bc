"""The storages of private ZEO servers, and those among them that a contender uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zodbshootout.client.reachability import Requirement
from zodbshootout.client.storage_types import (
    nested_sections,
    type_of_section,
    written_sections,
)
from zodbshootout.config.configuration import ServerSection
from zodbshootout.config.tree import Section


@dataclass(frozen=True)
class ServedStorage:
    """A storage of a private ZEO server that a contender uses."""

    server: ServerSection
    section: Any
    """The section of the storage."""
    is_written: bool
    """Whether it is known to get what is written to the contender."""


def storages_of(server: ServerSection) -> dict[str, Any]:
    """Return the sections of the storages that a ZEO server serves, by their names."""
    return {storage.name or "1": storage for storage in _storages_in(server)}


def check_storages(server: ServerSection) -> None:
    """Check that a ZEO server has storages, and that each has a name of its own.

    :raises UserError: if it has none, or two of one name
    """
    storages = _storages_in(server)
    if not storages:
        flaw = f"<zeoserver {server.name}> holds no storage, such as <filestorage>"
        raise server.text.mistake(flaw)
    if len(storages_of(server)) < len(storages):
        raise server.text.mistake(
            f"two storages of server {server.name} are called '1', as one without a name is; give "
            "each a name of its own, as in <filestorage 2>",
        )


def _storages_in(server: ServerSection) -> list[Any]:
    return list(getattr(server.config, "storage", ()))


def served_storages(
    text: Section, section: Any, servers: Sequence[ServerSection], names: Mapping[str, str]
) -> list[ServedStorage]:
    """Return what a contender's *section* uses of its *servers*, directly or through another one.

    If it is not known which storage of a server that is, because another Python reads the section
    or the type of its client is unknown, all storages of the server are returned.

    :raises UserError: if a client names a storage that its server does not have
    """
    used: dict[Any, ServedStorage] = {}
    pending = [(text, section, True)]
    while pending:
        text, outer, is_written = pending.pop()
        written = list(written_sections(outer)) if is_written else []
        for client, server, name in _connections(outer, servers, names):
            storage = _storage(server, name, text)
            if storage not in used:
                used[storage] = ServedStorage(server, storage, client in written)
                pending.append((server.text, storage, client in written))
    known = [storage.server for storage in used.values()]
    unknown = [server for server in servers if server.kind == "zeoserver" and server not in known]
    return [
        *used.values(),
        *(
            ServedStorage(server, storage, is_written=False)
            for server in unknown
            for storage in storages_of(server).values()
        ),
    ]


def _connections(
    section: Any, servers: Sequence[ServerSection], names: Mapping[str, str]
) -> Iterator[tuple[Any, ServerSection, str]]:
    """Yield each client in a section, with a server that it connects to and the storage's name."""
    for inner in nested_sections(section):
        for need in type_of_section(inner).requirements(inner):
            for server in servers:
                if server.kind == "zeoserver" and _is_at(need, names.get(server.name, "")):
                    yield inner, server, need.storage


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
