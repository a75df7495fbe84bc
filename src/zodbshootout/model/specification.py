"""Everything that a client needs to know: a benchmark, a storage and the parameters of a cell.

All classes here are immutable.  Sizes are in bytes.
"""

from __future__ import annotations

import enum
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Union

INSTALLED = "installed"
"""The name of the environment whose contenders use the installed packages."""

COMPRESSIBILITY = 0.5
"""The default share of the content that compression removes.

LevelDB's and RocksDB's benchmarks write values that compress to about half of their size (LevelDB's
README, "Performance").  zlib made pieces of English text (Debian's licences) smaller: pieces of 300
bytes by 35 %, of 999 bytes by 49 %, and of 10000 bytes by 62 %.
"""


REVISIONS = 3
"""The default number of revisions per object, in benchmarks that use old revisions."""
GARBAGE = 0.3
"""The default share of unreachable objects in a database that is to be packed."""

Address = Union[tuple[str, int], str]
"""A host and a port, or the path of a socket."""


MAX_RTT = 1.0
"""The maximum round-trip time in seconds."""
_IN_A_SECOND = {"us": 1e6, "ms": 1e3, "s": 1.0}


def duration(seconds: float, space: str = "") -> str:
    """Return a duration as the command line takes it: ``0``, ``200us``, ``0.5ms`` or ``1s``.

    A *space* may precede the unit.
    """
    if not seconds:
        return "0"
    unit = "s" if seconds >= 1 else "ms" if seconds >= 1e-4 else "us"  # noqa: PLR2004
    return f"{seconds * _IN_A_SECOND[unit]:g}{space}{unit}"


def round_trip_time(text: str) -> float:
    """Return the seconds of a round-trip time as a user writes it, such as ``0`` or ``0.5ms``.

    :raises ValueError: if *text* is not such a time, or is more than :data:`MAX_RTT`
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(us|ms|s)?", text.lower(), re.ASCII)
    seconds = float(match[1]) / _IN_A_SECOND[match[2] or "s"] if match else math.nan
    if not 0 <= seconds <= MAX_RTT:
        raise ValueError(f"{text!r} is not a round-trip time up to {MAX_RTT:g}s, such as 0.5ms")
    if match and not match[2] and seconds:
        raise ValueError(f"{text!r} has no unit; write {text}ms or {text}us")
    return seconds


class ClientKind(enum.Enum):
    """The unit of execution in which a client runs."""

    PROCESS = "process"
    """A process for each client."""
    THREAD = "thread"
    """A thread for each client, in one process."""
    GREENLET = "greenlet"
    """A greenlet of gevent for each client, in one process."""

    @property
    def plural(self) -> str:
        return f"{self.value}es" if self.value.endswith("s") else f"{self.value}s"

    @property
    def in_one_process(self) -> bool:
        """Whether all clients on a host share one process, and so may share a DB."""
        return self in {ClientKind.THREAD, ClientKind.GREENLET}


class MappingType(enum.Enum):
    """The mapping that holds a client's objects in the database."""

    PERSISTENT_MAPPING = "PersistentMapping"
    IO = "IOBTree"
    OO = "OOBTree"


@dataclass(frozen=True)
class BenchmarkWords:
    """The words that reports use for a benchmark."""

    title: str
    """The benchmark's title in charts; ``{objects}`` stands for the number of objects."""
    legend: str = ""
    """The words below a table that say what is timed, or where the data are read from."""
    topic: str = ""
    """The kind of work by which a summary groups benchmarks; empty if the benchmark asks nothing of
    the storage."""
    counted: str = "objects"
    """The noun for the work of an iteration: ``objects``, ``transactions`` and so on."""


