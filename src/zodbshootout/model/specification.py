"""Everything that a client needs to know: a benchmark, a storage and the parameters of a cell.

All classes here are immutable.  Sizes are in bytes.
"""

from __future__ import annotations

import enum
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Union

INSTALLED = "installed"
"""The name of the environment whose contenders use the packages as they are installed."""

COMPRESSIBILITY = 0.5
"""The default share of the content that compression removes.

Values of LevelDB's benchmark, and of RocksDB's after it, compress to about half of their size
(LevelDB's README, "Performance").  Of English text, Debian's licences, zlib removed 0.35 in pieces
of 300 bytes, 0.49 in pieces of 999 bytes and 0.62 in pieces of 10000 bytes.
"""


REVISIONS = 3
"""The default number of revisions of an object, in benchmarks of old revisions."""
GARBAGE = 0.3
"""The default share of the objects of a database that nothing refers to, before it is packed."""

Address = Union[tuple[str, int], str]
"""A host and a port, or the path of a socket."""


RTT = "rtt"
"""The name of the definition whose values are those of ``--rtt``."""
MAX_RTT = 1.0
"""The longest round-trip time in seconds; to the moon it would be 2.6."""
_IN_A_SECOND = {"us": 1e6, "ms": 1e3, "s": 1.0}


def duration(seconds: float) -> str:
    """Return a duration as the command line takes it: ``0``, ``200us``, ``0.5ms`` or ``1s``."""
    if not seconds:
        return "0"
    if seconds >= 1:
        return f"{seconds:g}s"
    return f"{seconds * 1e3:g}ms" if seconds >= 1e-4 else f"{seconds * 1e6:g}us"  # noqa: PLR2004


def round_trip_time(text: str) -> float:
    """Return the seconds of a round-trip time as a user writes it, such as ``0`` or ``0.5ms``.

    :raises ValueError: if it is none up to :data:`MAX_RTT`
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(us|ms|s)?", text.lower(), re.ASCII)
    seconds = float(match[1]) / _IN_A_SECOND[match[2] or "s"] if match else math.nan
    if not 0 <= seconds <= MAX_RTT:
        raise ValueError(f"{text!r} is not a round-trip time up to {MAX_RTT:g}s, such as 0.5ms")
    if match and not match[2] and seconds:
        raise ValueError(f"{text!r} has no unit; write {text}ms or {text}us")
    return seconds


def variant_name(section: str, definitions: Mapping[str, str]) -> str:
    """Return the name of a contender that is measured with certain values of ``--define``."""
    values = ", ".join(
        value if name == RTT else f"{name}={value}" for name, value in definitions.items()
    )
    return f"{section} [{values}]" if values else section


_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 0.0}
_NAME_AT_A_DISTANCE = re.compile(r"(.+) \[(?:(.*), )?(?:0|([\d.e-]+)(us|ms|s))\]")


def without_rtt(contender: str) -> tuple[str, float | None]:
    """Split a name of :func:`variant_name` into one without :data:`RTT` and its time in seconds.

    The time is ``None`` if the name has none.
    """
    match = _NAME_AT_A_DISTANCE.fullmatch(contender)
    if match is None:
        return contender, None
    section, others, number, unit = match.groups(default="")
    seconds = float(number or 0) * _UNITS[unit]
    return f"{section} [{others}]" if others else section, seconds


class ClientKind(enum.Enum):
    """The unit of execution in which a client runs."""

    PROCESS = "process"
    THREAD = "thread"
    GREENLET = "greenlet"

    @property
    def plural(self) -> str:
        return f"{self.value}es" if self.value.endswith("s") else f"{self.value}s"

    @property
    def in_one_process(self) -> bool:
        """Whether all clients on a host live in one process, and so may share a DB."""
        return self in {ClientKind.THREAD, ClientKind.GREENLET}


class MappingType(enum.Enum):
    """The mapping that holds a client's objects in the database."""

    PERSISTENT_MAPPING = "PersistentMapping"
    IO = "IOBTree"
    OO = "OOBTree"


@dataclass(frozen=True)
class BenchmarkWords:
    """The words in which reports describe a benchmark."""

    title: str
    """Its title in charts; ``{objects}`` stands for the objects of an iteration."""
    legend: str = ""
    """A few words for the line below a table: the work on the clock, or what it reads from."""
    topic: str = ""
    """The kind of work that it asks of the storage, by which a summary sorts benchmarks; empty if
    it asks nothing."""
    counted: str = "objects"
    """The noun for the work of an iteration: ``objects``, ``transactions`` and so on."""


