"""A contender as the configuration describes it, not yet opened."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from zodbshootout.config.configuration import Configuration
from zodbshootout.config.masking import SECRET_KEY, without_secrets
from zodbshootout.contenders.layer import (
    Layer,
    Sharing,
    inner_sections,
    layer_of_section,
    narrowest,
    nested_sections,
    sharing_of,
    written_sections,
)
from zodbshootout.model import CrewShape, Parameters
from zodbshootout.servers.address import HOST

_PARTS = ("_port", "_certificate", "_key", "_authority")
"""What is appended to a server's name to name what it alone was given."""


@dataclass(frozen=True)
class Contender:
    """One ``<zodb NAME>`` or ``<zodburi NAME>`` section."""

    name: str
    section: Any
    """What ZConfig made of it; its ``open()`` returns a DB."""
    settings: Mapping[str, str]
    """What was configured, secrets left out, with paths of the run as their names."""
    observed_sharing: Sharing | None = None
    """What was found when it was opened: the section may be of a kind that is not known."""
    has_blobs: bool | None = None
    """Whether blobs can be stored in it, as far as that is known before it is opened."""
    servers: tuple[str, ...] = ()
    """The types of the sections of the private servers that it needs, such as ``zeoserver``."""
    restarted: bool = False
    """Whether these servers are restarted before anything is measured."""

    @property
    def sharing(self) -> Sharing:
        """Return which DBs see its data."""
        static = sharing_of(self.section)
        return narrowest((static, self.observed_sharing or static))

    @property
    def read_only(self) -> bool:
        """Return whether it is configured so that nothing can be written."""
        return any(
            key.endswith("read_only") and value == "True" for key, value in self.settings.items()
        )

    @property
    def prefetches(self) -> bool | None:
        """Return whether ``Connection.prefetch`` does anything, ``None`` if that is not known."""
        for layer in self._asked_first():
            if layer is None:
                return None
            if layer.prefetches is not None:
                return layer.prefetches
        return None

    def refusal(self, parameters: Parameters) -> str | None:
        """Say why this contender cannot be measured like that, or return ``None``."""
        if parameters.blobs and self.has_blobs is False:
            return f"{self.storage_name} stores no blobs as it is configured here; see blob-dir"
        return self._crew_refusal(parameters.crew)

    def _crew_refusal(self, shape: CrewShape) -> str | None:
        if shape.databases > 1 and self.sharing is not Sharing.CONCURRENT:
            limit = {
                Sharing.EXCLUSIVE: "one DB at a time can open it",
                Sharing.VOLATILE: "its data lives in one DB only",
            }[self.sharing]
            return f"{self.storage_name}: {limit}; use --threads shared, or -c 1"
        return self._first(lambda layer, section: layer.refusal(section, shape))

    @property
    def storage_name(self) -> str:
        """Return the class of the outermost storage that is known, and what it merely wraps."""
        names = [layer.name() for layer in self._asked_first() if layer is not None]
        return " over ".join(names) or "this storage"

    def _asked_first(self) -> Iterator[type[Layer] | None]:
        """Return what is known of the outermost storage, and of those that it passes on to."""
        sections = [getattr(getattr(self.section, "config", None), "storage", self.section)]
        while sections:
            layer = layer_of_section(sections[0])
            yield layer
            passes_on = layer is None or layer.transparent
            sections = inner_sections(sections[0]) if passes_on else []

    def retry_flaw(self) -> str | None:
        """Say why a transaction that was refused cannot be tried again, or return ``None``."""
        return self._first(lambda layer, section: layer.retry_flaw(section), written_sections)

    def resolution_flaw(self) -> str | None:
        """Say why conflicts that are resolved spoil its data, or return ``None``."""
        return self._first(lambda layer, section: layer.resolution_flaw(section), written_sections)

    @property
    def zap_obstacle(self) -> str | None:
        """Say why its data cannot be destroyed, or return ``None``."""
        if self.sharing is Sharing.VOLATILE:
            return f"{self.storage_name} has its data in the memory of one process"
        if self.read_only:
            return "it is configured to be read only"
        return self._first(
            lambda layer, _: layer.zap_obstacle and f"{layer.name()}: {layer.zap_obstacle}"
        )

    def absence(self) -> str | None:
        """Say which server is not there, or return ``None``."""
        return self._first(lambda layer, section: layer.absence(section))

    def installation(self) -> str | None:
        """Say what to type so that missing packages are found, or return ``None``."""
        return self._first(lambda layer, section: layer.installation(section))

    def advice(self, cause: str) -> str | None:
        """Say how to configure it otherwise after it failed with *cause*, or return ``None``."""
        return self._first(lambda layer, section: layer.advice(section, cause))

    def _first(
        self,
        question: Callable[[type[Layer], Any], str | None],
        walk: Callable[[Any], Iterator[Any]] = nested_sections,
    ) -> str | None:
        """Return the first answer that a layer has for its section."""
        for section in walk(self.section):
            layer = layer_of_section(section)
            answer = question(layer, section) if layer else None
            if answer:
                return answer
        return None

    def open(self) -> Any:
        """Return the DB, newly opened; what ZODB and the storage raise goes through."""
        for section in nested_sections(self.section):
            layer = layer_of_section(section)
            if layer is not None:
                layer.settle(section)
        return self.section.open()

    def refers_to(self, server: str) -> bool:
        """Return whether it needs a private server, itself or through another server."""
        return refer_to(self.settings, server)

    def fingerprint(self) -> str:
        """Return a hash of the settings: equal for equal configurations."""
        text = json.dumps(dict(self.settings), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def contenders_of(configuration: Configuration) -> list[Contender]:
    """Return the contenders that a configuration describes, in their order."""
    return [_contender(section, configuration) for section in configuration.databases]


def _contender(section: Any, configuration: Configuration) -> Contender:
    settings = settings_with_servers(section, configuration)
    needed = [each for each in configuration.servers if refer_to(settings, each.name)]
    kinds = tuple(server.kind for server in needed)
    return Contender(section.name, section, settings, servers=kinds)


def settings_with_servers(section: Any, configuration: Configuration) -> dict[str, str]:
    """Return what *section* configures, and what the servers configure that it needs."""
    names = configuration.names
    found = settings_of(section, names)
    others = {server.name: server for server in configuration.servers}
    while needed := [name for name in others if refer_to(found, name)]:
        for name in needed:
            settings = settings_of(others.pop(name), names)
            found |= {f"server.{name}.{key}": text for key, text in settings.items()}
    return found


def refer_to(settings: Mapping[str, str], server: str) -> bool:
    """Return whether *settings* name something that was given to a server of the run."""
    reference = re.compile(rf"\${re.escape(server)}({'|'.join(_PARTS)})?(?!\w)")
    return any(reference.search(text) for text in settings.values())


def settings_of(section: Any, names: Mapping[str, str]) -> dict[str, str]:
    """Return what *section* configures, secrets left out.

    Values that the run has defined, such as its scratch directory, are given as their *names*.
    """
    found: dict[str, str] = {}
    _collect(section, "", found)
    # A part of a name's value may be another's: the longest first.
    for name, value in sorted(names.items(), key=lambda item: -len(item[1])):
        if value != HOST:  # which is the same for all servers
            whole = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")
            found = {key: whole.sub(f"${name}", text) for key, text in found.items()}
    return found


def _collect(section: Any, prefix: str, found: dict[str, str]) -> None:
    settings = getattr(section, "config", None)
    found[f"{prefix}section"] = type(section).__name__
    if settings is None or not hasattr(settings, "getSectionAttributes"):
        return
    for attribute in sorted(settings.getSectionAttributes()):
        value = getattr(settings, attribute)
        if value is None or SECRET_KEY.search(attribute):
            continue
        inner = value if isinstance(value, list) else [value]
        for number, part in enumerate(inner):
            key = f"{prefix}{attribute}{number or ''}"
            if hasattr(part, "config"):
                _collect(part, f"{key}.", found)
            elif isinstance(part, Mapping):
                shown = (name for name in part if not SECRET_KEY.search(name))
                for name in shown:
                    text = part[name]
                    found[f"{key}.{name}"] = without_secrets(str(text))
            else:
                found[key] = without_secrets(_printable(part))


def _printable(value: Any) -> str:
    address = getattr(value, "address", value)
    if isinstance(address, tuple):
        return ":".join(map(_printable, address))
    if isinstance(address, (str, int, float, bytes)) or address is None:
        return str(address)
    return type(address).__name__  # whatever else it prints differs from process to process
