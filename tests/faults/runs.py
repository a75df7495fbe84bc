"""Runs in which something goes wrong with one contender, and what has to come of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyperf

from tests.integration.command import QUICK, Done, left_behind, run

BUSY = (*QUICK, "-l", "8")
DUE = 14
"""The commit of an opened storage that goes wrong: by then what is read is written, and ``add`` of
as many iterations as ``BUSY`` says is in the middle of its values."""
GOOD = "<zodb good>\n<filestorage>\npath $scratch/good.fs\n</filestorage>\n</zodb>\n"


def faulty(name: str, fault: str, storage: str = "", **keys: Any) -> str:
    """Return a contender of which something goes wrong, by default in the middle of ``add``.

    Its *storage* is a FileStorage unless told otherwise.
    """
    keys = {"benchmark_commit": DUE, **keys}
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


def outcomes(place: Path) -> dict[str, tuple[str, str]]:
    """Return the state and the reason of each cell."""
    lines = (place / "a.cells.jsonl").read_text().splitlines()
    return {
        f"{each['contender']} {each['benchmark']}": (each["state"], each["reason"])
        for each in map(json.loads, lines)
    }


def runs_of(place: Path) -> dict[str, int]:
    """Return how many runs pyperf finds of each cell."""
    if not (place / "a.json").exists():
        return {}
    suite = pyperf.BenchmarkSuite.load(str(place / "a.json"))
    names = {each.get_name(): len(each.get_runs()) for each in suite}
    return {" ".join(name.replace(":", "").split()[:2]): count for name, count in names.items()}


def check_failed(
    done: Done, place: Path, *causes: str, failed: tuple[str, ...] = ("bad add",)
) -> None:
    """Check that these cells have failed with a cause, and that all others are measured."""
    assert done.status == 3, done.out + done.err
    found = outcomes(place)
    for name in failed:
        state, reason = found.pop(name)
        assert state == "failed"
        assert all(cause in reason for cause in causes), reason
        assert "\n" not in reason
        assert reason in done.out
    assert {state for state, _ in found.values()} == {"measured"}
    assert runs_of(place).keys() >= found.keys()
    assert "Traceback" not in done.out + done.err
    assert left_behind(place) == []