@dataclass(frozen=True)
class CrewShape:
    """How many clients run at once, of which kind, where, and whether they share one DB."""

    size: int
    """The number of clients."""
    client_kind: ClientKind = ClientKind.PROCESS
    """The unit of execution that each client has."""
    shared: bool = False
    """Whether the clients of one host share one DB."""
    hosts: int = 0
    """The number of other hosts over which the clients are spread evenly; 0 means this host."""

    def __str__(self) -> str:
        noun = self.client_kind.value if self.size == 1 else self.client_kind.plural
        return f"{self.size} {noun}{self._where}"

    @property
    def kind(self) -> str:
        """The clients' description in the plural, without a number: ``threads sharing one DB``."""
        return f"{self.client_kind.plural}{self._where}"

    @property
    def _where(self) -> str:
        sharing, hosts = "", ""
        if self.client_kind.in_one_process:
            sharing = " sharing one DB" if self.shared else " with a DB each"
        if self.hosts:
            hosts = f" on {self.hosts} host{'' if self.hosts == 1 else 's'}"
        return f"{sharing}{hosts}"

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
    """The name of the workload's file or directory; empty if no workload is replayed."""
    digest: str = ""
    """A hash of the workload's files."""
    transactions: int = 0
    connections: int = 0
    seconds: float = 0.0
    """The time from the start of the first transaction to the start of the last one."""
    initial_objects: int = 0
    """Objects that the workload uses, and that existed before it began."""
    all_objects: int = 0
    """Objects in the application's database; 0 if their number was not recorded."""
    created_objects: int = 0
    has_blobs: bool = False
    read_only: int = 0
    """Transactions that commit nothing."""
    loads: int = 0
    stores: int = 0
    speed: float = 0.0
    """The speed relative to the recording; 0 means as fast as possible."""
    conflicts: int = 0
    resolutions: int = 0
    """Conflicts that were resolved."""
    retries: int = 0
    """Transaction attempts that failed with a conflict."""
    data: str = ""
    """The name of the file with the objects' records; empty if the records are synthetic."""
    other_objects: int = 0
    """Objects that the file :attr:`data` contains, but that the workload does not use."""
    path: str = field(default="", compare=False)
    """The path of the file with the workload's trace."""
    data_path: str = field(default="", compare=False)
    run: str = field(default="", compare=False)
    """A name that is unique to a run and shared by all of its clients."""


@dataclass(frozen=True)
class CopiedData:
    """The properties of the user's FileStorage whose transactions are copied."""

    file: str = ""
    """The name of the file; empty if the benchmark creates a FileStorage."""
    objects: int = 0
    transactions: int = 0
    records: int = 0
    has_blobs: bool = False
    size: int = 0
    """The size of the file in bytes."""
    path: str = field(default="", compare=False)
    blob_dir: str = field(default="", compare=False)
    directory: str = field(default="", compare=False)
    """The directory in which a run creates FileStorages that all of its clients copy."""


def exactly(number: float) -> str:
    """Return a number with all of its digits, so that different numbers have different texts."""
    return repr(number).removesuffix(".0")


