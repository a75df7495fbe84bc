"""The resources of a long run over time: ``python -m benchmarks.soak MINUTES``.

The command measures the embedded default for MINUTES.  Every few seconds its memory, descriptors,
threads, living child processes and temporary files are counted.  For each of these numbers, the
slope of a straight line is printed, per hour, with its 95 % confidence interval.  The interval
assumes that the means of blocks of time are independent, unlike single numbers.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

import psutil
from scipy.stats import linregress, t

from benchmarks.command import environment
from benchmarks.line import NotMeasured

EVERY = 2.0
"""Seconds between two counts."""
WARM_UP = 0.1
"""The fraction of the time that is ignored, until everything has happened once."""
BLOCKS = 20
HOUR = 3600.0


@dataclass(frozen=True)
class Use:
    """The resources of the command at one moment."""

    memory_mib: float
    descriptors: float
    threads: float
    processes: float
    temporary_files: float


def main(arguments: Sequence[str]) -> int:
    """Run the command for the minutes in *arguments*; print the slopes."""
    minutes = float(arguments[0])
    seen = list(_watched(minutes))
    counted = [(at, use) for at, use in seen if at > WARM_UP * seen[-1][0]]
    print(f"{minutes:g} minutes, {len(counted)} looks")  # noqa: T201
    for field in fields(Use):
        values = [(at, getattr(use, field.name)) for at, use in counted]
        slope, within = _slope(_blocks(values))
        first = statistics.fmean(value for _, value in values)
        name = field.name.replace("_", " ")
        print(f"{name:<16} {first:10.1f}  {slope:+8.2f} ± {within:.2f} an hour")  # noqa: T201
    return 0


def _watched(minutes: float) -> Iterator[tuple[float, Use]]:
    """Run the command; yield its resources, with the seconds since its start."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        temporary = Path(name) / "tmp"
        temporary.mkdir()
        words = ("--precision", "0.01%", "--at-most", str(minutes), "-q", "-o", f"{name}/out.json")
        process = subprocess.Popen(
            [sys.executable, "-m", "zodbshootout", *words],
            env={**environment(), "TMPDIR": str(temporary)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        began = time.monotonic()
        try:
            while process.poll() is None:
                time.sleep(EVERY)
                with suppress(psutil.Error):  # the process has just ended
                    yield time.monotonic() - began, _use(psutil.Process(process.pid), temporary)
        finally:
            process.terminate()
        _, errors = process.communicate()
        if process.returncode:
            raise NotMeasured(errors.decode(errors="replace"))
        left = list(temporary.iterdir())
        if left:
            raise NotMeasured(f"it has left {left}")


def _use(process: psutil.Process, temporary: Path) -> Use:
    with process.oneshot():
        return Use(
            memory_mib=process.memory_info().rss / 2**20,
            descriptors=process.num_fds(),
            threads=process.num_threads(),
            processes=len(process.children(recursive=True)),
            # Unlike Path.rglob, os.walk skips directories that are removed meanwhile.
            temporary_files=sum(len(names) for _, _, names in os.walk(temporary)),
        )


def _blocks(values: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the means of blocks of values, because successive values are not independent."""
    size = max(1, len(values) // BLOCKS)
    parts = [values[start : start + size] for start in range(0, len(values), size)]
    return [
        (statistics.fmean(at for at, _ in part), statistics.fmean(value for _, value in part))
        for part in parts
    ]


def _slope(values: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the slope per hour, and half of the width of its 95 % interval."""
    regression = linregress([at for at, _ in values], [value for _, value in values])
    return HOUR * regression.slope, HOUR * regression.stderr * float(t.ppf(0.975, len(values) - 2))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
