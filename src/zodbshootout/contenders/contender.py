"""Contenders, with the settings in their sections and the facts about their storages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from zodbshootout.client.reachability import Requirement
from zodbshootout.client.storage_types import (
    nested_sections,
    promise_of,
    server_line_of,
    type_of_section,
)
from zodbshootout.client.storage_types.zeo import BEHIND_SERVER
from zodbshootout.config.configuration import NO_SECTION, Configuration, ServerSection
from zodbshootout.config.pythons import Environment
from zodbshootout.config.references import references, with_names
from zodbshootout.config.tree import Key, Section
from zodbshootout.contenders.served import (
    ServedStorage,
    check_storages,
    served_storages,
    storages_of,
)
from zodbshootout.crews.cluster import Cluster
from zodbshootout.errors import suggestion
from zodbshootout.model.grouping import grouped
from zodbshootout.model.settings import SECTION, Settings
from zodbshootout.model.settings import Path as SettingPath
from zodbshootout.model.specification import Parameters, Storage
from zodbshootout.model.storage_facts import (
    Advice,
    Durability,
    Limit,
    Place,
    Promise,
    Sharing,
    StorageInfo,
)
from zodbshootout.model.titles import Value, title_of
from zodbshootout.servers.address import (
    address_names,
    endpoints_of,
    external_of,
    is_loopback,
    servers_of,
)

_OF_SERVER = "server"
"""The beginning of the paths of settings that belong to sections of servers."""
_ANY_LINE = "$db_host and $db_port"
"""How a section of an unknown type refers to a server ``db``."""

_SHARING_LIMITS = {
    Sharing.EXCLUSIVE: "only one DB at a time can open it",
    Sharing.VOLATILE: "its data exists in one DB only",
}
_PARTS_OF_URI: frozenset[str] = frozenset({"parameters", "storage"})
_FILES = ("path", "data_dir")
_FILE_URI = re.compile(r"file://(?P<path>[^?$]+)(\?|$)")
"""A URI of a file whose path contains no reference such as ``$scratch``."""
_URI_OF_FILES = re.compile(r"\bfile://|\bdata_dir=|\bshared_blob_dir=[^0fFnN]|\$scratch")
"""Text by which a URI names files that all clients share."""
_PLACES = (*_FILES, "dsn", "host", "port", "unix_socket", "db", "server", "storage")
"""Settings by which a user recognizes a database."""


@dataclass(frozen=True)
class Contender:
    """A storage with its configuration: a ``<zodb NAME>`` or ``<zodburi NAME>`` section."""

    name: str
    """The section's name; ``FILE:NAME`` if several files have a section of this name."""
    storage: Storage
    """The description by which a client opens the storage."""
    settings: Settings = field(default_factory=dict)
    """The settings; names of the run, such as ``$scratch``, are not replaced."""
    info: StorageInfo = field(default_factory=StorageInfo)
    servers: Mapping[str, ServerSection] = field(default_factory=dict)
    """The private servers, by name, that the contender needs directly or through another server."""
    external: Mapping[str, ServerSection] = field(default_factory=dict)
    """The servers that run already, by name, to which the contender or such a server refers."""
    served: tuple[ServedStorage, ...] = ()
    """The storages that the contender uses in private ZEO servers."""
    limits: tuple[Limit, ...] = ()
    """Limits on crews, in addition to those that the storage reports."""
    hosts_together: int = 1
    """The maximum number of hosts on one machine; each Dask worker counts as a host."""
    requirements: tuple[Requirement, ...] = ()
    installation: str | None = None
    """How to install packages that the storage needs, such as a driver."""
    advice: tuple[Advice, ...] = ()
    server_line: str | None = None
    """How the section refers to a server; see
    :meth:`~zodbshootout.client.storage_types.StorageType.server_line`."""
    section: Section = NO_SECTION
    environment: Environment | None = None
    """The environment in which clients open the storage; ``None`` for the command's own Python."""
    server_environments: Mapping[str, Environment] = field(default_factory=dict)
    """The environments in which private servers run, by the servers' names.  All other servers run
    in the command's own Python, or need no Python."""
    variant: Mapping[str, Value] = field(default_factory=dict)
    """What distinguishes this variant from the section's other variants, by axis."""
    rtt: float | None = None
    """The round-trip time of ``--rtt`` in seconds, if the option changes the distance."""
    reading: str = ""
    """The title of the reading of the file to which the contender belongs, with its own servers and
    ``$scratch``; empty if the file was read once."""
    text: str = ""
    """The text of the section and of the servers' sections."""

    @property
    def title(self) -> str:
        """The title, which no other contender of the run has: ``zeo [cache=10MB, 0.5ms]``."""
        return title_of(self.name, self.variant, self.rtt)

    @property
    def connects(self) -> bool:
        """Whether the storage connects to a server, as far as that is known."""
        connects = self.storage.servers or self.server_line or self.info.server_place
        return bool(connects)

    @property
    def bypass(self) -> str | None:
        """What to write if the storage connects to a server to which its section does not refer."""
        if self.storage.servers or not self.connects:
            return None
        return (
            "its section refers to no section of a server: write <externalserver db> with 'address "
            f"HOST:PORT', and refer to it by {self.server_line or _ANY_LINE}"
        )

    def opened(self, info: StorageInfo) -> Contender:
        is_private = self.servers and not self.external and info.server_place is Place.HERE
        known = replace(
            info,
            promise=self._kept_by_server(info.promise),
            server_place=Place.PRIVATE if is_private else info.server_place,
        )
        storage = replace(self.storage, in_memory=known.sharing is Sharing.VOLATILE)
        return replace(self, info=known, storage=storage)

    def with_versions(self, versions: Mapping[str, str]) -> Contender:
        info = replace(self.info, versions={**self.info.versions, **versions})
        return replace(self, info=info)

    def in_environment(self, environment: Environment) -> Contender:
        """Return the contender in *environment*.

        Its ZEO servers run there, too, if their sections do not name an environment.
        """
        movable = (
            name for name, server in self.servers.items() if hasattr(server.config, "environment")
        )
        servers = {**dict.fromkeys(movable, environment), **self.server_environments}
        return replace(self, environment=environment, server_environments=servers)

    def _kept_by_server(self, promise: Promise) -> Promise:
        """Replace ``BEHIND_SERVER`` by the promise of the served storages.

        If their promises differ or are unknown, return *promise* unchanged.
        """
        kept = {promise_of(served.section) for served in self.served}
        if promise != BEHIND_SERVER or len(kept) != 1:
            return promise
        (only,) = kept
        return promise if only[0] is Durability.UNKNOWN else only

    @property
    def zap_obstacle(self) -> str | None:
        """The reason why the storage's data cannot be destroyed, if one is known."""
        if self.info.sharing is Sharing.VOLATILE:
            return f"{self.info.storage_name} keeps its data in the memory of one process"
        return self.info.zap_obstacle

    def on_hosts(self, cluster: Cluster) -> Contender:
        """Return the contender with the limits that apply to clients on a cluster's hosts."""
        limits = (*self.limits, *map(Limit, self._out_of_reach(cluster)))
        return replace(self, limits=limits, hosts_together=cluster.together)

    def _out_of_reach(self, cluster: Cluster) -> Iterator[str]:
        """Yield the reasons why clients on the hosts cannot open the storage."""
        if self.environment is not None:
            name = self.environment.name
            yield f"environment {name} exists on this host only; leave out --hosts"
        if cluster.here:
            return
        for file in _files_in(self.settings):
            yield f"{file} exists on this host only; leave out --hosts"
        for server in self.storage.servers:
            if isinstance(server.address, str) or is_loopback(server.address[0]):
                key = "listen" if server.name in self.servers else "address"
                yield f"server {server.name} is reachable from this host only; see {key}"

    def refusal(self, parameters: Parameters) -> str | None:
        """Return why the contender refuses *parameters*, or ``None`` if it accepts them."""
        name, shape = self.info.storage_name, parameters.crew
        if self.rtt and self.bypass:
            return f"it cannot be put at a distance: {self.bypass}"
        if parameters.blobs and self.info.stores_blobs is False:
            return f"{name} stores no blobs as configured here; see blob-dir"
        if shape.databases > 1 and self.info.sharing in _SHARING_LIMITS:
            limit = _SHARING_LIMITS[self.info.sharing]
            shared = "use --threads shared, or -c 1"
            otherwise = f"leave out --hosts, and {shared}" if shape.hosts > 1 else shared
            return f"{name}: {limit}; {otherwise}"
        limits = (*self.limits, *self.info.limits)
        applying = (limit for limit in limits if limit.applies_to(shape, self.hosts_together))
        return next((limit.reason for limit in applying), None)

    def missing_server(self) -> str | None:
        """Try to connect to the servers; return a message if one is not running or refuses."""
        obstacles = (server.obstacle() for server in self.requirements)
        return next(filter(None, obstacles), None)

    def advice_on(self, cause: str) -> str | None:
        """Return how to configure a contender that failed with *cause*, if that is known."""
        fitting = (advice.text for advice in self.advice if re.search(advice.pattern, cause))
        return next(fitting, None)

    @property
    def description(self) -> tuple[object, ...]:
        """Everything that the sections say; equal for equal configurations."""
        servers = (one.text.whole for one in chain(self.servers.values(), self.external.values()))
        environments = self.server_environments.values()
        own = self.section.whole, self.section.sql, self.environment, self.rtt
        return *own, *servers, *environments

    @property
    def place(self) -> tuple[str, ...]:
        """The settings, or the URI, by which a user recognizes the database."""
        uri = self.settings.get(("uri",))
        if uri is not None and ("storage", SECTION) not in self.settings:
            file = _FILE_URI.match(uri)
            return (str(Path(file["path"]).absolute()) if file else f"{uri}{self._own_name(uri)}",)
        places = []
        by_port = {f"${name}_port": f"${name}" for name in self.servers}
        for (*section, last), value in self.settings.items():
            name = last.rstrip("0123456789")
            if name == "user" and (*section, "dsn") in self.settings:
                places.append(value)  # in Oracle, each user has a schema
            elif name in _FILES and not value.startswith("$"):
                places.append(str(Path(value).absolute()))
            elif name in _PLACES:
                # Recognize a private server by its port, because its host has several names.
                server = by_port.get(value.rpartition(":")[2]) if name == "server" else None
                places.append(f"{server or value}{self._own_name(value)}")
        return tuple(places)

    def _own_name(self, value: str) -> str:
        """If *value* refers to a name with another value in each reading, return a suffix."""
        fixed = frozenset().union(*map(address_names, self.external))
        return f" of {self.reading}" if self.reading and references(value) - fixed else ""


