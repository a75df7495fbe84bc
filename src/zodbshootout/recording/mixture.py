"""Make synthetic workloads: files like recorded ones, with given numbers of loads and stores."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zodbshootout.recording.chunks import NONE, Kind, Segment, encode, header

BEGAN = 1_700_000_000 * 10**9
"""Each workload's start in nanoseconds since 1970; fixed, so equal mixtures make equal files."""
MADE = "made"
"""The storage's name in the header."""
CHUNK = 1000
"""The number of transactions in a chunk."""
_LARGEST = 2**31
"""The largest number that a distribution draws."""
_SCATTER = 2_654_435_761
"""A prime; multiplying by it scatters the most popular objects over all OIDs."""
_STEP = 1000
"""The nanoseconds that each event takes; arbitrary, because no storage is involved."""

Distribution = Callable[[random.Random], int]
"""A function that draws a non-negative integer."""


def distribution_of(text: str) -> Distribution:
    """Return the distribution that *text* describes.

    *text* is a number, ``uniform:LOW-HIGH``, ``geometric:MEAN`` or ``lognormal:MEDIAN,SIGMA``.
    ``SIGMA``, the standard deviation of the logarithm, is 1 if it is left out.

    :raises ValueError: if *text* does not describe a distribution
    """
    draw = _draw_of(text)
    return lambda chance: int(min(_LARGEST, max(0.0, draw(chance))) + 0.5)


def _draw_of(text: str) -> Callable[[random.Random], float]:
    name, colon, values = text.partition(":")
    if not colon:
        number = _positive(name)
        return lambda _: number
    if name == "uniform":
        low, high = map(_positive, values.split("-"))
        return lambda chance: chance.uniform(low, high)
    if name == "geometric":
        mean = _positive(values)
        return lambda chance: int(-math.log(1 - chance.random()) * (mean + 0.5))
    if name == "lognormal":
        median, _, sigma = values.partition(",")
        location, deviation = math.log(max(1.0, _positive(median))), _positive(sigma or "1")
        return lambda chance: chance.lognormvariate(location, deviation)
    raise ValueError(f"{name!r} is not uniform, geometric or lognormal")


def _positive(text: str) -> float:
    number = float(text)
    if not 0 <= number <= _LARGEST:
        raise ValueError(f"{text} is out of range")
    return number


def skew_of(text: str) -> float:
    """Return the exponent of Zipf's law: 0.99 for the text ``zipf:0.99``, and 0 for ``uniform``.

    :raises ValueError: if *text* is neither
    """
    if text == "uniform":
        return 0.0
    name, _, exponent = text.partition(":")
    if name != "zipf":
        raise ValueError(f"{name!r} is neither uniform nor zipf:EXPONENT")
    skew = math.nan
    with suppress(ValueError):
        skew = float(exponent or "0.99")
    if not 0 <= skew <= 4:  # noqa: PLR2004 - beyond 4, one object gets all
        raise ValueError(f"{exponent!r} is not a number from 0 to 4")
    return skew


@dataclass(frozen=True)
class Mixture:
    """The properties of a synthetic workload."""

    transactions: int = 10_000
    connections: int = 4
    objects: int = 10_000
    loads: Distribution = field(default_factory=lambda: distribution_of("geometric:20"))
    """Loads per transaction, not counting objects that are found in the pickle cache."""
    writes: float = 0.1
    """The fraction of the transactions that store anything."""
    stores: Distribution = field(default_factory=lambda: distribution_of("2"))
    """Stores per writing transaction."""
    new: float = 0.0
    """The fraction of stores that create an object."""
    counters: int = 0
    """The number of extra objects that resolve conflicts; each writing transaction stores one."""
    skew: float = 0.99
    """The exponent of Zipf's law for the popularity of objects; 0 if all are equally popular."""
    size: Distribution = field(default_factory=lambda: distribution_of("lognormal:300"))
    """Bytes per record."""
    rate: float = 100.0
    """The mean number of transactions a second; they begin at random instants."""
    seed: int = 0


PRESETS = {
    "catalogue": Mixture(
        loads=distribution_of("geometric:60"), writes=0.02, stores=distribution_of("geometric:10"),
        objects=50_000, skew=0.8, size=distribution_of("lognormal:900"),
    ),
    "editing": Mixture(
        loads=distribution_of("geometric:60"), writes=0.3, stores=distribution_of("geometric:40"),
        new=0.2, counters=5, objects=20_000, skew=0.7,
    ),
    "sessions": Mixture(
        loads=distribution_of("geometric:4"), writes=0.6, stores=distribution_of("1"), new=0.3,
        counters=1, objects=5_000, size=distribution_of("lognormal:400,0.5"),
    ),
    "jobs": Mixture(
        loads=distribution_of("uniform:5-30"), writes=1.0, stores=distribution_of("uniform:2-10"),
        objects=500, skew=0.5, connections=8,
    ),
}  # fmt: skip
"""Mixtures by name; each resembles one sort of application."""


