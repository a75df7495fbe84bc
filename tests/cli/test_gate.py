"""The gate: ``--fail-above``, that is what is worse or no longer measured, and ``--require``."""

from __future__ import annotations

import argparse
import io
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyperf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.files import run, side, written
from tests.generated import examples
from tests.reports.at_a_rate import result as at_a_rate
from tests.runs import cell, failed, measured, noisy, unsupported
from zodbshootout.cli.gate import Judgement, Requirement, judged, status_of
from zodbshootout.cli.output import Streams, console_on
from zodbshootout.cli.parser import parse
from zodbshootout.errors import UserError
from zodbshootout.model.outcome import Failure
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import compare

BENCHMARKS = ("add", "update", "cold", "hot")


Side = Sequence[CellResult]


def gate(base: Side, new: Side) -> int:
    return judgement(base, new)[0]


def judgement(base: Side, new: Side, *again: Side) -> tuple[int, str]:
    """Return the status and the lines on two sides, and on what a second run measured *again*."""
    second = compare(again[0], again[1], across=True) if again else None
    sides = compare(base, new, across=True).named("a", "b")
    return printed(judged(sides, 0.05, second))


def printed(judgements: Iterable[Judgement]) -> tuple[int, str]:
    """Return the status and the lines of judgements."""
    lines = console_on(out := io.StringIO())
    return status_of(judgements, Streams(lines, lines, None)), out.getvalue()


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


def latencies(contender: str = "zeo", benchmark: str = "update", **metadata: Any) -> CellResult:
    """Return a result with 0.1 s an iteration and a median of 1 ms."""
    facts = at_a_rate(contender, 0).metadata
    histogram = {key: facts[key] for key in ("latency_histogram", "latency_max_s")}
    return measured(cell(benchmark, contender), *[[0.1, 0.1]] * 3, **{**histogram, **metadata})


def required(text: str, *results: CellResult) -> tuple[int, list[str]]:
    """Return the exit status and the lines of a requirement, without the name of the command."""
    status, lines = printed(Requirement.parsed(text).judged(results))
    return status, [line.removeprefix("zodbshootout: ") for line in lines.splitlines()]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("update p99 <= 50ms", "kept: update p99 <= 50ms: 10.0 ms"),
        ("update p99 <= 5ms", "broken: update p99 <= 5ms: 10.0 ms"),
        ("zeo: update p50<2ms", "kept: zeo: update p50<2ms: 1.00 ms"),
        ("ZEO: update p95.5 <= 1.5ms", "kept: ZEO: update p95.5 <= 1.5ms: 1.00 ms"),
        ("update max < 10ms", "broken: update max < 10ms: 10.0 ms"),
        ("update seconds <= 0.11s", "kept: update seconds <= 0.11s: 100 ms"),
        ("update objects >= 30k", "broken: update objects >= 30k: 20,000"),
        ("update trips <= 12", "kept: update trips <= 12: 12"),
        ("update trips < 12", "broken: update trips < 12: 12"),
        ("update sent <= 2k", "kept: update sent <= 2k: 2.05 kB"),
        ("update cpu > 9ms", "kept: update cpu > 9ms: 10.0 ms"),
        ("update disk <= 1k", "broken: update disk <= 1k: not recorded"),
    ],
)  # fmt: skip
def test_a_line_says_whether_a_limit_is_kept_and_the_figure(text: str, line: str) -> None:
    costs = {"trips": "12 12", "sent_bytes": "2048 2048", "client_cpu_s": "0.01 0.01"}
    status, lines = required(text, latencies(**costs))
    assert [one.partition(" (zeo: ")[0] for one in lines] == [line]
    assert status == line.startswith("broken")


@pytest.mark.slow
@given(
    chance=st.integers(0, 2**64).map(random.Random),
    text=st.sampled_from(["p99 <= 50ms", "trips <= 12", "objects >= 0", "seconds > 0.001ms"]),
)
def test_a_result_without_a_figure_of_its_own_never_keeps_a_limit(
    chance: random.Random, text: str
) -> None:
    good = [latencies(contender, trips="12 12") for contender in "abc"]
    assert required(f"update {text}", *good)[0] == 0
    broken = list(good)
    broken[chance.randrange(3)] = chance.choice(BREAKS)(good[0]) or CellResult(good[0].cell)
    status, lines = required(f"update {text}", *broken)
    assert status == 1
    assert [line.partition(":")[0] for line in lines].count("broken") == 1


def test_only_the_named_contender_and_benchmark_have_to_keep_a_limit() -> None:
    results = [latencies("zeo"), latencies("pg"), latencies("zeo", "add")]
    _, lines = required("zeo: update p99 <= 50ms", *results)
    assert [line.partition(" (")[2].partition(" ")[0] for line in lines] == ["zeo:"]
    _, lines = required("update p99 <= 50ms", *results)
    assert len(lines) == 2


def test_a_limit_that_is_about_nothing_is_not_kept() -> None:
    line = "broken: pg: update p99 <= 50ms: nothing that it limits was measured"
    assert required("pg: update p99 <= 50ms", latencies("zeo")) == (1, [line])


def test_what_cannot_keep_up_breaks_any_limit_and_a_percentile_is_that_of_the_table() -> None:
    keeps_up = at_a_rate("zeo", 20)
    status, (line,) = required("update p99 <= 10.04ms", keeps_up)
    assert (status, line.split(":")[0]) == (0, "kept")
    late = at_a_rate("zeo", 40, part_of_schedule=0.5)
    status, lines = required("update p99 <= 1s", keeps_up, late)
    assert status == 1
    assert lines[1].startswith("broken: update p99 <= 1s: cannot keep up (zeo: update")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("update", "is not [CONTENDER:] BENCHMARK METRIC <= VALUE, such as 'update p99 <= 50ms'"),
        ("update p99 = 50ms", "is not [CONTENDER:] BENCHMARK METRIC <= VALUE"),
        ("update trip <= 12", "no quantity 'trip'; did you mean trips"),
        ("update p100 <= 50ms", "no quantity 'p100'"),
        ("update p99 <= 50", "'50' is not a time, such as 50ms"),
        ("update cpu <= fast", "'fast' is not a time"),
        ("update trips <= few", "'few' is not a number, such as 12"),
        ("update sent <= -1", "'-1' is not a size in bytes"),
        ("update objects >= -1", "'-1' is not 0 or a positive number"),
    ],
)
def test_a_limit_that_cannot_be_read_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        Requirement.parsed(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["update", "--require", "update p99"], "argument --require: 'update p99' is not"),
        (["update", "--require", "cold p99 <= 1s"], "--require: cold is not measured; add it"),
        (["update", "--require", "updat p99 <= 1s"], "'updat'; did you mean update?"),
        (["update", "--rate", "20", "--require", "update objects >= 5"],
         "--require: update objects >= 5: a run at a rate measures latencies"),
        (["update", "--threads", "--tracemalloc", "--require", "update p99 <= 1s"],
         "--tracemalloc cannot be combined with --require"),
    ],
)  # fmt: skip
def test_a_limit_that_no_run_could_keep_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(words)
    assert message in str(caught.value)


def test_several_limits_may_be_given() -> None:
    given: Any = parse(["--require", "add p99 <= 1s", "--require", "cold trips <= 9"])
    assert [one.text for one in given.requirements] == ["add p99 <= 1s", "cold trips <= 9"]