def _files_in(settings: Settings) -> list[str]:
    """Return the files and directories that clients open, according to settings or URIs."""
    files = []
    for (*section, name), value in settings.items():
        if (*section, name) == ("uri",) and _URI_OF_FILES.search(value):
            files.append(value)
        if section and section[0] in {_OF_SERVER, "parameters"}:
            continue
        shared = settings.get((*section, "shared_blob_dir"), "")
        if name in _FILES or (name == "blob_dir" and shared.lower() == "true"):
            files.append(value)
    return files


def contenders_of(configuration: Configuration) -> list[Contender]:
    """Return the contenders that a configuration describes, in file order.

    Those that cannot be read for want of a package are left out; see :attr:`Configuration.flaws`.

    :raises UserError: if a section of a contender or of a server is wrong
    """
    for server in configuration.servers:
        if server.kind == "zeoserver":
            check_storages(server)
    contenders = [
        _contender(text, section, configuration)
        for text, section in configuration.contenders
        if text.name not in configuration.flaws
    ]
    _check_distances(contenders, configuration)
    return contenders


def _contender(text: Section, section: Any, configuration: Configuration) -> Contender:
    """Return a contender; *section* is ``None`` if another Python has to parse *text*."""
    servers = servers_of(text.names, configuration)
    typed = [(type_of_section(inner), inner) for inner in nested_sections(section)]
    served = served_storages(text, servers)
    settings = _settings(text, section, configuration)
    for number, statement in enumerate(text.sql):
        settings[(f"sql{number or ''}",)] = statement
    used = [storage.section for storage in served]
    external = external_of([text, *(server.text for server in servers)], configuration)
    for server in servers:
        unused = [storage for storage in storages_of(server).values() if storage not in used]
        own = _settings_of_parsed(server, configuration, (_OF_SERVER, server.name), unused)
        settings.update(own)
    for server in external:
        settings.update(_settings_of_parsed(server, configuration, (_OF_SERVER, server.name)))
    for mistake in filter(None, (kind.mistake(storage) for kind, storage in typed)):
        wrong, flaw = mistake
        raise text.mistake(flaw, wrong)
    installations = (kind.installation(inner) for kind, inner in typed)
    requirements = tuple(need for kind, inner in typed for need in kind.requirements(inner))
    advice = tuple(advice for kind, inner in typed for advice in kind.advice(inner))
    return Contender(
        name=text.name,
        storage=replace(
            _storage(text, configuration.names), servers=endpoints_of(text, configuration)
        ),
        settings=settings,
        servers={server.name: server for server in servers},
        external={server.name: server for server in external},
        served=tuple(served),
        requirements=requirements,
        installation=next(filter(None, installations), None),
        advice=advice,
        server_line=None if section is None else server_line_of(section),
        section=text,
        environment=configuration.environments.get(text.environment),
        server_environments=_server_environments(servers, configuration.environments),
        text=_shown(text, [*servers, *external]),
    )