@dataclass(frozen=True)
class CrewShape:
    """How many clients run at once, of which kind, where, and whether they share one DB."""

    size: int
    client_kind: ClientKind = ClientKind.PROCESS
    shared: bool = False
    """Whether the clients of one host share one DB."""
    hosts: int = 0
    """The number of other hosts over which the clients are spread evenly; 0 means this host."""

    def __str__(self) -> str:
        noun = self.client_kind.value if self.size == 1 else self.client_kind.plural
        text = f"{self.size} {noun}"
        if self.client_kind.in_one_process:
            text += " sharing one DB" if self.shared else " with a DB each"
        if self.hosts:
            text += f" on {self.hosts} host{'' if self.hosts == 1 else 's'}"
        return text

    @property
    def kind(self) -> str:
        """The words for several such clients: ``threads sharing one DB``."""
        return str(replace(self, size=2)).partition(" ")[2]

    @property
    def databases(self) -> int:
        """The number of DBs that the clients open."""
        return max(1, min(self.hosts, self.size)) if self.shared else self.size

    @property
    def code(self) -> str:
        """The shape in one word, for the name of a benchmark: ``threads-shared-2``."""
        sharing = ""
        if self.client_kind.in_one_process:
            sharing = "-shared" if self.shared else "-unique"
        hosts = f"-hosts-{self.hosts}" if self.hosts else ""
        return f"{self.client_kind.plural}{sharing}-{self.size}{hosts}"


@dataclass(frozen=True)
class ReplayedWorkload:
    """The properties of a workload that is replayed."""

    name: str = ""
    """The name of its file or directory; empty if none is replayed."""
    digest: str = ""
    """A hash of its files."""
    transactions: int = 0
    connections: int = 0
    seconds: float = 0.0
    """The time from the beginning of its first transaction to that of its last one."""
    initial_objects: int = 0
    """Objects that it uses and that exist before it."""
    all_objects: int = 0
    """Objects in the application's database; 0 if their number was not recorded."""
    created_objects: int = 0
    has_blobs: bool = False
    read_only: int = 0
    """Transactions that commit nothing."""
    loads: int = 0
    stores: int = 0
    speed: float = 0.0
    """How many times as fast as recorded its transactions begin; 0 is as fast as possible."""
    conflicts: int = 0
    resolutions: int = 0
    """Conflicts that were resolved."""
    retries: int = 0
    """Attempts at transactions that failed with a conflict."""
    data: str = ""
    """The name of the file that its objects' records come from; empty if they are synthetic."""
    other_objects: int = 0
    """Objects in that file that it does not use."""
    path: str = field(default="", compare=False)
    """The file with its trace."""
    data_path: str = field(default="", compare=False)
    run: str = field(default="", compare=False)
    """A name that all clients of one run have, and no others."""


@dataclass(frozen=True)
class CopiedData:
    """The properties of a FileStorage of the user's whose transactions are copied."""

    file: str = ""
    """The name of the file; empty if a FileStorage is made."""
    objects: int = 0
    transactions: int = 0
    records: int = 0
    has_blobs: bool = False
    size: int = 0
    """The size of the file in bytes."""
    path: str = field(default="", compare=False)
    blob_dir: str = field(default="", compare=False)
    directory: str = field(default="", compare=False)
    """The directory for FileStorages that are made, in which all clients of a run find them."""


def exactly(number: float) -> str:
    """Return a number with all of its digits, so that different ones have different names."""
    return repr(number).removesuffix(".0")


