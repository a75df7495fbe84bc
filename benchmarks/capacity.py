"""The figures in the table for a storage that commits at most 100 times a second.

The storage, :mod:`benchmarks.limited`, is a FileStorage that sleeps for 10 ms under the commit lock
and notes when each commit ends.  The command measures add, update and store of one object with 2, 8
and 32 clients: as threads and as greenlets that share its DB, and as processes behind a private ZEO
server.  Clients do nothing but commit, so the figure in the table, in objects per second, is the
number of commits per second, and should never exceed the storage's own count.

That count comes from the storage's notes, for the same slices: from the start of a slice until the
last client has done its counted iterations.  The metadata contain the start of each slice and the
total length of all slices of a run, which is divided among them in proportion to value x loops.  No
commit is in progress at the start of a slice; of a commit in progress at its end, the completed
part counts.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.command import Run, runs_of, shoot_out
from benchmarks.contenders import zeo
from benchmarks.limited import CAPACITY, commits
from benchmarks.line import Line, at_most, info
from zodbshootout.model.quantities import THROUGHPUT
from zodbshootout.results.figures import Figure

MOST = 1.01 * CAPACITY
DISTANCE = 0.02
KINDS = {"threads": ("--threads",), "greenlets": ("--gevent",), "processes": ()}
BENCHMARKS = ("add", "update", "store")


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the figure and its distance for each benchmark, number and kind of clients."""
    clients = "2" if quick else "2,8,32"
    effort = ("-p", "1", "-n", "4") if quick else ("-p", "2")
    highest, farthest = 0.0, 0.0
    for kind, words in KINDS.items():
        options = (*words, "-c", clients, "--object-counts", "1", *effort)
        with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
            journal = Path(name) / "journal"
            done = shoot_out(_configuration(kind, journal), *BENCHMARKS, *options)
            times = commits(journal)
        for result in done.results:
            shown, own = Figure(result, THROUGHPUT).value, _own_rate(runs_of(result), times)
            distance = abs(shown / own - 1)
            cell = result.cell
            label = f"capacity: {cell.benchmark}, {cell.parameters.crew.size} {kind}"
            yield at_most(label, shown, MOST, "{:.1f} /s")
            yield at_most("  distance from its own count", distance, DISTANCE, "{:.1%}")
            highest, farthest = max(highest, shown), max(farthest, distance)
    yield info("capacity: highest", highest, "{:.1f} /s")
    yield info("capacity: greatest distance", farthest, "{:.1%}")


def _configuration(kind: str, journal: Path) -> str:
    storage = f"""
    <limitedstorage>
        path $scratch/limited.fs
        journal {journal}
    </limitedstorage>
"""
    if kind == "processes":
        served = f"<zeoserver main>{storage}</zeoserver>{zeo('limited', 'main')}"
    else:
        served = f"<zodb limited>\ncache-size 5000{storage}</zodb>\n"
    return f"%import benchmarks.limited\n{served}"


def _own_rate(runs: Sequence[Run], times: Sequence[float]) -> float:
    """Return the commits a second that the storage counted in the slices of *runs*."""
    counted = sum(commits_in(run, times) for run in runs)
    return counted / sum(run.on_clock for run in runs)


def commits_in(run: Run, times: Sequence[float]) -> float:
    """Return how many of the commits at *times* were in the slices of a run."""
    lengths = run.slice_seconds
    stretched = run.on_clock / sum(lengths)
    return sum(
        _done_by(start + length * stretched, times) - bisect_right(times, start)
        for start, length in zip(run.starts, lengths, strict=True)
    )


def _done_by(instant: float, times: Sequence[float]) -> float:
    """Return the number of commits until *instant*, including the part of one in progress."""
    index = bisect_right(times, instant)
    if not 0 < index < len(times):
        return index
    before, after = times[index - 1], times[index]
    return index + (instant - before) / (after - before)
