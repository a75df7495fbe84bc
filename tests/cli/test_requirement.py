"""``--require``: its limits, and which results keep them."""

from __future__ import annotations

import argparse
import io
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reports.at_a_rate import result as at_a_rate
from tests.runs import cell, failed, measured, unsupported
from zodbshootout.cli.gate import Requirement, status_of
from zodbshootout.cli.output import Streams, console_on
from zodbshootout.cli.parser import parse
from zodbshootout.errors import UserError
from zodbshootout.model.outcome import Failure
from zodbshootout.results.result import CellResult


def latencies(contender: str = "zeo", benchmark: str = "update", **metadata: Any) -> CellResult:
    """Return a result with 0.1 s an iteration and a median of 1 ms."""
    facts = at_a_rate(contender, 0).metadata
    histogram = {key: facts[key] for key in ("latency_histogram", "latency_max_s")}
    return measured(cell(benchmark, contender), *[[0.1, 0.1]] * 3, **{**histogram, **metadata})


def outcome(text: str, *results: CellResult) -> tuple[int, list[str]]:
    """Return the exit status and the lines of a requirement, without the name of the command."""
    out, err = io.StringIO(), io.StringIO()
    streams = Streams(console_on(out), console_on(err), None)
    status = status_of(Requirement.parsed(text).judged(results), streams)
    lines = (out.getvalue() + err.getvalue()).splitlines()
    return status, [line.removeprefix("zodbshootout: ") for line in lines]


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
    status, lines = outcome(text, latencies(**costs))
    assert [one.partition(" (zeo: ")[0] for one in lines] == [line]
    assert status == line.startswith("broken")


BREAKS: list[Callable[[CellResult], CellResult]] = [
    lambda result: CellResult(result.cell),
    lambda result: failed(result.cell, "wrong data"),
    lambda result: unsupported(result.cell, "read only"),
    lambda result: result.failed(Failure("no more room")),
]


@pytest.mark.slow
@given(
    chance=st.integers(0, 2**64).map(random.Random),
    text=st.sampled_from(["p99 <= 50ms", "trips <= 12", "objects >= 0", "seconds > 0.001ms"]),
)
def test_a_result_without_a_figure_of_its_own_never_keeps_a_limit(
    chance: random.Random, text: str
) -> None:
    good = [latencies(contender, trips="12 12") for contender in "abc"]
    assert outcome(f"update {text}", *good)[0] == 0
    broken = list(good)
    broken[chance.randrange(3)] = chance.choice(BREAKS)(good[0])
    status, lines = outcome(f"update {text}", *broken)
    assert status == 1
    assert [line.partition(":")[0] for line in lines].count("broken") == 1


def test_only_the_named_contender_and_benchmark_have_to_keep_a_limit() -> None:
    results = [latencies("zeo"), latencies("pg"), latencies("zeo", "add")]
    _, lines = outcome("zeo: update p99 <= 50ms", *results)
    assert [line.partition(" (")[2].partition(" ")[0] for line in lines] == ["zeo:"]
    _, lines = outcome("update p99 <= 50ms", *results)
    assert len(lines) == 2


def test_a_limit_that_is_about_nothing_is_not_kept() -> None:
    line = "broken: pg: update p99 <= 50ms: nothing that it limits was measured"
    assert outcome("pg: update p99 <= 50ms", latencies("zeo")) == (1, [line])


def test_what_cannot_keep_up_breaks_any_limit_and_a_percentile_is_that_of_the_table() -> None:
    keeps_up = at_a_rate("zeo", 20)
    status, (line,) = outcome("update p99 <= 10.04ms", keeps_up)
    assert (status, line.split(":")[0]) == (0, "kept")
    late = at_a_rate("zeo", 40, part_of_schedule=0.5)
    status, lines = outcome("update p99 <= 1s", keeps_up, late)
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
