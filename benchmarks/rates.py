"""Iterations at a rate: how many the harness can send, and whether latencies are correct.

First, the rate of empty iterations with 1, 4 and 16 clients, and how late they begin at half of
that rate.

Then a FileStorage that sleeps for 10 ms in each vote, behind ZEO, with 16 processes at 40 a second:
the mean latency is the response time of a single client plus the wait in the queue M/D/1, whose
service time is the inverse of the same clients' throughput.

Two equal contenders at a rate, ten times: neither the median nor the 99th percentile may be called
different.  Finally, for each contender of the sample called "sample", the highest rate within a
limit, and ten runs each at 0.9 and 1.1 times that rate.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.command import shoot_out
from benchmarks.contenders import zeo
from benchmarks.line import Line, at_least, at_most, between, info
from benchmarks.nothing import crew_plan
from benchmarks.verdicts import compared
from zodbshootout.client.benchmarks.benchmark import Nothing
from zodbshootout.config.sample_files import samples
from zodbshootout.model.latencies import NANOSECONDS
from zodbshootout.model.quantities import P99
from zodbshootout.model.specification import ClientKind
from zodbshootout.results.figures import Figure, time_of
from zodbshootout.results.ratios import Verdict
from zodbshootout.results.result import CellResult
from zodbshootout.workers.histograms import histogram

CLIENTS = (1, 4, 16)
TRIES = 5
ARRIVALS = 4000
RATE = 40
TOLERANCE = 0.15
TIMES = 10
SHARE = 0.9
"""The minimum share of runs that keep the limit below the highest rate, or break it above."""
LIMIT = 0.1
"""The limit of the 99th percentile of latencies, in seconds."""
TWINS = "".join(
    f"<zodb {name}>\n<filestorage>\npath $scratch/{name}.fs\n</filestorage>\n</zodb>\n"
    for name in ("first", "second")
)


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield rates of empty iterations, then latencies, verdicts and rates within a limit."""
    for unit in (ClientKind.PROCESS, ClientKind.THREAD):
        for clients in CLIENTS:
            yield from _sent(clients, unit, quick=quick)
    yield from _queue(quick=quick)
    yield from _alike(quick=quick)
    yield from _limit(quick=quick)


def _sent(clients: int, unit: ClientKind, *, quick: bool) -> Iterator[Line]:
    with crew_plan(Nothing, unit, clients).started() as crew:
        highest = statistics.median(crew.sendable_rate() for _ in range(TRIES))
        arrivals = 100 if quick else ARRIVALS
        sample = crew.measure(arrivals, 0, highest / 2)
    yield info(f"rates: {clients} {unit.plural}, empty", highest, "{:,.0f} /s")
    assert sample.lags is not None
    lags = histogram(sample.lags)
    for percentile in (50, 99):
        lag = lags.get_value_at_percentile(percentile) / NANOSECONDS
        yield info(f"  p{percentile} of the lag at half of it", 1e6 * lag, "{:,.0f} us")


def _queue(*, quick: bool) -> Iterator[Line]:
    effort = ("-p", "1") if quick else ("-p", "5")
    words = ("store", "--object-counts", "1")
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        configuration = _limited(Path(name))
        alone = _mean(shoot_out(configuration, *words, "-c", "1", *effort).results[0])
        together = _mean(shoot_out(configuration, *words, "-c", "16", *effort).results[0]) / 16
        paced = ("-c", "16", "--rate", str(RATE), *effort)
        (result,) = shoot_out(configuration, *words, *paced).results
    load = RATE * together
    expected = alone + load * together / (2 * (1 - load))
    yield info("rates: service time, ZEO with 10 ms", 1e3 * together, "{:.2f} ms")
    yield info("rates: response time of one client", 1e3 * alone, "{:.2f} ms")
    yield info("rates: mean latency by the formula", 1e3 * expected, "{:.2f} ms")
    yield between(
        f"rates: mean latency at {RATE}/s, of that", _mean(result) / expected,
        1 - TOLERANCE, 1 + TOLERANCE, "{:.2f}",
    )  # fmt: skip


def _mean(result: CellResult) -> float:
    return time_of(result).value


def _limited(directory: Path) -> str:
    return f"""
%import benchmarks.limited
<zeoserver main>
    <limitedstorage>
        path {directory}/limited.fs
        journal {directory}/journal
    </limitedstorage>
</zeoserver>
{zeo("limited", "main")}
"""


def _alike(*, quick: bool) -> Iterator[Line]:
    effort = ("-p", "3") if quick else ("--at-most", "1.5")
    different = changes = 0
    for number in range(1 if quick else TIMES):
        seed = ("--seed", str(number))
        done = shoot_out(
            TWINS,
            "update",
            "-c",
            "2",
            "--threads",
            "--object-counts",
            "10",
            "--rate",
            "300",
            *seed,
            *effort,
        )
        compared_changes = compared(done, ("first", "second"))
        changes += len(compared_changes)
        different += sum(
            change.verdict in {Verdict.FASTER, Verdict.SLOWER} for change in compared_changes
        )
    yield info("rates: A/A, changes of p50 and p99", changes, "{:.0f}")
    yield at_most("rates: A/A, called different", different, 0, "{:.0f}")


def _limit(*, quick: bool) -> Iterator[Line]:
    configuration = samples()["sample"].read_text(encoding="utf-8")
    words = ("update", "-c", "8", "--object-counts", "10")
    limit = ("--latency-limit", f"p99={1000 * LIMIT:g}ms", *(("-p", "1") if quick else ()))
    for search in shoot_out(configuration, *words, *limit).results:
        name = search.cell.contender
        highest = search.cell.parameters.crew.size / time_of(search).value
        yield info(f"rates: {name}, p99 in {1000 * LIMIT:g} ms", highest, "{:.1f} /s")
        rates = ("--rate", f"{0.9 * highest:.3f},{1.1 * highest:.3f}")
        effort = ("-p", "1", "-n", "1") if quick else ("-p", str(TIMES), "-n", "5")
        done = shoot_out(configuration, *words, "--only", name, *rates, *effort)
        below, above = map(_within, sorted(done.results, key=_rate))
        yield at_least("  0.9 of it holds it", below, SHARE, "{:.0%}")
        yield at_least("  1.1 of it breaks it", 1 - above, SHARE, "{:.0%}")


def _rate(result: CellResult) -> float:
    return result.cell.parameters.rate


def _within(result: CellResult) -> float:
    """Return the share of runs that keep up with a 99th percentile within the limit."""
    runs = [replace(result, runs=(run,)) for run in result.runs]
    held = [run.keeps_up and Figure(run, P99).value <= LIMIT for run in runs]
    return held.count(True) / len(held)
