"""The contenders that a configuration describes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from zodbshootout.client.specification import INSTALLED, Storage
from zodbshootout.client.storage_info import Sharing, StorageInfo
from zodbshootout.client.storages import (
    StorageType,
    inner_sections,
    known_types,
    nested_sections,
    sharing_of,
    type_of_section,
    written_sections,
)
from zodbshootout.config.configuration import Configuration, ServerSection
from zodbshootout.config.environment import Environment
from zodbshootout.config.loader import SectionText, with_names
from zodbshootout.config.secrets import SECRET_KEY
from zodbshootout.contenders.contender import OF_SERVER, Contender
from zodbshootout.servers.address import servers_of


def contenders_of(
    configuration: Configuration, environment: Environment | None = None
) -> list[Contender]:
    """Return the contenders that a configuration describes, in their order.

    ``--against`` opens all of them in the *environment*.
    """
    contenders = [
        _contender(text, section, configuration) for text, section in configuration.contenders
    ]
    if environment is None:
        return contenders
    name = environment.name
    contenders = [
        replace(contender, environment=environment, variant=name) for contender in contenders
    ]
    if name == INSTALLED:
        return contenders
    return [
        replace(contender, name=f"{contender.name}@{name}", variant_of=contender.name)
        for contender in contenders
    ]


def _contender(text: SectionText, section: Any, configuration: Configuration) -> Contender:
    """Return a contender; *section* is ``None`` if another Python is to read it."""
    servers = servers_of(text.names, configuration)
    known = [] if section is None else list(known_types(nested_sections(section)))
    info = StorageInfo() if section is None else _info(section, servers)
    settings = _settings(text, section, configuration)
    for server in servers:
        of_server = _settings(server.text, server, configuration)
        settings |= {f"{OF_SERVER}{server.name}.{key}": value for key, value in of_server.items()}
    installations = (kind.installation(storage) for kind, storage in known)
    return Contender(
        name=text.name,
        storage=_storage(text, configuration.names),
        settings=settings,
        info=info,
        servers={server.name: server for server in servers},
        limits=tuple(limit for kind, storage in known for limit in kind.limits(storage)),
        requirements=tuple(need for kind, storage in known for need in kind.requirements(storage)),
        zap_obstacle=_zap_obstacle(info, [kind for kind, _ in known]),
        installation=next(filter(None, installations), None),
        advice=tuple(advice for kind, storage in known for advice in kind.advice(storage)),
        section=text,
        environment=configuration.environments.get(text.environment),
        text=_shown(text, servers, configuration.mask),
    )


def _storage(text: SectionText, names: Mapping[str, str]) -> Storage:
    """Return what a client needs to open the section, and nothing of the rest of the file."""
    if text.type == "zodburi":
        return Storage(uri=text.value("uri", names))
    return Storage(section=text.whole, names={name: names[name] for name in sorted(text.names)})


def _shown(text: SectionText, servers: Sequence[ServerSection], mask: Callable[[str], str]) -> str:
    """Return the section's text after those of the servers, indented."""
    lines = [
        line
        for section in (*(server.text for server in servers), text)
        for line in section.whole.splitlines()
    ]
    shown, depth = list(dict.fromkeys(filter(_is_directive, lines))), 0
    for line in itertools.filterfalse(_is_directive, lines):
        depth -= line.startswith("</")
        shown.append(f"{'  ' * depth}{line}")
        depth += line.startswith("<") and not line.startswith("</")
    return mask("\n".join(shown))


def _is_directive(line: str) -> bool:
    return line.startswith("%")


def _settings(text: SectionText, section: Any, configuration: Configuration) -> dict[str, str]:
    """Return what a section configures, as the metadata of every run record it, without secrets.

    A value that comes from a name of the run, such as a path in its scratch directory, stands as
    in the file: it is equal in every run.  The meaning of a section for another Python is not
    known here: its keys have the types of the sections before them.
    """
    if section is not None:
        return dict(_settings_of_parsed(section, configuration))
    settings = {"section": text.type}
    for key, values in text.values.items():
        if SECRET_KEY.search(key.rpartition(".")[2]):
            continue
        for number, value in enumerate(values):
            settings[f"{key}{number or ''}"] = configuration.mask(with_names(value)[0])
    return settings


def _settings_of_parsed(
    section: Any, configuration: Configuration, prefix: str = ""
) -> Iterator[tuple[str, str]]:
    yield f"{prefix}section", type(section).__name__
    if not hasattr(section.config, "getSectionAttributes"):
        return
    text = configuration.text_of(section)
    for attribute in sorted(section.config.getSectionAttributes()):
        value = getattr(section.config, attribute)
        if value is None or SECRET_KEY.search(attribute):
            continue
        for number, part in enumerate(value if isinstance(value, list) else [value]):
            key = f"{prefix}{attribute}{number or ''}"
            if not hasattr(part, "config"):
                for name, shown in _values(attribute, number, part, text):
                    yield f"{key}{name}", configuration.mask(shown)
            elif text.by_name("uri") is None:
                # The values of what a URI describes come from the URI, which names them.
                yield from _settings_of_parsed(part, configuration, f"{key}.")


def _values(
    attribute: str, number: int, value: Any, text: SectionText
) -> Iterator[tuple[str, str]]:
    """Yield value *number* of an attribute, in parts with their names if it is a mapping."""
    if not isinstance(value, Mapping):
        yield "", text.by_name(attribute, number) or _printable(value)
        return
    for name, part in value.items():
        if not SECRET_KEY.search(name):
            yield f".{name}", text.by_name(f"{attribute}.{name}") or str(part)


def _printable(value: Any) -> str:
    address = getattr(value, "address", value)
    if isinstance(address, tuple):
        return ":".join(map(_printable, address))
    if isinstance(address, (str, int, float, bytes)) or address is None:
        return str(address)
    return type(address).__name__  # other texts differ from process to process


def _info(section: Any, servers: Sequence[ServerSection]) -> StorageInfo:
    # Nothing is known of a section that another package defines for databases.
    asked = list(_asked_first(getattr(section.config, "storage", section)))
    names = [kind.storage_name() for kind in asked if kind is not None]
    return StorageInfo(
        storage_name=" over ".join(names) or StorageInfo.storage_name,
        sharing=sharing_of(section),
        prefetches=_prefetches(asked),
        read_only=any(
            _read_only(inner) for outer in (section, *servers) for inner in written_sections(outer)
        ),
    )


def _asked_first(storage: Any) -> Iterator[type[StorageType] | None]:
    """Yield the type of a section's storage, and of those that this one delegates to."""
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
    # A URI has it as a text.
    return str(getattr(getattr(section, "config", None), "read_only", False)) == "True"


def _zap_obstacle(info: StorageInfo, kinds: Sequence[type[StorageType]]) -> str | None:
    if info.sharing is Sharing.VOLATILE:
        return f"{info.storage_name} has its data in the memory of one process"
    if info.read_only:
        return "it is configured to be read only"
    fixed = (kind for kind in kinds if kind.zap_obstacle)
    return next((f"{kind.storage_name()}: {kind.zap_obstacle}" for kind in fixed), None)
