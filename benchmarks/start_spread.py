"""The spread of the clients' starts: 20 processes that add, update and read 50 objects on SQLite.

The metadata of a run contain the seconds by which the last client was late for the start
(``start_spread_s``), and the longest wait for a processor after it (``start_delay_s``).  With more
processes than processors, that wait is part of what is measured.  Both figures are from the worst
start of a run; the medians over runs are shown.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.command import Done, shoot_out
from benchmarks.contenders import IMPORTS, sqlite
from benchmarks.line import Line, at_most, info

CLIENTS = 20
LONGEST = 1.0
"""The maximum spread in milliseconds."""


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield both medians."""
    effort = ("-p", "1", "-n", "2", "--min-time", "0.01") if quick else ()
    benchmarks = ("add", "steamin") if quick else ("add", "update", "cold", "steamin")
    clients = 4 if quick else CLIENTS
    done = shoot_out(
        IMPORTS + sqlite("sqlite"),
        *benchmarks, "-c", str(clients), "--object-counts", "50", *effort,
    )  # fmt: skip
    yield at_most("start_spread: median", _median(done, "start_spread_s"), LONGEST, "{:.3f} ms")
    yield info("start_spread: wait for a processor", _median(done, "start_delay_s"), "{:.3f} ms")


def _median(done: Done, key: str) -> float:
    """Return the median of all runs, in milliseconds."""
    seconds = [float(run.metadata[key]) for run in done.runs]
    return statistics.median(seconds) * 1e3