@dataclass(frozen=True)
class LatencyLimit:
    """A percentile of latencies, and its upper limit in seconds; 0 means no limit."""

    percentile: float = 0.0
    seconds: float = 0.0

    @classmethod
    def parsed(cls, text: str) -> LatencyLimit:
        """Parse a limit such as ``p99=50ms``.

        :raises ValueError: if *text* has another form
        """
        match = re.fullmatch(r"p(\d+(?:\.\d+)?)=(\d+(?:\.\d+)?)(ms|s)", text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a limit such as p99=50ms")
        return cls(float(match[1]), float(match[2]) / (1 if match[3] == "s" else 1000))

    def __str__(self) -> str:
        return f"p{exactly(self.percentile)}={self._milliseconds}ms"

    @property
    def sentence(self) -> str:
        """The limit in words."""
        return f"p{exactly(self.percentile)} within {self._milliseconds} ms"

    @property
    def _milliseconds(self) -> str:
        return exactly(round(1000 * self.seconds, 9))  # or 6.9 becomes 6.8999999999999995


RESTARTS = ("restart", "restart:clean")
"""The operations that start a private server again: after killing it, or after shutting it down."""
OPERATIONS = ("pack", "copy", *RESTARTS)
"""The operations of ``--during``."""
BEFORE, DURING, AFTER = PHASES = ("before", "during", "after")
"""The phases around an operation; each cell of ``--during`` belongs to one phase."""


@dataclass(frozen=True)
class Parameters:
    """The parameters that make up a cell, together with its benchmark and its contender."""

    crew: CrewShape
    """The clients."""
    objects: int = 100
    """Objects that each client writes or reads per iteration; 0 if the benchmark uses none."""
    object_size: int = 300
    """Bytes per stored object record."""
    mapping: MappingType = MappingType.PERSISTENT_MAPPING
    """The type of the mapping that holds the objects."""
    leaf_size: int = 0
    """Keys per leaf of the mapping, if the mapping is a BTree; 0 means BTrees' default."""
    internal_size: int = 0
    """Children per inner node of the mapping, if it is a BTree; 0 means BTrees' default."""
    grown: bool = False
    """Whether all clients share one BTree that also holds the objects of ``--min-objects``."""
    blobs: bool = False
    """Whether the objects' content is stored in blobs of :attr:`object_size` bytes."""
    compressibility: float = COMPRESSIBILITY
    """The share of the objects' content that compression removes, from 0 to 1."""
    min_objects: int = 0
    """The minimum number of objects in the database besides the benchmarks' own objects."""
    revisions: int = 0
    """The minimum number of revisions per object; 0 if the benchmark uses only the newest."""
    garbage: float = 0.0
    """The share of objects that are unreachable, from 0 to less than 1."""
    seed: int = 0
    """The seed from which the objects' content is generated."""
    owner: str = ""
    """The contender to which the objects belong.  Contenders that use the same database share no
    objects."""
    workload: ReplayedWorkload = ReplayedWorkload()
    """The workload to replay, if the benchmark replays one."""
    copied: CopiedData = CopiedData()
    """The FileStorage to copy, if the benchmark copies one of the user's."""
    rate: float = 0.0
    """Iterations a second of all clients together; 0 if each client runs as fast as it can."""
    limit: LatencyLimit = LatencyLimit()
    """The limit on latencies, if the run searches for the highest rate that keeps within it."""
    during: str = ""
    """The operation during which iterations at a rate are measured, such as ``pack``."""
    phase: str = ""
    """The time around the operation: one of :data:`PHASES`, empty if there is no operation."""
    rtt: float | None = None
    """The round-trip time of ``--rtt`` in seconds, if the option changes the distance."""

    @property
    def moment(self) -> str:
        """The phase and the operation in words, such as ``before pack``; empty without them."""
        return f"{self.phase} {self.during}".strip()

    @property
    def continues(self) -> bool:
        """Whether each slice goes on as if no time lay between it and the slice before."""
        return bool(self.during)

    @property
    def may_lose_garbage(self) -> bool:
        """Whether objects to which nothing refers may be removed during the measurement."""
        return self.during == "pack"


@dataclass(frozen=True)
class Interpreter:
    """A Python that opens a contender if the command's usual workers cannot."""

    name: str
    """The name of the environment; empty if the Python belongs to no environment."""
    executable: str
    """The path of the program."""
    modules: str
    """The directories that come first on the module path, separated as in ``PYTHONPATH``; they hold
    the modules of zodbshootout that a worker needs."""
    sees_ours: bool = False
    """Whether this is the command's own Python, for which ``PYTHONPATH`` remains set."""
    gevent: bool = False
    """Whether to patch this Python for greenlets; without effect if gevent is not installed."""


def for_another_python(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an *environment* without the variables that point at one Python's modules."""
    paths = ("PYTHONPATH", "PYTHONHOME")
    return {name: value for name, value in environment.items() if name not in paths}


def variables_for(interpreter: Interpreter, environment: Mapping[str, str]) -> dict[str, str]:
    """Return *environment* for *interpreter*, whose ``modules`` come first on the module path."""
    variables = environment if interpreter.sees_ours else for_another_python(environment)
    paths = [interpreter.modules, variables.get("PYTHONPATH", "")]
    return {**variables, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@dataclass(frozen=True)
class Endpoint:
    """The server of a section ``NAME``, for a contender that refers to ``$NAME``."""

    name: str
    address: Address
    """The value of the names; a relay replaces it by its own address."""
    rtt: float = 0.0
    """The round-trip time in seconds that a relay adds; if it is 0, there is no relay."""
    is_cache: bool = False
    """Whether the server belongs to a cache, such as memcached."""

    @property
    def names(self) -> dict[str, str]:
        """The names by which a section refers to the address, and their values.

        A Unix socket has its directory as the host and, as PostgreSQL names it, the number at the
        end of its name as the port.
        """
        if isinstance(self.address, str):
            host, _, file = self.address.rpartition("/")
            whole, port = self.address, file.rpartition(".")[2]
        else:
            host, port = self.address[0], str(self.address[1])
            whole = host_and_port(host, port)
        return {self.name: whole, f"{self.name}_host": host, f"{self.name}_port": port}


def host_and_port(host: str, port: int | str) -> str:
    """Return ``host:port``, or ``[host]:port`` for IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True)
class Storage:
    """How to open a contender."""

    section: str = ""
    """The contender's section in ZConfig's language, preceded by imports and definitions."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Values of names that the section uses without defining them."""
    interpreter: Interpreter | None = None
    """The Python that opens the contender; ``None`` for the Python of the command's workers."""
    sql: tuple[str, ...] = ()
    """The SQL statements to execute after the contender was opened for the first time."""
    servers: tuple[Endpoint, ...] = ()
    """The servers to which the section refers by their names."""
    in_memory: bool = False
    """Whether closing the contender is known to lose its data.  If this is not known, the
    ``sharing`` of the contender's storage types says whether its data are lost."""


@dataclass(frozen=True)
class Specification:
    """A benchmark, a storage and the parameters of a cell."""

    storage: Storage
    benchmark: str
    parameters: Parameters
