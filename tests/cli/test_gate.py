"""``--fail-above``: what is slower, and what is no longer measured."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyperf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.files import run, side, written
from tests.generated import examples
from tests.reports.at_a_rate import result as at_a_rate
from tests.runs import cell, failed, measured, noisy, unsupported
from zodbshootout.cli.gate import judged, status_of
from zodbshootout.cli.output import Streams, console_on
from zodbshootout.model.outcome import Failure
from zodbshootout.reports.comparison import ColumnComparison
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import compare

BENCHMARKS = ("add", "update", "cold", "hot")


Side = Sequence[CellResult]


def gate(base: Side, new: Side) -> int:
    return judgement(base, new)[0]


def judgement(base: Side, new: Side, *again: Side) -> tuple[int, str]:
    """Return the status and the lines on two sides, and on what a second run measured *again*."""
    err = io.StringIO()
    second = compare(again[0], again[1], across=True) if again else None
    sides = ColumnComparison("a", "b", compare(base, new, across=True))
    streams = Streams(console_on(io.StringIO()), console_on(err), None)
    return status_of(judged(sides, 0.05, second), streams), err.getvalue()


def some_side(contender: str, times: Sequence[float]) -> list[CellResult]:
    return [
        measured(cell(benchmark, contender), *[[seconds, seconds * 1.01]] * 3)
        for benchmark, seconds in zip(BENCHMARKS, times, strict=True)
    ]


BREAKS: Sequence[Callable[[CellResult], CellResult | None]] = (
    lambda result: None,
    lambda result: CellResult(result.cell),
    lambda result: failed(result.cell, "wrong data"),
    lambda result: unsupported(result.cell, "read only"),
    lambda result: result.failed(Failure("no more room")),
    lambda result: replace(result.failed(Failure("no more room")), runs=result.runs[:1]),
)


@pytest.mark.slow
@examples(300, 2000)
@given(chance=st.integers(0, 2**64).map(random.Random))
def test_breaking_a_cell_never_opens_the_gate(chance: random.Random) -> None:
    base = some_side("a", [1.0] * 4)
    new = some_side("b", chance.choices([0.5, 1.0, 1.04, 1.2], k=4))
    before = gate(base, new)
    broken: list[CellResult | None] = [*new]
    for number in chance.sample(range(4), chance.randint(1, 4)):
        broken[number] = chance.choice(BREAKS)(new[number])
    after = gate(base, [result for result in broken if result is not None])
    assert after >= before
    assert after == 1


def test_a_gate_passes_what_the_base_did_not_measure_either() -> None:
    base = [*some_side("a", [1.0] * 4)[:2], failed(cell("cold", "a"), "broken")]
    new = [*some_side("b", [1.0] * 4)[:2], failed(cell("cold", "b"), "broken")]
    assert gate(base, new) == 0
    assert gate(base, some_side("b", [1.0] * 4)) == 0


@pytest.mark.parametrize(
    ("base", "new", "status"),
    [({}, {}, 0), ({}, {"part_of_schedule": 0.5}, 1), ({"part_of_schedule": 0.5}, {}, 0),
     ({"part_of_schedule": 0.5}, {"part_of_schedule": 0.5}, 0)],
)  # fmt: skip
def test_a_contender_that_no_longer_keeps_up_is_a_finding(
    base: dict[str, float], new: dict[str, float], status: int
) -> None:
    others = [at_a_rate("a", 40)], [at_a_rate("b", 40)]
    assert gate([at_a_rate("a", 20, **base), *others[0]],
                [at_a_rate("b", 20, **new), *others[1]]) == status  # fmt: skip


def test_a_figure_that_runs_no_longer_record_is_a_finding() -> None:
    whole = at_a_rate("b", 20)
    facts = [
        {key: value for key, value in one.items() if key != "latency_histogram"}
        for one in whole.facts
    ]
    runs = [
        pyperf.Run(run.values, metadata=kept, collect_metadata=False)
        for run, kept in zip(whole.runs, facts, strict=True)
    ]
    assert gate([at_a_rate("a", 20)], [whole]) == 0
    assert gate([at_a_rate("a", 20)], [replace(whole, runs=tuple(runs))]) == 1


def test_each_loss_is_a_line_with_its_reason(tmp_path: Path) -> None:
    base = written(tmp_path / "a.json", *side("fs", 1.0, 1), at_a_rate("fs", 20))
    new = written(
        tmp_path / "b.json",
        *side("fs", 1.0, 5)[:1],
        failed(cell("hot", "fs"), "wrong data"),
        at_a_rate("fs", 20, part_of_schedule=0.5),
    )
    status, _, err = run(base, new, "--fail-above", "5")
    assert status == 1
    assert [line.partition(", but the base has a figure: ")[::2] for line in err.splitlines()] == [
        ("zodbshootout: failed", "fs: hot 1000x300B threads-shared-2: wrong data"),
        ("zodbshootout: cannot keep up", "fs: update 1000x300B rate 20 threads-shared-2"),
    ]
    assert run(base, new)[0] == 0


def test_a_new_side_without_any_figure_is_a_finding_and_not_bad_usage(tmp_path: Path) -> None:
    base = written(tmp_path / "a.json", *side("fs", 1.0, 1))
    new = written(
        tmp_path / "b.json", failed(cell("add", "fs"), "x"), failed(cell("hot", "fs"), "x")
    )
    status, _, err = run(base, new, "--fail-above", "5")
    assert (status, err.count("but the base has a figure")) == (1, 2)
    assert run(base, new)[0] == 2


def test_a_cell_that_failed_in_another_environment_is_a_finding(tmp_path: Path) -> None:
    file = written(
        tmp_path / "out.json",
        *side("fs", 1.0, 1),
        side("fs", 1.0, 3, variant={"environment": "new"})[0],
        failed(cell("hot", "fs", {"environment": "new"}), "wrong data"),
    )
    status, _, err = run(file, "--environment", "installed", "new", "--fail-above", "5")
    assert status == 1
    assert err.endswith("fs: hot 1000x300B threads-shared-2: wrong data\n")


@pytest.mark.parametrize(
    ("times", "status", "line"),
    [(1.12, 1, "worse by more than 5 %, confirmed by a second run: b: add"),
     (1.0, 0, "not confirmed by a second run: b: add"),
     (1.03, 0, "not confirmed by a second run: b: add")],
)  # fmt: skip
def test_a_slowdown_counts_if_a_second_run_finds_it_again(
    times: float, status: int, line: str
) -> None:
    again = side("a", 1.0, 5)[:1], side("b", times, 7)[:1]
    found, lines = judgement(side("a", 1.0, 1), side("b", 1.15, 3), *again)
    assert (found, line in lines) == (status, True)


def test_a_slowdown_without_a_second_figure_counts() -> None:
    again = [
        [measured(cell("add", name), noisy(seed)[0][:1])] for name, seed in (("a", 5), ("b", 7))
    ]
    status, lines = judgement(side("a", 1.0, 1), side("b", 1.15, 3), *again)
    assert status == 1
    assert "worse by more than 5 %, and the second run has no figure: b: add" in lines


def test_a_failure_counts_if_a_second_run_fails_again() -> None:
    base = side("a", 1.0, 1)
    new = [measured(cell("add", "b"), *noisy(2)), failed(cell("hot", "b"), "wrong data")]
    assert judgement(base, new, base[1:], [measured(cell("hot", "b"), *noisy(5))])[0] == 0
    assert judgement(base, new, base[1:], new[1:])[0] == 1