@dataclass(frozen=True)
class LatencyLimit:
    """A percentile of latencies, and its upper limit in seconds; 0 is no limit."""

    percentile: float = 0.0
    seconds: float = 0.0

    @classmethod
    def parsed(cls, text: str) -> LatencyLimit:
        """Return a limit such as ``p99=50ms``.

        :raises ValueError: if *text* has another form
        """
        match = re.fullmatch(r"p(\d+(?:\.\d+)?)=(\d+(?:\.\d+)?)(ms|s)", text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a percentile and a time")
        return cls(float(match[1]), float(match[2]) / (1 if match[3] == "s" else 1000))

    def __str__(self) -> str:
        return f"p{exactly(self.percentile)}={self._milliseconds}ms"

    @property
    def sentence(self) -> str:
        """The limit in words."""
        return f"p{exactly(self.percentile)} within {self._milliseconds} ms"

    @property
    def _milliseconds(self) -> str:
        return exactly(round(1000 * self.seconds, 9))  # 6.9 ms are 6.8999999999999995 otherwise


RESTARTS = ("restart", "restart:clean")
"""The operations that end a private server, by force or in order, and start it again."""
OPERATIONS = ("pack", "copy", "vacuum", *RESTARTS)
"""The operations of ``--during``."""
BEFORE, DURING, AFTER = PHASES = ("before", "during", "after")
"""When a cell is measured that has an operation."""


@dataclass(frozen=True)
class Parameters:
    """The parameters that make up a cell, together with its benchmark and its contender."""

    crew: CrewShape
    objects: int = 1000
    """Objects that each client writes or reads in one iteration; 0 if it uses none."""
    object_size: int = 300
    """Bytes of one stored object record."""
    mapping: MappingType = MappingType.PERSISTENT_MAPPING
    leaf_size: int = 0
    """Keys in a leaf of the mapping, if that is a BTree; 0 is BTrees' default."""
    internal_size: int = 0
    """Children of an inner node of the mapping, if that is a BTree; 0 is BTrees' default."""
    grown: bool = False
    """Whether that BTree also has the :attr:`min_objects`, and there is one for all clients."""
    blobs: bool = False
    """Whether the objects' content is in blobs of :attr:`object_size` bytes."""
    compressibility: float = COMPRESSIBILITY
    """The share of the objects' content that compression removes, from 0 to 1."""
    min_objects: int = 0
    """The minimum number of objects in the database besides those of the benchmarks."""
    revisions: int = 0
    """Revisions that objects have at least; 0 if the benchmark uses the newest ones only."""
    garbage: float = 0.0
    """The share of objects that nothing refers to, from 0 to less than 1."""
    seed: int = 0
    """The seed from which the objects' content is generated."""
    owner: str = ""
    """The contender that owns the objects to change: in a shared database each changes its own."""
    workload: ReplayedWorkload = ReplayedWorkload()
    """The workload to replay, if the benchmark replays one."""
    copied: CopiedData = CopiedData()
    """The FileStorage to copy, if the benchmark copies one of the user's."""
    rate: float = 0.0
    """Iterations a second of all clients together; 0 if each begins when the previous one ends."""
    even_arrivals: bool = False
    """Whether iterations at a rate come at equal intervals, not at random."""
    limit: LatencyLimit = LatencyLimit()
    """The limit of latencies within which the highest rate is searched."""
    during: str = ""
    """The operation during which iterations at a rate are measured, such as ``pack``; in a cell,
    after one of :data:`PHASES` and a blank."""
    rtt: float | None = None
    """The round-trip time in seconds, if a run has measured several: reports have it here, files in
    the contender's name."""

    @property
    def operation(self) -> str:
        """The name of the operation in :attr:`during`; empty if there is none."""
        return self.during.rpartition(" ")[2]

    @property
    def phase(self) -> str:
        """The one of :data:`PHASES` in :attr:`during`; empty if there is none."""
        return self.during.rpartition(" ")[0]


@dataclass(frozen=True)
class Interpreter:
    """A Python, other than that of the command's workers, that opens a contender."""

    name: str
    """The name of its environment; empty for the command's Python, patched by gevent."""
    executable: str
    """The path of the program."""
    modules: str
    """The directories that come first on its path, separated as in ``PYTHONPATH``: they hold the
    modules of zodbshootout that it needs."""
    sees_ours: bool = False
    """Whether it is the Python of the command, and finds modules where that finds them."""
    gevent: bool = False
    """Whether gevent patches it, if installed there, because its clients are greenlets."""


def for_another_python(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an *environment* but those with paths of one Python's modules."""
    paths = ("PYTHONPATH", "PYTHONHOME")
    return {name: value for name, value in environment.items() if name not in paths}


def variables_for(interpreter: Interpreter, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which a program of a Python imports from its modules first."""
    variables = environment if interpreter.sees_ours else for_another_python(environment)
    paths = [interpreter.modules, variables.get("PYTHONPATH", "")]
    return {**variables, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@dataclass(frozen=True)
class Distance:
    """The round-trip time that relays add between clients and a server, or several."""

    rtt: float
    """In seconds; if it is 0, clients connect to the server itself."""
    server: str = ""
    """The name of the private server whose section asks for it; empty for all other servers."""
    port: int = 0
    """The port of that server, which no other server of the run has."""

    def holds_for(self, address: Address) -> bool:
        """Return whether it is the distance to the server at an address."""
        return not self.server or (isinstance(address, tuple) and address[1] == self.port)


@dataclass(frozen=True)
class Storage:
    """How to open a contender."""

    section: str = ""
    """The text of its section in ZConfig's language, after the imports and definitions it needs."""
    uri: str = ""
    """A ZODB URI in place of the section."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Names that the section uses without defining them, with their values."""
    interpreter: Interpreter | None = None
    """The Python that opens it; ``None`` is that of the command's workers."""
    sql: tuple[str, ...] = ()
    """The statements to run in its database when it has been opened for the first time."""
    routes: Mapping[Address, Address] = field(default_factory=dict)
    """The addresses to connect to in place of those of its servers."""
    distances: tuple[Distance, ...] = ()
    """The distances to its servers; of those that hold for an address the first one counts."""
    in_memory: bool = False
    """Whether it loses its data when it is closed, whatever the types of its storages say."""


@dataclass(frozen=True)
class Specification:
    """A benchmark, a storage and the parameters of a cell."""

    storage: Storage
    benchmark: str
    parameters: Parameters