def _check_distances(contenders: Sequence[Contender], configuration: Configuration) -> None:
    """Check that a contender connects directly to each server that has a key ``rtt``."""
    direct = {server.name for one in contenders for server in one.storage.servers}
    needed = {name for one in contenders for name in chain(one.servers, one.external)}
    for server in chain(configuration.servers, configuration.external):
        if server.text.key("rtt") and server.name in needed - direct:
            flaw = f"no contender connects directly to server {server.name}"
            raise server.text.mistake(f"rtt: {flaw}", "rtt")


def _server_environments(
    servers: Sequence[ServerSection], environments: Mapping[str, Environment]
) -> dict[str, Environment]:
    """Return the environments that the sections of *servers* name, by the servers' names."""
    named = {}
    for server in servers:
        written = getattr(server.config, "environment", None)
        if written is None:
            continue
        if written.lower() not in environments:
            advice = (
                suggestion(written, [*environments]) if environments else "no section defines one"
            )
            line = f"environment {written}"
            raise server.text.mistake(f"no environment {written!r}; {advice}", line)
        named[server.name] = environments[written.lower()]
    return named


def _storage(text: Section, names: Mapping[str, str]) -> Storage:
    """Return what a client needs to open the storage without the rest of the file."""
    used = {name: names[name] for name in sorted(text.names)}
    return Storage(text.whole, names=used, sql=text.sql)


