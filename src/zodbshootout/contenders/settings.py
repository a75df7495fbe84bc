"""What a section configures, as it is kept in the metadata of every run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zodbshootout.config.configuration import Configuration, ServerSection
from zodbshootout.config.loader import OutsideSection, SectionText, keys_in, with_names
from zodbshootout.config.secrets import SECRET_KEY
from zodbshootout.contenders.contender import OF_SERVER
from zodbshootout.servers.naming import needed_servers, servers_of


def settings_of(section: Any, configuration: Configuration) -> dict[str, str]:
    """Return what *section* configures, and what the servers configure that it needs.

    Secrets are left out.  A value that the file has from a name of the run, such as a path in its
    scratch directory, is given as it stands in the file: equal in every run.
    """
    found = dict(_settings(section, configuration))
    return found | _of_servers(needed_servers(section, configuration), configuration)


def settings_of_outside(section: OutsideSection, configuration: Configuration) -> dict[str, str]:
    """Return what is written in a section that another Python reads, in the same way.

    What it means is not known here: keys are as they stand there, with the types of the sections
    that they are in.
    """
    found = {"section": section.type}
    for key, value, types in keys_in(section.lines):
        if SECRET_KEY.search(key):
            continue
        name = ".".join([*types[1:], key.replace("-", "_")])
        number = sum(each.rstrip("0123456789") == name for each in found)
        text = configuration.mask(with_names(value))
        found[f"{name}{number or ''}"] = text
    servers = servers_of(section.names, configuration)
    return found | _of_servers(servers, configuration)


def _of_servers(servers: Sequence[ServerSection], configuration: Configuration) -> dict[str, str]:
    return {
        f"{OF_SERVER}{server.name}.{key}": value
        for server in servers
        for key, value in _settings(server, configuration)
    }


def _settings(
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
                # What a URI describes has its values from the URI, in which they are named.
                yield from _settings(part, configuration, f"{key}.")


def _values(
    attribute: str, number: int, value: Any, text: SectionText
) -> Iterator[tuple[str, str]]:
    """Return value *number* of an attribute, in parts by their names if it is a mapping."""
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
    return type(address).__name__  # whatever else it prints differs from process to process
