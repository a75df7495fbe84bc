"""The share on the clock of a small run.

The command measures add, update, cold and prefetch_cold of 100 objects with two clients on
PostgreSQL, SQLite and ZEO, in two runs of three values each.  Time is on the clock from the start
of a slice until the last client has done its counted iterations; the time of servers, interpreters,
databases and checks is not.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.command import Done, shoot_out
from benchmarks.contenders import IMPORTS, POSTGRESQL, POSTGRESQL_SERVER, sqlite, zeo, zeo_server
from benchmarks.line import Line, at_least, info

SERVERS = POSTGRESQL_SERVER + zeo_server("main")
CELLS = 12
BENCHMARKS = ("add", "update", "cold", "prefetch_cold")
OPTIONS = ("-c", "2", "--object-counts", "100")
EFFORT = ("-p", "2", "-n", "3")
QUICK = ("-p", "1", "-n", "1")
SHARE = 0.50


def contenders(directory: str = "$scratch") -> str:
    """Return the sections of the contenders, with SQLite's files in *directory*."""
    return POSTGRESQL + sqlite("sqlite", directory) + zeo("zeo", "main")


def effort(*, quick: bool) -> tuple[str, ...]:
    """Return the options for the numbers of runs and values."""
    return QUICK if quick else EFFORT


@functools.cache
def small_run(*, quick: bool) -> Done:
    """Measure the small run, only once per process; return it."""
    return shoot_out(IMPORTS + SERVERS + contenders(), *BENCHMARKS, *OPTIONS, *effort(quick=quick))


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the figures of one run of the command."""
    done = small_run(quick=quick)
    yield at_least("share: on the clock", done.on_clock / done.wall, SHARE, "{:.0%}")
    yield info("share: by value x loops", done.slice_seconds / done.wall, "{:.0%}")
    yield info("share: wall time per cell", done.wall / len(done.results), "{:.2f} s")
