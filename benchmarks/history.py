"""A history of zodbshootout itself: ``python -m benchmarks history DIR``, in the checkout.

It adds a point, for which three versions of the source take turns, in shuffled order: the current
one, the previous point's and the anchor's (the first commit, or ``--anchor COMMIT``).  Each runs
the same commands in separate processes.  The figures are processor seconds of whole commands, which
include the engine, its imports and its reports, and the time on the clock of iterations that do not
use a disk.  ``zodbshootout history DIR`` prints the history.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import random
import re
import secrets
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyperf

from benchmarks.command import ROOT
from zodbshootout.cli.point import verdicts_on
from zodbshootout.errors import UserError
from zodbshootout.model.specification import BenchmarkWords, CrewShape, Parameters
from zodbshootout.results.anchor import Anchor, read_anchor, write_anchor
from zodbshootout.results.cell import Cell
from zodbshootout.results.files import read_results
from zodbshootout.results.history import (
    ANCHOR,
    CANDIDATE,
    FORMER,
    PREVIOUS,
    TWIN,
    Package,
    Point,
    by_machine,
    facts_of_runs,
    machine_facts,
    named_now,
    point_cells,
    read_points,
    with_aliases,
    write_point,
)
from zodbshootout.results.result import CellResult
from zodbshootout.versions import git

PACKAGE = "zodbshootout"
ROUNDS = 10
MAPPING = "<zodb memory>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"
RECORDED = ROOT / "docs" / "results" / "data" / "tutorial.json.gz"
OUTPUT = "out.json"
COMMANDS: Mapping[str, Sequence[str]] = {
    "help": ["--help"],
    "run": ["memory.conf", "tpc", "hot", "--threads", "-c", "2", "-p", "1", "-n", "5", "-l", "20",
            "--object-counts", "100", "-q", "-o", OUTPUT],
    "show": ["show", str(RECORDED)],
    "report": ["report", str(RECORDED), "-o", "page.md"],
}  # fmt: skip
"""The commands by the names of their cells; the first figures of ``run`` are also cells."""


@dataclass
class Side:
    """A version of the source, and its measurements."""

    source: Path
    results: dict[str, CellResult] = field(default_factory=dict)

    def add(self, name: str, words: Sequence[str], seconds: float, round_name: str) -> None:
        """Add the figure of a round to a cell."""
        code = hashlib.sha256(" ".join(words).replace(str(ROOT), "").encode()).hexdigest()[:12]
        metadata = {
            "name": "cell", "round": round_name, "slices": "0", "benchmark_code": code, "loops": 1,
            "python_version": ".".join(map(str, sys.version_info[:3])),
            "python_implementation": sys.implementation.name,
        }  # fmt: skip
        run = pyperf.Run([seconds], metadata=metadata, collect_metadata=False)
        cell = Cell(name, PACKAGE, Parameters(CrewShape(1), objects=0), BenchmarkWords(name))
        result = self.results.get(name, CellResult(cell))
        self.results[name] = result.with_run(pyperf.Benchmark([run]))


def main(arguments: Sequence[str]) -> int:
    """Add a point to a history of this package; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks history", description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--anchor", metavar="COMMIT", help="compare with that commit from now on")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args(arguments)
    try:
        point = add_point(chosen.directory, chosen.anchor, chosen.rounds)
    except UserError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.status
    for line in verdicts_on(point, chosen.directory):
        print(line)  # noqa: T201
    return 0


