"""The command ``python -m benchmarks.published [NAME ...]``, in the directory of the checkout.

It makes the runs whose results are not yet in ``docs/results/data``, which takes four or five hours
for all, and then the pages of the documentation that show them.  If it is interrupted, the same
command continues from there.  To repeat a measurement, remove its file from ``docs/results/data``.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import ROOT
from benchmarks.published.experiments import EXPERIMENTS, Experiment, Run
from benchmarks.published.pages import ENDING, make_pages
from zodbshootout.results.files import ResultFiles

RESULTS = ROOT / "docs" / "results"
QUICK = {
    "--at-most": ("-p", "1", "-n", "1", "--min-time", "0.001"),
    "--object-counts": ("--object-counts", "10"),
    "--min-objects": ("--min-objects", "100", "-p", "1"),
    "--for": ("--for", "30s"),
}
"""The words that replace these options and their values in a trial."""
KEPT = {0, 3}
"""The exit statuses of a completed run: 3 if some cells failed."""


def main(arguments: Sequence[str]) -> int:
    """Measure the named experiments, and make their pages; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published", description=__doc__)
    names = [experiment.name for experiment in EXPERIMENTS]
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"of {', '.join(names)}")
    parser.add_argument("--pages", action="store_true", help="measure nothing, only make the pages")
    parser.add_argument(
        "--quick", metavar="DIRECTORY", type=Path,
        help="try each run briefly, and write to DIRECTORY; proves nothing",
    )  # fmt: skip
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in names]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(names)}")
    experiments = [
        experiment for experiment in EXPERIMENTS if experiment.name in (chosen.names or names)
    ]
    results = chosen.quick or RESULTS
    if not chosen.pages:
        for experiment in experiments:
            measure(experiment, results, quick=chosen.quick is not None)
    for page in make_pages(experiments, results / "data", results / "made"):
        print(page)  # noqa: T201
    return 0


def measure(experiment: Experiment, results: Path, *, quick: bool = False) -> None:
    """Make the runs without a file in ``data``; the file of a run in progress is in ``running``."""
    for run in experiment.runs:
        done = results / "data" / f"{run.name}{ENDING}"
        if not done.exists():
            running = results / "running" / done.name
            running.parent.mkdir(parents=True, exist_ok=True)
            _shoot_out(run, running, quick=quick)
            done.parent.mkdir(parents=True, exist_ok=True)
            files = ResultFiles(running)
            for path in (files.cells, running):
                shutil.move(path, done.parent / path.name)
            shutil.rmtree(files.directory)


def _shoot_out(run: Run, path: Path, *, quick: bool) -> None:
    words = shlex.split(run.words)
    for option, instead in QUICK.items() if quick else ():
        if option in words:
            place = words.index(option)
            words[place : place + 2] = instead
    option = "--resume" if path.exists() else "-o"
    command = ["-m", "zodbshootout", *run.configuration.split(), *words, option, str(path)]
    modules = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])  # faulty
    status = subprocess.run(
        [sys.executable, *command], check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": modules}
    ).returncode
    if status not in KEPT:
        raise SystemExit(f"{run.name}: exit status {status}; the same command continues from here")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