def _shown(text: Section, servers: Sequence[ServerSection]) -> str:
    """Return the servers' texts and the section's text, indented."""
    lines = [line for server in servers for line in server.text.whole.splitlines()]
    own = text.whole.splitlines()
    start = own.index(text.lines[0].text) + 1
    lines += [*own[:start], *(f"sql {statement}" for statement in text.sql), *own[start:]]
    shown = list(dict.fromkeys(line for line in lines if line.startswith("%")))
    depth = 0
    for line in (line for line in lines if not line.startswith("%")):
        depth -= line.startswith("</")
        shown.append(f"{'  ' * depth}{line}")
        depth += line.startswith("<") and not line.startswith("</")
    return "\n".join(shown)


def _settings(text: Section, section: Any, configuration: Configuration) -> dict[SettingPath, str]:
    """Return a section's settings, as the metadata of runs record them.

    A value with a name of the run, such as ``$scratch``, is recorded as in the file, so that the
    value is the same in every run.  If another Python has to parse the section, only its text is
    known here, and settings are named after section types and keys.
    """
    if section is not None:
        return dict(_settings_of_parsed(section, configuration))
    settings: dict[SettingPath, str] = {(SECTION,): text.type}
    for (*types, name), values in grouped(_keys_by_types(text)).items():
        for number, value in enumerate(values):
            settings[(*types, f"{name}{number or ''}")] = with_names(value)
    return settings