def make(mixture: Mixture, path: Path) -> None:
    """Write a workload to a new file.

    :raises OSError: if the file exists or cannot be written
    """
    with path.open("xb") as file:
        facts = {"storage": MADE, "objects": mixture.objects, "seed": mixture.seed}
        file.write(header({"pid": 0, "time": BEGAN, "clock": 0, **facts}))
        for segments in _chunks(mixture):
            file.write(encode(segments))


def _chunks(mixture: Mixture) -> Iterator[list[Segment]]:
    maker = _Maker(mixture)
    for first in range(0, mixture.transactions, CHUNK):
        segments: dict[int, list[Any]] = {}
        for _ in range(min(CHUNK, mixture.transactions - first)):
            connection = maker.connection()
            segments.setdefault(connection, []).extend(maker.transaction(connection))
        yield list(segments.items())


class _Maker:
    """Generates the events of transactions in sequence."""

    def __init__(self, mixture: Mixture) -> None:
        self._mixture = mixture
        self._chance = random.Random(mixture.seed)  # noqa: S311
        self._free = [0] * mixture.connections
        """The instant at which each connection ended its latest transaction."""
        self._instant = 0
        self._sizes: dict[int, int] = {}
        self._serials: dict[int, int] = {}
        self._created = self._tid = 0

    def connection(self) -> int:
        """Return the number of the connection that has waited the longest."""
        return self._free.index(min(self._free)) + 1

    def transaction(self, connection: int) -> Iterator[Any]:
        """Return the next transaction's events, as one sequence of fields."""
        self._instant += int(self._chance.expovariate(self._mixture.rate) * 1e9)
        at = max(self._instant, self._free[connection - 1] + _STEP)
        for kind, oid, number, serial in self._calls():
            yield from (int(kind), _eight_bytes(oid), number, _eight_bytes(serial), at, at + _STEP)
            at += _STEP
        self._free[connection - 1] = at

    def _calls(self) -> Iterator[tuple[Kind, int, int, int]]:
        mixture, chance = self._mixture, self._chance
        yield Kind.BEGIN, 0, 0, 0
        is_writing = chance.random() < mixture.writes
        stores = mixture.stores(chance) if is_writing else 0
        new = sum(chance.random() < mixture.new for _ in range(stores))
        loaded = [self._object() for _ in range(max(mixture.loads(chance), stores - new))]
        counters = []
        if is_writing and mixture.counters:
            counters = [mixture.objects + 1 + chance.randrange(mixture.counters)]
        for oid in (*loaded, *counters):
            yield Kind.LOAD, oid, self._size(oid), self._serials.get(oid, 1)
        if is_writing:
            yield from self._commit(dict.fromkeys(loaded[: stores - new]), new, counters)
        yield Kind.END, 0, 0, 0

    def _commit(
        self, changed: dict[int, None], new: int, counters: list[int]
    ) -> Iterator[tuple[Kind, int, int, int]]:
        self._tid += 1
        tid = self._tid + 1
        yield Kind.TPC_BEGIN, 0, 0, 0
        for oid in changed:
            yield Kind.STORE, oid, self._size(oid), self._serials.get(oid, 1)
        for _ in range(new):
            self._created += 1
            oid = self._mixture.objects + self._mixture.counters + self._created
            yield Kind.NEW_OID, oid, 0, 0
            yield Kind.STORE, oid, self._size(oid), 0
        for oid in counters:
            yield Kind.STORE_RESOLVABLE, oid, self._size(oid), self._serials.get(oid, 1)
        self._serials |= dict.fromkeys((*changed, *counters), tid)
        yield Kind.VOTE, 0, 0, 0
        yield Kind.FINISH, 0, 0, tid

    def _object(self) -> int:
        """Draw an object by its popularity."""
        objects, skew = self._mixture.objects, self._mixture.skew
        part = self._chance.random()
        # This inverts the distribution function of a continuous variant of Zipf's law.
        if abs(1 - skew) < 1e-6:  # noqa: PLR2004 - the limit is a logarithm
            rank = int((objects + 1) ** part)
        else:
            power = 1 - skew
            rank = int((part * ((objects + 1) ** power - 1) + 1) ** (1 / power))
        return 1 + min(rank, objects) * _SCATTER % objects

    def _size(self, oid: int) -> int:
        if oid not in self._sizes:
            self._sizes[oid] = max(1, self._mixture.size(self._chance))
        return self._sizes[oid]


def _eight_bytes(number: int) -> bytes:
    return number.to_bytes(len(NONE), "big")
