"""Runs in which something goes wrong with some contenders, and what they have to leave."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyperf

from tests.integration.command import QUICK, Done, left_behind, run

BUSY = (*QUICK, "-l", "8")
FAULTY_COMMIT = 14
"""The commit of an opened storage that goes wrong: by then what is read is written, and ``add`` of
as many iterations as ``BUSY`` says is in the middle of its values."""
GOOD = "<zodb good>\n<filestorage>\npath $scratch/good.fs\n</filestorage>\n</zodb>\n"


def faulty(name: str, fault: str, storage: str = "", **keys: Any) -> str:
    """Return a contender in which something goes wrong, by default in the middle of ``add``.

    Its *storage* is a FileStorage by default.
    """
    keys = {"benchmark_commit": FAULTY_COMMIT, **keys}
    lines = "".join(f"{key.replace('_', '-')} {value}\n" for key, value in keys.items())
    storage = storage or f"<filestorage>\npath $scratch/{name}.fs\n</filestorage>\n"
    return f"<zodb {name}>\n<faulty>\nfault {fault}\n{lines}{storage}</faulty>\n</zodb>\n"


def measure(
    place: Path,
    text: str,
    *words: str,
    imports: str = "%import faulty\n",
    output: str = "a.json",
) -> Done:
    """Measure ``add`` and ``cold`` of a good contender and of others."""
    (place / "x.conf").write_text(imports + GOOD + text)
    return run(
        place, "x.conf", "add", "cold", "-c", "1", *BUSY, "--timeout", "8", "-o", output, *words
    )


@dataclass(frozen=True)
class Wreck:
    """A run that has ended, with what several faulty contenders have left of it."""

    done: Done
    outcomes: dict[str, tuple[str, str]]
    """The state and the reason of each cell."""
    runs: dict[str, int]
    """The number of runs that pyperf finds of each cell."""
    left_behind: list[str]

    def failures(self, contender: str) -> dict[str, str]:
        """Return why cells of a contender have failed, by their benchmarks."""
        return {
            name.split()[1]: reason
            for name, (state, reason) in self.outcomes.items()
            if name.split()[0] == contender and state == "failed"
        }

    def check_failed(
        self, contender: str, *causes: str, benchmarks: Collection[str] | None = None
    ) -> None:
        """Check that cells of a contender have failed with a cause, which is printed.

        They are those of the *benchmarks*; without these, at least one.
        """
        failures = self.failures(contender)
        assert failures.keys() == (failures.keys() if benchmarks is None else set(benchmarks))
        assert failures
        for reason in failures.values():
            assert all(cause in reason for cause in causes), reason
            assert "\n" not in reason
            assert reason in self.done.out

    def check_others_are_measured(self, *faulty: str) -> None:
        """Check that all *faulty* contenders have failed, and that all else is as in a good run."""
        assert self.done.status == (3 if faulty else 0), self.done.out + self.done.err
        failed = {name for name, (state, _) in self.outcomes.items() if state != "measured"}
        assert {name.split()[0] for name in failed} == set(faulty)
        assert self.runs.keys() >= self.outcomes.keys() - failed
        assert "Traceback" not in self.done.out + self.done.err
        assert self.left_behind == []


def wreck(place: Path, text: str, *words: str, imports: str = "%import faulty\n") -> Wreck:
    """Measure ``add`` and ``cold`` of a good contender and of others that share one run."""
    done = measure(place, text, *words, imports=imports)
    assert (place / "a.cells.jsonl").exists(), done.out + done.err
    return Wreck(done, outcomes(place), runs_of(place), left_behind(place))


def outcomes(place: Path) -> dict[str, tuple[str, str]]:
    """Return the state and the reason of each cell."""
    lines = (place / "a.cells.jsonl").read_text().splitlines()
    return {
        f"{cell['contender']} {cell['benchmark']}": (cell["state"], cell["reason"])
        for cell in map(json.loads, lines)
    }


def runs_of(place: Path) -> dict[str, int]:
    """Return how many runs pyperf finds of each cell."""
    if not (place / "a.json").exists():
        return {}
    suite = pyperf.BenchmarkSuite.load(str(place / "a.json"))
    names = {benchmark.get_name(): len(benchmark.get_runs()) for benchmark in suite}
    return {" ".join(name.replace(":", "").split()[:2]): count for name, count in names.items()}


def check_failed(
    done: Done, place: Path, *causes: str, failed: tuple[str, ...] = ("bad add",)
) -> None:
    """Check that these cells have failed with a cause, and that all others are measured."""
    assert done.status == 3, done.out + done.err
    remaining = outcomes(place)
    for name in failed:
        state, reason = remaining.pop(name)
        assert state == "failed"
        assert all(cause in reason for cause in causes), reason
        assert "\n" not in reason
        assert reason in done.out
    assert {state for state, _ in remaining.values()} == {"measured"}
    assert runs_of(place).keys() >= remaining.keys()
    assert "Traceback" not in done.out + done.err
    assert left_behind(place) == []
