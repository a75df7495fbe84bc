"""The contenders that a configuration describes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from zodbshootout.client.specification import Storage
from zodbshootout.client.storage_info import Sharing, StorageInfo
from zodbshootout.client.storages.storage_type import (
    StorageType,
    inner_sections,
    known_types,
    nested_sections,
    sharing_of,
    type_of_section,
    written_sections,
)
from zodbshootout.config.configuration import Configuration, ServerSection
from zodbshootout.config.loader import OutsideSection
from zodbshootout.config.uri import URISection
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.settings import settings_of, settings_of_outside
from zodbshootout.servers.address import HOST, is_loopback
from zodbshootout.servers.naming import needed_servers, servers_of


def contenders_of(configuration: Configuration) -> list[Contender]:
    """Return the contenders that a configuration describes, in their order."""
    found = [_contender(section, configuration) for section in configuration.databases]
    found += [_outside_contender(section, configuration) for section in configuration.outside]
    return sorted(found, key=lambda each: configuration.order.index(each.name))


def _outside_contender(section: OutsideSection, configuration: Configuration) -> Contender:
    """Return a contender of whose section nothing is known here but its text."""
    servers = servers_of(section.names, configuration)
    settings = settings_of_outside(section, configuration)
    names = {name: configuration.names[name] for name in sorted(section.names)}
    storage = Storage(section=section.whole, names=names)
    if section.type == "zodburi":
        storage = Storage(uri=section.value("uri", configuration.names))
    return Contender(
        name=section.name,
        storage=storage,
        settings=settings,
        text=_text(section.whole, servers, configuration),
        servers=tuple(server.kind for server in servers),
        server_names=frozenset(server.name for server in servers),
        servers_here=_servers_here(servers),
        environment=section.environment,
    )


def _servers_here(servers: Sequence[ServerSection]) -> tuple[str, ...]:
    return tuple(server.name for server in servers if is_loopback(server.listen or HOST))


def _contender(section: Any, configuration: Configuration) -> Contender:
    servers = needed_servers(section, configuration)
    info = _info(section, servers)
    known = list(known_types(nested_sections(section)))
    installations = (kind.installation(each) for kind, each in known)
    return Contender(
        name=section.name,
        storage=_storage(section, configuration),
        settings=settings_of(section, configuration),
        text=_text(configuration.text_of(section).whole, servers, configuration),
        info=info,
        servers=tuple(server.kind for server in servers),
        server_names=frozenset(server.name for server in servers),
        servers_here=_servers_here(servers),
        limits=tuple(limit for kind, each in known for limit in kind.limits(each)),
        requirements=tuple(need for kind, each in known for need in kind.requirements(each)),
        zap_obstacle=_zap_obstacle(info, [kind for kind, _ in known]),
        installation=next(filter(None, installations), None),
        advice=tuple(advice for kind, each in known for advice in kind.advice(each)),
    )


def _text(section: str, servers: Sequence[ServerSection], configuration: Configuration) -> str:
    """Return a section after those of the servers that it needs, nested ones indented."""
    sections = [*(configuration.text_of(server).whole for server in servers), section]
    lines = [line for each in sections for line in each.splitlines()]
    found, depth = list(dict.fromkeys(filter(_is_directive, lines))), 0
    for line in itertools.filterfalse(_is_directive, lines):
        depth -= line.startswith("</")
        found.append(f"{'  ' * depth}{line}")
        depth += line.startswith("<") and not line.startswith("</") and not line.endswith("/>")
    return configuration.mask("\n".join(found))


def _is_directive(line: str) -> bool:
    return line.startswith("%")


def _storage(section: Any, configuration: Configuration) -> Storage:
    """Return what a client needs to open what *section* describes, and nothing of the rest."""
    if isinstance(section, URISection):
        return Storage(uri=section.uri)
    text = configuration.text_of(section)
    names = {name: configuration.names[name] for name in sorted(text.names)}
    return Storage(section=text.whole, names=names)


def _info(section: Any, servers: Sequence[ServerSection]) -> StorageInfo:
    # Of a section that another package defines for databases, nothing is known.
    asked = list(_asked_first(getattr(section.config, "storage", section)))
    names = [kind.storage_name() for kind in asked if kind is not None]
    return StorageInfo(
        storage_name=" over ".join(names) or StorageInfo.storage_name,
        sharing=sharing_of(section),
        prefetches=_prefetches(asked),
        read_only=any(
            _read_only(each) for outer in (section, *servers) for each in written_sections(outer)
        ),
    )


def _asked_first(storage: Any) -> Iterator[type[StorageType] | None]:
    """Return what is known of a section, and of those that its storage passes on to."""
    sections = [storage]
    while sections:
        kind = type_of_section(sections[0])
        yield kind
        sections = inner_sections(sections[0]) if kind is None or kind.transparent else []


def _prefetches(asked: Sequence[type[StorageType] | None]) -> bool | None:
    for kind in asked:
        if kind is None or kind.prefetches is not None:
            return kind.prefetches if kind is not None else None
    return None


def _read_only(section: Any) -> bool:
    # Of a URI it is a text.
    return str(getattr(getattr(section, "config", None), "read_only", False)) == "True"


def _zap_obstacle(info: StorageInfo, kinds: Sequence[type[StorageType]]) -> str | None:
    if info.sharing is Sharing.VOLATILE:
        return f"{info.storage_name} has its data in the memory of one process"
    if info.read_only:
        return "it is configured to be read only"
    fixed = (kind for kind in kinds if kind.zap_obstacle)
    return next((f"{kind.storage_name()}: {kind.zap_obstacle}" for kind in fixed), None)