def _keys_by_types(text: Section, types: SettingPath = ()) -> Iterator[tuple[SettingPath, str]]:
    """Yield the keys and values of a section; keys of inner sections follow the types of these."""
    for item in text.items:
        if isinstance(item, Key):
            yield (*types, item.name.replace("-", "_")), item.value
        elif isinstance(item, Section):
            yield from _keys_by_types(item, (*types, item.type))


def _settings_of_parsed(
    section: Any, configuration: Configuration, path: SettingPath = (), unused: Sequence[Any] = ()
) -> Iterator[tuple[SettingPath, str]]:
    yield (*path, SECTION), type(section).__name__
    if not hasattr(section.config, "getSectionAttributes"):
        return
    kind = section.config.getSectionMatcher().type
    keys = configuration.text_of(section).keys
    written = grouped((_attribute(kind, key.name), key.value) for key in keys)
    # In the parts of a URI, the run's names are already replaced by their values.  Skip the parts
    # if the URI uses the run's names.
    skipped = _PARTS_OF_URI if _by_name(written, "uri") else frozenset()
    for attribute in sorted(section.config.getSectionAttributes()):
        value = getattr(section.config, attribute)
        if value is None or attribute in skipped:
            continue
        parts = value if isinstance(value, list) else [value]
        for number, part in enumerate(part for part in parts if part not in unused):
            inner = (*path, f"{attribute}{number or ''}")
            if not hasattr(part, "config"):
                for names, shown in _values(attribute, number, part, written):
                    yield (*inner, *names), shown
            else:
                yield from _settings_of_parsed(part, configuration, inner)


def _attribute(section_type: Any, key: str) -> str:
    """Return the attribute that a key of a section sets, or ``attribute.key`` for a mapping."""
    real = section_type.keytype(key)
    anything = ""
    for name, info in section_type:
        if name == real:
            return str(info.attribute)
        if name == "+":
            anything = f"{info.attribute}.{real}"
    return anything


def _by_name(written: Mapping[str, Sequence[str]], attribute: str, number: int = 0) -> str | None:
    """Return the text of a value, with each reference to one of the run's names as ``$name``.

    Return ``None`` if the value does not refer to any of the run's names.
    """
    texts = written.get(attribute, ())
    text = texts[number] if number < len(texts) else ""
    return with_names(text) if references(text) else None


def _values(
    attribute: str, number: int, value: Any, written: Mapping[str, Sequence[str]]
) -> Iterator[tuple[SettingPath, str]]:
    """Yield the value as text or, of a mapping, the path and the text of each item."""
    if not isinstance(value, Mapping):
        yield (), _by_name(written, attribute, number) or _printable(value)
        return
    for name, part in value.items():
        yield (str(name),), _by_name(written, f"{attribute}.{name}") or str(part)


def _printable(value: Any) -> str:
    address = getattr(value, "address", value)
    if isinstance(address, tuple):
        return ":".join(map(_printable, address))
    if isinstance(address, (str, int, float, bytes)) or address is None:
        return str(address)
    return type(address).__name__  # the repr may contain a memory address
