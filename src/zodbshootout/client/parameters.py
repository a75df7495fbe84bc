"""What a benchmark is measured with.

Everything here is immutable and can be written as JSON.  Sizes are in bytes.
"""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, replace
from typing import Any

COMPRESSIBILITY = 0.5
"""What compression takes away unless told otherwise.

LevelDB's benchmark, and RocksDB's after it, write values that compress to about half of their size
(LevelDB's README, "Performance").  English text, here Debian's texts of licences, cut into pieces
and compressed with zlib piece by piece, lost 0.35 of pieces of 300 bytes, 0.49 of 999 bytes and
0.62 of 10000 bytes.
"""


class ClientKind(enum.Enum):
    """What one client of a crew is to the operating system."""

    PROCESS = "process"
    THREAD = "thread"
    GREENLET = "greenlet"


class MappingType(enum.Enum):
    """The mapping that holds a client's objects in the database."""

    PERSISTENT_MAPPING = "PersistentMapping"
    IO = "IOBTree"
    OO = "OOBTree"


@dataclass(frozen=True)
class CrewShape:
    """How many clients run at once, of which kind, where, and whether they share one DB."""

    size: int
    unit: ClientKind = ClientKind.PROCESS
    shared: bool = False
    """Whether those of one host do."""
    hosts: int = 0
    """On how many other hosts they are, as evenly spread as may be; with 0 on this one."""

    def __str__(self) -> str:
        noun = self.unit.value if self.size == 1 else self._plural
        told = f"{self.size} {noun}"
        if self.unit is not ClientKind.PROCESS:
            told += " sharing one DB" if self.shared else " with a DB each"
        if self.hosts:
            told += f" on {self.hosts} host{'' if self.hosts == 1 else 's'}"
        return told

    @property
    def kind(self) -> str:
        """The words for any number of such clients: ``threads sharing one DB``."""
        return str(replace(self, size=2)).partition(" ")[2]

    @property
    def _plural(self) -> str:
        return "processes" if self.unit is ClientKind.PROCESS else f"{self.unit.value}s"

    @property
    def databases(self) -> int:
        """Return how many DBs the clients open."""
        return max(1, min(self.hosts, self.size)) if self.shared else self.size

    @property
    def code(self) -> str:
        """The shape in one word, as it stands in the name of a benchmark: ``threads-shared-2``."""
        sharing = "" if self.unit is ClientKind.PROCESS else "-shared" if self.shared else "-unique"
        hosts = f"-hosts-{self.hosts}" if self.hosts else ""
        return f"{self._plural}{sharing}-{self.size}{hosts}"


@dataclass(frozen=True)
class Parameters:
    """What a cell is made of besides its benchmark and its contender."""

    crew: CrewShape
    objects: int = 1000
    """Objects that each client writes or reads in one iteration; 0 where there are none."""
    object_size: int = 300
    """Bytes of one stored object record."""
    mapping: MappingType = MappingType.PERSISTENT_MAPPING
    leaf_size: int = 0
    """Keys in a leaf of the mapping, if that is a BTree; 0 is what BTrees has by default."""
    internal_size: int = 0
    """Children of an inner node of the mapping, likewise."""
    blobs: bool = False
    """Whether the objects' content is in blobs of :attr:`object_size` bytes."""
    compressibility: float = COMPRESSIBILITY
    """The part of the objects' content that compression takes away, from 0 to 1."""
    min_objects: int = 0
    """Objects that the database holds at least beside those of the benchmarks."""
    seed: int = 0
    """What the objects' content is generated from."""
    owner: str = ""
    """Whose objects are changed: several contenders of one database, which are measured in turn,
    would find what others have changed."""


def to_json(parameters: Parameters) -> dict[str, Any]:
    """Return *parameters* as JSON can hold them."""
    return asdict(parameters, dict_factory=_plain)


def from_json(document: dict[str, Any]) -> Parameters:
    """Return the parameters that :func:`to_json` wrote."""
    found = dict(document)
    crew = found.pop("crew")
    shape = CrewShape(crew["size"], ClientKind(crew["unit"]), crew["shared"], crew.get("hosts", 0))
    mapping = MappingType(found.pop("mapping"))
    return Parameters(crew=shape, mapping=mapping, **found)


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value.value if isinstance(value, enum.Enum) else value for key, value in items}
