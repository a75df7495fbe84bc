"""Whatever is removed from new results, broken or damaged, the gate does not pass them for it."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.files import run, written
from tests.cli.test_gate import BENCHMARKS, BREAKS, printed
from tests.generated import examples
from tests.runs import cell, failed, measured
from zodbshootout.cli.gate import Requirement
from zodbshootout.errors import UserError
from zodbshootout.results.files import read_results
from zodbshootout.results.result import CellResult

FILES = ("{}.json", "{}.d/fs.json")
GATES = ((), ("--metric", "trips"), ("--metric", "cpu"))
LIMITS = ("add trips <= 4", "hot objects >= 4000")


def results(worse: Sequence[float]) -> list[CellResult]:
    """Return results of all benchmarks, *worse* in time and in costs."""
    return [
        measured(
            cell(benchmark, "fs"), *[[0.5 * times, 0.505 * times]] * 4,
            trips=" ".join([str(round(4 * times))] * 2), client_cpu_s=f"{times} {1.01 * times}",
        )
        for benchmark, times in zip(BENCHMARKS, worse, strict=True)
    ]  # fmt: skip


def limited(path: Path, limit: str) -> int:
    try:
        return printed(Requirement.parsed(limit).judged(read_results(path)))[0]
    except UserError as error:
        return error.status


def statuses(place: Path) -> list[int]:
    """Return the status of each gate for each form of the files."""
    return [
        run(place / form.format("base"), place / form.format("new"), "--fail-above", "5", *words)[0]
        for form in FILES
        for words in GATES
    ] + [limited(place / form.format("new"), limit) for form in FILES for limit in LIMITS]


def some_run(document: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = chance.choice(chance.choice(document["benchmarks"])["runs"])
    return found


def without_benchmark(document: dict[str, Any], chance: random.Random) -> None:
    document["benchmarks"].pop(chance.randrange(len(document["benchmarks"])))


def without_run(document: dict[str, Any], chance: random.Random) -> None:
    runs = chance.choice(document["benchmarks"])["runs"]
    runs.pop(chance.randrange(len(runs)))


def without_value(document: dict[str, Any], chance: random.Random) -> None:
    some_run(document, chance)["values"].pop()


def without_fact(document: dict[str, Any], chance: random.Random) -> None:
    one = chance.choice([document, *document["benchmarks"], some_run(document, chance)])
    facts = one.get("metadata") or document["metadata"]
    facts.pop(chance.choice(sorted(facts)))


def with_impossible_number(document: dict[str, Any], chance: random.Random) -> None:
    number = chance.choice([float("nan"), float("inf"), -1.0])
    if chance.random() < 0.5:
        some_run(document, chance)["values"][0] = number
        return
    places = [one.setdefault("metadata", {}) for one in document["benchmarks"]]
    chance.choice(places)[chance.choice(["trips", "client_cpu_s"])] = f"{number} 1"


EDITS = (without_benchmark, without_run, without_value, without_fact, with_impossible_number)


def edited(path: Path, chance: random.Random) -> None:
    document = json.loads(path.read_text())
    chance.choice(EDITS)(document, chance)
    path.write_text(json.dumps(document))


def truncated(path: Path, chance: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))])


def removed(path: Path, chance: random.Random) -> None:
    path.unlink()


def without_line(path: Path, chance: random.Random) -> None:
    lines = path.read_text().splitlines(keepends=True)
    lines.pop(chance.randrange(len(lines)))
    path.write_text("".join(lines))


DAMAGES: Sequence[tuple[str, Sequence[Callable[[Path, random.Random], None]]]] = (
    ("new.json", (edited, edited, edited, truncated, removed)),
    ("new.d/fs.json", (edited, edited, edited, truncated, removed)),
    ("new.cells.jsonl", (without_line, truncated, removed)),
)


@pytest.mark.slow
@examples(20, 150)
@given(chance=st.integers(0, 2**64).map(random.Random))
def test_no_damage_opens_a_gate(tmp_path: Path, chance: random.Random) -> None:
    for one in tmp_path.iterdir():
        shutil.rmtree(one) if one.is_dir() else one.unlink()
    written(tmp_path / "base.json", *results([1.0] * 4))
    new = results(chance.choices([0.5, 1.0, 1.5], k=4))
    written(tmp_path / "new.json", *new)
    before = statuses(tmp_path)
    if chance.random() < 0.5:
        number = chance.randrange(4)
        broken = chance.choice(BREAKS)(new[number])
        ours = [*new[:number], *filter(None, [broken]), *new[number + 1 :]]
        written(tmp_path / "new.json", *ours)
    for name, damages in DAMAGES:
        if chance.random() < 0.5:
            chance.choice(damages)(tmp_path / name, chance)
    after = statuses(tmp_path)
    assert not [pair for pair in zip(before, after, strict=True) if pair == (1, 0)]


@pytest.mark.parametrize("form", ["new.json", "new.d/fs.json"])
def test_a_file_that_is_carried_alone_tells_what_failed(form: str, tmp_path: Path) -> None:
    base = written(tmp_path / "base.json", *results([1.0] * 4))
    new = results([1.0] * 4)
    written(tmp_path / "new.json", *new[:3], failed(cell("hot", "fs"), "wrong data"))
    alone = tmp_path / "elsewhere.json"
    shutil.copy(tmp_path / form, alone)
    status, _, err = run(base, alone, "--fail-above", "5")
    assert status == 1
    assert err.endswith("fs: hot 1000x300B threads-shared-2: wrong data\n")


def test_a_failed_cell_with_figures_is_a_finding_in_a_file_alone(tmp_path: Path) -> None:
    base = written(tmp_path / "base.json", *results([1.0] * 4))
    new = results([1.0] * 4)
    last = BREAKS[-1](new[3])
    assert last is not None
    written(tmp_path / "new.json", *new[:3], replace(last, runs=new[3].runs))
    shutil.copy(tmp_path / "new.json", alone := tmp_path / "elsewhere.json")
    assert run(base, alone, "--fail-above", "5")[0] == 1


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda one: one["runs"].pop(), "new.json is damaged: fs: hot {} has 6 of 8 values"),
        (lambda one: one["runs"][1]["values"].pop(), "fs: hot {} has 7 of 8 values"),
        (lambda one: one["runs"][1]["values"].__setitem__(0, float("inf")), "has the number inf"),
        (lambda one: one["runs"][1]["metadata"].update(trips="4 nan"), "has the number nan"),
        (lambda one: one["runs"][1]["metadata"].update(part_of_schedule=float("nan")),
         "has the number nan"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_an_error_in_one_line(
    edit: Callable[[Any], object], message: str, tmp_path: Path
) -> None:
    base = written(tmp_path / "base.json", *results([1.0] * 4))
    path = written(tmp_path / "new.json", *results([1.0] * 4))
    document = json.loads(path.read_text())
    edit(document["benchmarks"][3])
    path.write_text(json.dumps(document))
    status, out, err = run(base, path, "--fail-above", "5")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message.format("1000x300B threads-shared-2") in err
