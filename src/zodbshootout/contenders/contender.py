"""What is known of a contender: plain data, whatever becomes of its storage."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from zodbshootout.client.parameters import ClientKind, CrewShape, Parameters
from zodbshootout.client.specification import Storage
from zodbshootout.client.storage_info import Sharing, StorageInfo, narrowest
from zodbshootout.client.storages.cache_servers import Address
from zodbshootout.servers.address import accepts

_LIMITS = {
    Sharing.EXCLUSIVE: "one DB at a time can open it",
    Sharing.VOLATILE: "its data lives in one DB only",
}

_FILES = ("path", "data_dir")
_PLACES = (*_FILES, "dsn", "host", "port", "unix_socket", "db", "server", "storage")
"""Settings that tell a user which database it is."""


OF_SERVER = "server."
"""What the settings of private servers begin with."""


def clients_together(shape: CrewShape, hosts_together: int) -> int:
    """Return how many clients are on one machine, at most, with so many of their hosts."""
    hosts = max(1, shape.hosts)
    return min(shape.size, math.ceil(shape.size / hosts) * min(hosts_together, hosts))


@dataclass(frozen=True)
class Limit:
    """Which crews cannot use a storage, and why: those of whom all of this is true."""

    reason: str
    """Ends with what to type instead."""
    units: frozenset[ClientKind] = frozenset(ClientKind)
    """What the clients are."""
    databases: int = 1
    """How many DBs they open on a machine, at least."""
    of_process: bool = False
    """Whether only the DBs of one process count: each host has a process of its own."""
    sharers: int = 1
    """How many of them use one DB, at least."""

    def applies_to(self, shape: CrewShape, hosts_together: int = 1) -> bool:
        """Say whether a crew of that shape cannot use the storage.

        So many of its hosts may be on one machine.
        """
        hosts, together = max(1, shape.hosts), 1 if self.of_process else hosts_together
        if shape.shared:
            databases, sharers = min(together, hosts), math.ceil(shape.size / hosts)
        else:
            databases, sharers = clients_together(shape, together), 1
        return shape.unit in self.units and databases >= self.databases and sharers >= self.sharers


@dataclass(frozen=True)
class Requirement:
    """A server that has to be there before a storage can be opened."""

    addresses: tuple[Address, ...]
    """Where it can be; one of them is enough."""
    otherwise: str
    """What is missing, and what to type so that it is there."""


@dataclass(frozen=True)
class Advice:
    """What to write in place of a section, by how its storage failed."""

    pattern: str
    """A regular expression that is found in the cause of the failure."""
    text: str


@dataclass(frozen=True)
class Contender:
    """One ``<zodb NAME>`` or ``<zodburi NAME>`` section."""

    name: str
    storage: Storage
    """What a client needs to open it."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What was configured, secrets left out, with what the run has named as ``$name``."""
    facts: StorageInfo = field(default_factory=StorageInfo)
    servers: tuple[str, ...] = ()
    """The types of the sections of the private servers that it needs, such as ``zeoserver``."""
    server_names: frozenset[str] = frozenset()
    """The names of these servers; some may be needed by the others alone."""
    servers_here: tuple[str, ...] = ()
    """Those of them that no other host can reach."""
    limits: tuple[Limit, ...] = ()
    hosts_together: int = 1
    """How many hosts of a crew are on one machine, at most."""
    requirements: tuple[Requirement, ...] = ()
    zap_obstacle: str | None = None
    """Why its data cannot be destroyed."""
    installation: str | None = None
    """What to type where the packages are missing that it needs, such as a driver."""
    advice: tuple[Advice, ...] = ()
    environment: str = ""
    """The name of the environment that it is opened in; empty for the Python of the command."""
    made_of: str = ""
    """What that environment is made of."""
    beside: str = ""
    """The contender of the same section as it is installed, where that is compared with this."""
    side: str = ""
    """Whose names of the run are in its settings, where several sides of a comparison have theirs:
    another side's ``$scratch`` is another directory."""
    text: str = ""
    """Its section in the configuration file, and those of the servers that it needs, secrets
    left out."""

    def inspected(self, facts: StorageInfo) -> Contender:
        """Return the contender with what a look at its open storage has found."""
        sharing = narrowest((self.facts.sharing, facts.sharing))
        return replace(self, facts=replace(facts, sharing=sharing))

    def refusal(self, parameters: Parameters) -> str | None:
        """Say why it cannot be measured with these parameters, or return ``None``."""
        name, shape = self.facts.storage_name, parameters.crew
        if parameters.blobs and self.facts.stores_blobs is False:
            return f"{name} stores no blobs as it is configured here; see blob-dir"
        if shape.databases > 1 and self.facts.sharing in _LIMITS:
            limit = _LIMITS[self.facts.sharing]
            shared = "use --threads shared, or -c 1"
            otherwise = f"leave out --hosts, and {shared}" if shape.hosts > 1 else shared
            return f"{name}: {limit}; {otherwise}"
        applying = (each for each in self.limits if each.applies_to(shape, self.hosts_together))
        return next((limit.reason for limit in applying), None)

    def absence(self) -> str | None:
        """Say which server is not there, after trying to connect, or return ``None``."""
        for server in self.requirements:
            if not any(map(accepts, server.addresses)):
                return server.otherwise
        return None

    def advice_on(self, cause: str) -> str | None:
        """Say how to configure it otherwise after it failed with *cause*, or return ``None``."""
        fitting = (each.text for each in self.advice if re.search(each.pattern, cause))
        return next(fitting, None)

    @property
    def place(self) -> tuple[str, ...]:
        """Return the settings that tell which database it is.

        Of a URI that is all there is to tell, where its scheme is not known.
        """
        found = []
        for key, value in self.settings.items():
            section, _, last = key.rpartition(".")
            name = last.rstrip("0123456789")
            if name == "user" and f"{section}.dsn" in self.settings:
                found.append(value)  # in Oracle each user has a schema of his own
            elif name in _FILES and not value.startswith("$"):
                found.append(str(Path(value).absolute()))
            elif name in _PLACES:
                found.append(f"{value} of {self.side}" if self.side and "$" in value else value)
        return tuple(found) or tuple(filter(None, [self.settings.get("uri")]))

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files and directories that its clients open for its data.

        A URI that names the run's scratch directory is one of them: another host has another one.
        """
        found = []
        for key, value in self.settings.items():
            if key == "uri" and "$scratch" in value:
                found.append(value)
            section, _, name = key.rpartition(".")
            if key.startswith(OF_SERVER):
                continue
            shared = self.settings.get(f"{section}.shared_blob_dir".lstrip("."), "")
            if name in _FILES or (name == "blob_dir" and shared.lower() == "true"):
                found.append(value)
        return tuple(found)

    def fingerprint(self) -> str:
        """Return a hash of the settings: equal for equal configurations."""
        text = json.dumps(dict(self.settings), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def by_place(contenders: Iterable[Contender]) -> list[list[Contender]]:
    """Return the contenders, those together that are the same database."""
    places: dict[tuple[str, ...], list[Contender]] = {}
    for contender in contenders:
        places.setdefault(contender.place or (contender.name,), []).append(contender)
    return list(places.values())
