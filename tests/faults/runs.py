"""Run faulty contenders, and check the results of such runs."""

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
"""The commit with the fault, counted from the opening of a storage: by then the objects to read are
written, and ``add`` with the iterations of ``BUSY`` is in the middle of its values."""
GOOD = "<zodb good>\n<filestorage>\npath $scratch/good.fs\n</filestorage>\n</zodb>\n"


def faulty(name: str, fault: str, storage: str = "", **keys: Any) -> str:
    """Return a contender with a fault, which by default occurs in the middle of ``add``.

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
class FaultyRun:
    """A finished run of several faulty contenders."""

    done: Done
    outcomes: dict[str, tuple[str, str]]
    """The state and the reason of each cell."""
    runs: dict[str, int]
    """The number of runs of each cell, as pyperf counts them."""
    left_behind: list[str]

    def failures(self, contender: str) -> dict[str, str]:
        """Return the reasons why cells of a contender have failed, by benchmark."""
        return {
            name.split()[1]: reason
            for name, (state, reason) in self.outcomes.items()
            if name.split()[0] == contender and state == "failed"
        }

    def check_failed(
        self, contender: str, *causes: str, benchmarks: Collection[str] | None = None
    ) -> None:
        """Check that cells of a contender have failed for *causes*, which are printed.

        These are the cells of *benchmarks*, or at least one cell without that argument.
        """
        failures = self.failures(contender)
        assert failures.keys() == (failures.keys() if benchmarks is None else set(benchmarks))
        assert failures
        for reason in failures.values():
            assert all(cause in reason for cause in causes), reason
            assert "\n" not in reason
            assert reason in self.done.out

    def check_others_are_measured(self, *faulty: str) -> None:
        """Check that exactly the *faulty* contenders failed, and that all else is clean."""
        assert self.done.status == (3 if faulty else 0), self.done.out + self.done.err
        failed = {name for name, (state, _) in self.outcomes.items() if state != "measured"}
        assert {name.split()[0] for name in failed} == set(faulty)
        assert self.runs.keys() >= self.outcomes.keys() - failed
        assert "Traceback" not in self.done.out + self.done.err
        assert self.left_behind == []


def measure_together(
    place: Path, text: str, *words: str, imports: str = "%import faulty\n"
) -> FaultyRun:
    """Measure ``add`` and ``cold`` of a good contender and of others that share one run."""
    done = measure(place, text, *words, imports=imports)
    assert (place / "a.cells.jsonl").exists(), done.out + done.err
    return FaultyRun(done, outcomes(place), runs_of(place), left_behind(place))


def outcomes(place: Path) -> dict[str, tuple[str, str]]:
    """Return the state and the reason of each cell."""
    lines = (place / "a.cells.jsonl").read_text().splitlines()
    return {
        f"{cell['contender']} {cell['benchmark']}": (cell["state"], cell["reason"])
        for cell in map(json.loads, lines)
    }


def runs_of(place: Path) -> dict[str, int]:
    """Return the number of runs of each cell, as pyperf counts them."""
    if not (place / "a.json").exists():
        return {}
    suite = pyperf.BenchmarkSuite.load(str(place / "a.json"))
    names = {benchmark.get_name(): len(benchmark.get_runs()) for benchmark in suite}
    return {" ".join(name.replace(":", "").split()[:2]): count for name, count in names.items()}


def check_failed(
    done: Done, place: Path, *causes: str, failed: tuple[str, ...] = ("bad add",)
) -> None:
    """Check that the *failed* cells give the causes, and that all others are measured."""
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
