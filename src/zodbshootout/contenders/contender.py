"""What is known of a contender: plain data, whatever becomes of its storage."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from zodbshootout.client.specification import Parameters, Storage
from zodbshootout.client.storage_info import (
    Advice,
    Limit,
    Requirement,
    Sharing,
    StorageInfo,
    narrowest,
)
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


@dataclass(frozen=True)
class Contender:
    """One ``<zodb NAME>`` or ``<zodburi NAME>`` section."""

    name: str
    storage: Storage
    """What a client needs to open it."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What was configured, secrets left out, with what the run has named as ``$name``."""
    info: StorageInfo = field(default_factory=StorageInfo)
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

    def inspected(self, info: StorageInfo) -> Contender:
        """Return the contender with what a look at its open storage has found."""
        sharing = narrowest((self.info.sharing, info.sharing))
        return replace(self, info=replace(info, sharing=sharing))

    def refusal(self, parameters: Parameters) -> str | None:
        """Say why it cannot be measured with these parameters, or return ``None``."""
        name, shape = self.info.storage_name, parameters.crew
        if parameters.blobs and self.info.stores_blobs is False:
            return f"{name} stores no blobs as it is configured here; see blob-dir"
        if shape.databases > 1 and self.info.sharing in _LIMITS:
            limit = _LIMITS[self.info.sharing]
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
