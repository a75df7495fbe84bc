"""What flows through the program: clients, parameters, cells, effort.

Everything here is immutable and can be written as JSON.  Sizes are in bytes, times in seconds.
"""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any

COMPRESSIBILITY = 0.5
"""What compression takes away unless told otherwise.

LevelDB's benchmark, and RocksDB's after it, write values that compress to about half of their size
(LevelDB's README, "Performance").  English text, here Debian's texts of licences, cut into pieces
and compressed with zlib piece by piece, lost 0.35 of pieces of 300 bytes, 0.49 of 999 bytes and
0.62 of 10000 bytes.
"""


class Unit(enum.Enum):
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
    """How many clients run at once, of which kind, and whether they share one DB."""

    size: int
    unit: Unit = Unit.PROCESS
    shared: bool = False

    def __str__(self) -> str:
        noun = self.unit.value if self.size == 1 else self._plural
        if self.unit is Unit.PROCESS:
            return f"{self.size} {noun}"
        return f"{self.size} {noun} {'sharing one DB' if self.shared else 'with a DB each'}"

    @property
    def _plural(self) -> str:
        return "processes" if self.unit is Unit.PROCESS else f"{self.unit.value}s"

    @property
    def databases(self) -> int:
        """Return how many DBs the clients open."""
        return 1 if self.shared else self.size

    @property
    def code(self) -> str:
        """The shape in one word, as it stands in the name of a benchmark: ``threads-shared-2``."""
        if self.unit is Unit.PROCESS:
            return f"{self._plural}-{self.size}"
        return f"{self._plural}-{'shared' if self.shared else 'unique'}-{self.size}"


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


@dataclass(frozen=True)
class Cell:
    """One benchmark of one contender with one set of parameters."""

    benchmark: str
    contender: str
    parameters: Parameters

    def metadata(self) -> dict[str, str | int | float]:
        """Return what the metadata of every run of this cell say of it."""
        parameters = self.parameters
        told: dict[str, str | int | float] = {
            "benchmark": self.benchmark,
            "contender": self.contender,
            "concurrency": parameters.crew.size,
            "crew": str(parameters.crew),
            "objects": parameters.objects,
            "min_objects": parameters.min_objects,
            "seed": parameters.seed,
        }
        if parameters.objects or parameters.min_objects:
            told |= {
                "object_size_bytes": parameters.object_size,
                "mapping": parameters.mapping.value,
                "btree_leaf_size": parameters.leaf_size,
                "btree_internal_size": parameters.internal_size,
                "blobs": parameters.blobs,
                "compressibility": parameters.compressibility,
            }
        return told


@dataclass(frozen=True)
class Effort:
    """How long and how often a cell is measured, in pyperf's terms."""

    processes: int
    """Runs (pyperf workers) of a cell."""
    values: int
    """Values of a run."""
    warmups: int
    """Values of a run that are measured first and not counted."""
    loops: int
    """Iterations of a value; 0 calibrates."""
    min_time: float
    """Seconds that a value should take at least, which calibration aims at."""


def to_json(cell: Cell) -> dict[str, Any]:
    """Return *cell* as JSON can hold it."""
    return asdict(cell, dict_factory=_plain)


def cell_from_json(document: dict[str, Any]) -> Cell:
    """Return the cell that :func:`to_json` wrote."""
    parameters = dict(document["parameters"])
    crew = dict(parameters.pop("crew"))
    shape = CrewShape(crew["size"], Unit(crew["unit"]), crew["shared"])
    mapping = MappingType(parameters.pop("mapping"))
    return Cell(
        document["benchmark"],
        document["contender"],
        Parameters(crew=shape, mapping=mapping, **parameters),
    )


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value.value if isinstance(value, enum.Enum) else value for key, value in items}
