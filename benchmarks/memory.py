"""The memory of a client, by the number of iterations of a value.

A client process measures one value of a benchmark that does nothing.  Its peak memory is what the
operating system reports when it has ended; a new process forks the client each time.  A client
times up to 65,536 iterations without a pause, and keeps the times meanwhile.  A value of 100,000
iterations therefore takes more memory than one of 10,000, but as much as any longer one.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.command import ROOT, environment
from benchmarks.line import Line, NotMeasured, at_most, info

ITERATIONS = (10_000, 100_000, 1_000_000)
FEWER = (1_000, 100_000, 200_000)
"""The numbers of iterations in a quick try."""
TRIES = 3
LIMIT = 2.0
"""Bytes per iteration: keeping its time takes at least 8, and peaks vary by a few 100 KiB."""


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the peaks, and their growth per iteration."""
    numbers = FEWER if quick else ITERATIONS
    tries = 1 if quick else TRIES
    peaks = {
        number: statistics.median(_peak_in_own_process(number) for _ in range(tries))
        for number in numbers
    }
    for number, peak in peaks.items():
        yield info(f"memory: peak, {number:,} iterations", peak / 2**20, "{:.2f} MiB")
    fewest, fewer, most = numbers
    for number in (fewest, fewer):
        growth = max(0.0, (peaks[most] - peaks[number]) / (most - number))
        yield at_most(f"memory: growth from {number:,} on", growth, LIMIT, "{:.2f} B/it.")


def _peak_in_own_process(iterations: int) -> int:
    command = [sys.executable, "-m", "benchmarks.memory", str(iterations)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment(), cwd=ROOT
    )
    if done.returncode:
        raise NotMeasured(done.stderr.strip().rpartition("\n")[2])
    return int(done.stdout)


def peak(iterations: int) -> int:
    """Measure one value in a client process; return its peak memory in bytes."""
    from benchmarks.nothing import crew_plan
    from zodbshootout.client.benchmarks.benchmark import Nothing
    from zodbshootout.model.specification import ClientKind

    with crew_plan(Nothing, ClientKind.PROCESS).started() as crew:
        crew.measure(iterations)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit


if __name__ == "__main__":
    print(peak(int(sys.argv[1])))  # noqa: T201
