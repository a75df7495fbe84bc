"""What the table looks like, to the letter."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.reports.results import EVERYTHING
from tests.runs import cell, failed, measured
from zodbshootout.client.outcome import Failure
from zodbshootout.client.specification import MappingType
from zodbshootout.reports import text
from zodbshootout.reports.headings import ResultSet
from zodbshootout.reports.report import Entry, Report, Row, Table
from zodbshootout.reports.tables import make_report
from zodbshootout.results.result import CellResult

GOLDEN = Path(__file__).parent / "golden"


def print_table(console: Console, results: list[CellResult]) -> None:
    text.write(make_report([ResultSet(results)]), console)


def printed(results: list[CellResult]) -> str:
    stream = io.StringIO()
    print_table(Console(file=stream, width=1000), results)
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


CASES = {
    "everything": EVERYTHING,
    "sweep": [
        measured(cell("add", "fs", objects=objects, object_size=size), [0.001 * objects])
        for size in (128, 300)
        for objects in (10, 100)
    ],
    "kinds": [
        measured(cell("add", "fs"), [0.02]),
        measured(cell("tpc", "fs", objects=0), [0.001], work_per_iteration=1),
        measured(cell("conflicts", "fs"), [0.1], work_per_iteration=500),
        measured(
            cell("conflicts_map", "fs", mapping=MappingType.IO), [0.2], work_per_iteration=500
        ),
        measured(cell("add", "fs", blobs=True), [0.2]),
    ],
    "restarted": [
        measured(cell("cold", "zeo"), [0.1], servers_restarted=True),
        measured(cell("cold", "fs"), [0.01], servers_restarted=False),
        measured(cell("hot", "zeo"), [0.01], servers_restarted=False),
        measured(cell("hot", "fs"), [0.01]),
    ],
    "precision": [
        measured(cell("add", "fs"), [0.02], [0.021], [0.02], precision=0.05),
        measured(cell("add", "zeo"), [0.02], [0.04], [0.02], precision=0.05),
        measured(cell("cold", "fs"), [0.02], precision=0.05),
        measured(cell("cold", "zeo"), [0.02], [0.02], precision=0.05),
    ],
    "failures": [
        measured(cell("add", "fs"), [0.02], [0.02], [0.02]),
        measured(cell("add", "zeo"), [0.02], [0.02])
        .crashed("client 1 was killed by SIGSEGV")
        .with_warnings(2),
        measured(cell("cold", "fs"), [0.02], [0.02]).with_warnings(3),
        measured(cell("cold", "zeo"), [0.02], [0.02]).failed(Failure("no more room")),
    ],
    "memory": [measured(cell("add", "fs"), [2_000_000], unit="byte")],
    "nothing": [failed(cell("add", "fs"), "no ZEO server at localhost:1")],
}


@pytest.mark.parametrize("name", CASES)
def test_the_table_is_as_it_was_approved(name: str) -> None:
    assert printed(CASES[name]) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_a_cell_without_a_number_never_shows_one() -> None:
    rows = printed([failed(cell("add", "fs"), "broken")]).splitlines()
    assert rows[4].split() == ["Add", "1000", "Objects", "failed", "[1]"]


def test_no_digit_is_cut_off_on_a_narrow_terminal() -> None:
    results = [measured(cell("steamin", f"contender{n}"), [0.0001]) for n in range(8)]
    stream = io.StringIO()
    print_table(Console(file=stream, width=40, force_terminal=False), results)
    assert stream.getvalue().count("20,000,000") == 8


@pytest.mark.parametrize(
    ("precision", "mark", "colour"),
    [
        ("± 2%", "", "2"), ("±12%", "", "2"),
        ("± 2%", "missed", "33"), ("±12%", "unstable", "33"), ("", "missed", "33"),
    ],
)  # fmt: skip
def test_a_precision_is_coloured_if_it_has_a_mark(precision: str, mark: str, colour: str) -> None:
    entry = Entry("1,000", 1000.0, precision=precision, mark=mark)
    stream = io.StringIO()
    console = Console(file=stream, width=80, force_terminal=True, color_system="standard")
    text.write(Report([Table("", ["fs"], [Row("Add", [entry])])]), console)
    assert f"\x1b[{colour}m {f'{precision} {mark}'.strip()}\x1b[0m" in stream.getvalue()


def test_where_the_table_is_too_wide_each_contender_has_one() -> None:
    stream = io.StringIO()
    print_table(Console(file=stream, width=70), EVERYTHING)
    assert stream.getvalue() == (GOLDEN / "narrow.txt").read_text(encoding="utf-8")
    assert max(map(len, stream.getvalue().split("[1]")[0].splitlines()[2:])) <= 70


def test_names_are_not_taken_for_markup() -> None:
    assert "a[red]b[/c]" in printed([measured(cell("add", "a[red]b[/c]"), [1.0])])


def test_the_name_of_a_benchmark_that_is_not_installed_is_no_format() -> None:
    assert "a{b 1000" in printed([measured(cell("a{b", "fs"), [1.0])])


def test_an_encoding_without_a_plus_minus_sign_does_with_ascii() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    print_table(Console(file=stream, width=200), [measured(cell("add", "fs"), [1.0, 2.0])])
    stream.flush()
    assert b"+-" in stream.buffer.getvalue()


def test_a_reason_names_the_cells_that_it_is_of_and_no_others() -> None:
    late = "not done within its time limit"
    some = [
        failed(cell("add", "a"), late),
        measured(cell("cold", "a"), [1.0]),
        measured(cell("add", "b"), [1.0]),
        failed(cell("cold", "b"), late),
    ]
    assert f"[1] a, add; b, cold: failed: {late}\n" in printed(some)
    both = [failed(cell(name, who), late) for name in ("add", "cold") for who in "ab"]
    assert f"[1] a, b, every benchmark: failed: {late}\n" in printed(both)


def test_only_the_precision_that_was_missed_is_told() -> None:
    text = printed(
        [
            measured(cell("add", "a"), [1.0], [1.2], precision=0.05),
            measured(cell("cold", "a"), [1.0], [1.0]),
            measured(cell("hot", "a"), [1.0], [1.0], precision=0.02),
        ]
    )
    assert "missed: wider than the 5 % of --precision" in text


def test_a_python_that_becomes_faster_is_told_of() -> None:
    pypy = {"python_implementation": "pypy"}
    text = printed(
        [
            measured(cell("add", "jit"), [0.5, 0.2, 0.3], [0.6, 0.25, 0.25], **pypy),
            measured(cell("hot", "jit"), [0.9, 0.3, 0.3], **pypy),
            measured(cell("cold", "jit"), [0.31, 0.3, 0.3], **pypy),
            measured(cell("tpc", "jit"), [0.9, 0.3], **pypy),
            measured(cell("add", "c"), [0.9, 0.3, 0.3], python_implementation="cpython"),
        ]
    )
    assert (
        "jit: warming up: the first value of a run takes longer than the later ones: "
        "3.0 times in hot, 2.2 times in add; -w leaves values out\n"
    ) in text
    assert text.count("warming up") == 1


def test_a_host_that_is_slower_than_the_others_is_told_of() -> None:
    def hosts(*seconds: float, clients: Sequence[int] = (4, 4)) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for at, (each, number) in enumerate(zip(seconds, clients, strict=False), 1):
            host = f"host_{at}"
            found |= {host: f"load{at}", f"{host}_s": each, f"{host}_clients": number}
        return found

    text = printed(
        [
            measured(cell("add", "zeo"), [1.0, 1.0], **hosts(0.1, 0.3)),
            measured(cell("hot", "zeo"), [1.0, 1.0], **hosts(0.3, 0.32)),
            measured(cell("cold", "pg"), [1.0, 1.0], **hosts(0.1, 0.2)),
            measured(cell("add", "pg"), [1.0, 1.0], **hosts(0.1)),
            measured(cell("hot", "pg"), [1.0, 1.0], **hosts(0.1, 0.2, clients=(9, 1))),
        ]
    )
    assert (
        "load2: slower than the clients of all hosts together: "
        "pg, hot: 1.8 times; zeo, add: 1.5 times; pg, cold: 1.3 times\n"
    ) in text
    assert text.count("slower than") == 1
