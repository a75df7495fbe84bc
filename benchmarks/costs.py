"""Costs of equal contenders.

ZEO, RelStorage on SQLite and RelStorage on PostgreSQL are each measured twice, in one file, ten
times.  No cost of a contender may be called different from that of its twin.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.command import Done, shoot_out
from benchmarks.contenders import IMPORTS, POSTGRESQL, POSTGRESQL_SERVER, sqlite, zeo, zeo_server
from benchmarks.line import Line, at_most, info
from benchmarks.verdicts import called_different, compared
from zodbshootout.model.quantities import Shown, quantities

TIMES = 10
TWINS = (("zeo", "zeo_twin"), ("sqlite", "sqlite_twin"), ("postgresql", "postgresql_twin"))
EFFORT = ("add", "update", "cold", "-c", "1", "--object-counts", "100", "-p", "5", "-n", "4")
CONFIGURATION = "".join(
    (
        IMPORTS,
        zeo_server("one"), zeo_server("other"), zeo("zeo", "one"), zeo("zeo_twin", "other"),
        sqlite("sqlite"), sqlite("sqlite_twin"),
        POSTGRESQL_SERVER.replace("database zodbshootout", "database one\n    database other"),
        POSTGRESQL.replace("dbname='zodbshootout'", "dbname='one'"),
        POSTGRESQL.replace("dbname='zodbshootout'", "dbname='other'").replace(
            "<zodb postgresql>", "<zodb postgresql_twin>"
        ),
    )
)  # fmt: skip


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield, for each time, the number of costs that are called different."""
    for number in range(1 if quick else TIMES):
        done = shoot_out(CONFIGURATION, *EFFORT)
        different = list(_different(done))
        yield info(f"costs: A/A {number + 1}, seconds", done.wall, "{:.0f}")
        name = f"costs: A/A {number + 1}, called different"
        yield at_most(" ".join([name, *different]), len(different), 0, "{:.0f}")


def _different(done: Done) -> Iterator[str]:
    """Yield the contender and the name of each cost in which it differs from its twin."""
    for names in TWINS:
        for cost in quantities(Shown.COSTS):
            if called_different(compared(done, names, cost)):
                yield f"{names[0]}:{cost.name}"