def add_point(directory: Path, anchor: str | None, rounds: int) -> Point:
    """Measure this source, the previous point's commit and the anchor; write and return a point.

    :raises UserError: if a commit is missing, or a command fails
    """
    machine, known = machine_facts(), read_anchor(directory)
    points = by_machine(read_points(directory)).get(str(machine["name"]), [])
    changes = git(ROOT, "status", "--porcelain", "--untracked-files=no", "--", "src")
    candidate = _package(_commit("HEAD"), modified=bool(changes))
    named = known.requirements[0] if known is not None else candidate.commit
    chosen = named if anchor is None else _commit(anchor)
    packages = {CANDIDATE: candidate, ANCHOR: _package(chosen)}
    if chosen != named:
        packages[FORMER] = _package(named)
    absent = {}
    if points:
        previous = points[-1].packages[CANDIDATE][PACKAGE]
        packages[PREVIOUS] = previous
        if previous.modified:
            absent[PREVIOUS] = "its source had uncommitted changes"
    with tempfile.TemporaryDirectory() as name:
        sides = dict(_sides(packages, absent, Path(name)))
        for number in range(rounds):
            _measure_round(sides, number)
    name, date = named_now(machine)
    roles = {role: list(side.results.values()) for role, side in sides.items()}
    point = Point(
        name, date, machine,
        packages={role: {PACKAGE: package} for role, package in packages.items()},
        cells=point_cells(roles),
        previous=points[-1].name if points else "",
        absent=absent,
        **facts_of_runs(roles[CANDIDATE]),
    )  # fmt: skip
    point = with_aliases(point)
    write_point(point, directory)
    if known is None or chosen != named:
        write_anchor(Anchor(anchor or "", [chosen], name), directory)
    return point


def _commit(name: str) -> str:
    commit = git(ROOT, "rev-parse", "--verify", f"{name}^{{commit}}")
    if not commit:
        raise UserError(f"there is no commit {name} in this checkout")
    return commit


def _package(commit: str, *, modified: bool = False) -> Package:
    """Return the package at a commit, with its version there."""
    written = git(ROOT, "show", f"{commit}:pyproject.toml") or ""
    version = re.search('^version = "(.+)"$', written, re.MULTILINE)
    return Package(version[1] if version else "", commit, modified=modified)


def _sides(
    packages: Mapping[str, Package], absent: Mapping[str, str], place: Path
) -> Iterator[tuple[str, Side]]:
    """Yield the versions to measure by role; versions with the same package are measured once."""
    yield CANDIDATE, Side(ROOT / "src")
    seen = [packages[CANDIDATE]]
    for role in (ANCHOR, FORMER, PREVIOUS):
        if role not in packages or role in absent:
            continue
        if role == ANCHOR or packages[role] not in seen:
            source = _source_of(packages[role].commit, place / role)
            yield role, Side(source)
            if role == ANCHOR:
                yield TWIN, Side(_source_of(packages[role].commit, place / TWIN))
        seen.append(packages[role])


def _source_of(commit: str, place: Path) -> Path:
    """Write the source of a commit below a directory; return the location of the package."""
    command = ["git", "-C", str(ROOT), "archive", commit, "src"]
    done = subprocess.run(command, check=False, capture_output=True)
    if done.returncode:
        raise UserError(f"commit {commit} cannot be read: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        # Python 3.11.2, which is in Debian 12, has no filters.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(place)  # noqa: S202 - git has made it
    return place / "src"


def _measure_round(sides: Mapping[str, Side], number: int) -> None:
    """Run each command once with each version, in shuffled order."""
    chance = random.Random(number)  # noqa: S311
    run = secrets.token_hex(4)
    for name, words in COMMANDS.items():
        for role in chance.sample(sorted(sides), len(sides)):
            side = sides[role]
            with tempfile.TemporaryDirectory() as directory:
                place = Path(directory)
                (place / "memory.conf").write_text(MAPPING, encoding="utf-8")
                seconds = _processor_seconds(side.source, words, place)
                side.add(name, words, seconds, f"{run}-{number}")
                if name == "run":
                    for result in read_results(place / OUTPUT):
                        mean = result.mean
                        side.add(result.cell.benchmark, words, mean, f"{run}-{number}")


def _processor_seconds(source: Path, words: Sequence[str], place: Path) -> float:
    """Run a command; return the processor time of its processes, in seconds.

    :raises UserError: if it fails
    """
    process = subprocess.Popen(
        [sys.executable, "-m", PACKAGE, *words], cwd=place, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(source)},
    )  # fmt: skip
    assert process.stderr is not None
    errors = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        last = "".join(errors.strip().splitlines()[-1:])
        raise UserError(f"{PACKAGE} {' '.join(words)} ended with {process.returncode}: {last}")
    return usage.ru_utime + usage.ru_stime
