"""The exact text of printed tables."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.reports.results import EVERYTHING, FOUR, noisy_run
from tests.runs import cell, failed, measured, noisy, unpaired, unsupported
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.model.outcome import Failure
from zodbshootout.model.specification import MappingType
from zodbshootout.reports import text
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.elements import Entry, Note, Report, Row, Table
from zodbshootout.reports.tables import make_report
from zodbshootout.results.result import CellResult

GOLDEN = Path(__file__).parent / "golden"
LONG = "the_contender_with_the_longest_name"


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
    "precision": [
        unpaired(cell("add", "fs"), [0.02], [0.021], [0.02], precision=0.05),
        unpaired(cell("add", "zeo"), [0.02], [0.04], [0.02], precision=0.05),
        unpaired(cell("cold", "fs"), [0.02], precision=0.05),
        unpaired(cell("cold", "zeo"), [0.02], [0.02], precision=0.05),
    ],
    "failures": [
        unpaired(cell("add", "fs"), [0.02], [0.02], [0.02]),
        unpaired(cell("add", "zeo"), [0.02], [0.02])
        .crashed("client 1 was killed by SIGSEGV")
        .with_warnings(2),
        unpaired(cell("cold", "fs"), [0.02], [0.02]).with_warnings(3),
        unpaired(cell("cold", "zeo"), [0.02], [0.02]).failed(Failure("no more room")),
    ],
    "memory": [measured(cell("add", "fs"), [2_000_000], unit="byte")],
    "nothing": [failed(cell("add", "fs"), "no ZEO server at localhost:1")],
}


@pytest.mark.parametrize("name", CASES)
def test_a_printed_table_equals_its_golden_file(name: str) -> None:
    assert printed(CASES[name]) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_a_failed_cell_shows_no_number() -> None:
    rows = printed([failed(cell("add", "fs"), "broken")]).splitlines()
    assert rows[4].split() == ["add", "failed", "[1]"]


def test_no_digit_is_cut_off_on_a_narrow_terminal() -> None:
    results = [measured(cell("steamin", f"contender{n}"), [0.1]) for n in range(8)]
    stream = io.StringIO()
    print_table(Console(file=stream, width=20, force_terminal=False), results)
    shown = stream.getvalue()
    # The first contender is in each of the seven parts.
    assert shown.count("~20,000") == shown.count("contender") == 14


@pytest.mark.parametrize(
    ("names", "width"), [(FOUR, 80), ((*FOUR, "postgresql"), 100), ((*FOUR, "zeo_2"), 80)]
)
@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_a_table_is_at_most_as_wide_as_the_terminal(
    names: Sequence[str], width: int, noise: float
) -> None:
    stream = io.StringIO()
    report = make_report([ResultSet(noisy_run(names, noise), path=Path("out.json"))])
    text.write(report, Console(file=stream, width=width))
    rows = [line for line in stream.getvalue().splitlines() if line.startswith("hot")]
    assert len(rows) == (2 if len(names) > 4 and width == 80 else 1)
    tables, _, _ = stream.getvalue().partition("\n\nzeo against file")
    assert max(map(len, tables.splitlines())) <= width
    assert sum(row.count("×") + row.count("?") for row in rows) == len(names) - 1


@pytest.mark.parametrize("width", [80, 100, 200])
def test_intervals_are_shown_if_there_is_room(width: int) -> None:
    stream = io.StringIO()
    report = make_report([ResultSet(noisy_run(("fs", "zeo", "pg"), 0.01))])
    text.write(report, Console(file=stream, width=width))
    row = next(line for line in stream.getvalue().splitlines() if line.startswith("hot"))
    assert (row.count("±"), row.count(" to ")) == {80: (0, 0), 100: (0, 2), 200: (3, 2)}[width]


def test_the_intervals_of_a_single_contender_are_shown_on_any_terminal() -> None:
    stream = io.StringIO()
    report = make_report([ResultSet(noisy_run(("fs",), 0.01))])
    text.write(report, Console(file=stream, width=10))
    assert stream.getvalue().count("±23%") == 7


def test_a_figure_shows_only_significant_digits() -> None:
    vague = measured(cell("add", "fs"), [0.0123], [0.0234], [0.0311], precision=0.05)
    rough = measured(cell("cold", "fs"), [0.0123], [0.0124], [0.0133], precision=0.05)
    known = measured(cell("hot", "fs"), [0.0123], [0.0123], [0.01235], precision=0.05)
    shown = printed([vague, rough, known])
    assert [line.split()[1] for line in shown.splitlines()[4:7]] == [
        "~90,000",
        "~158,000",
        "162,382",
    ]


def test_a_wide_table_is_split_into_parts_with_the_first_contender_in_each() -> None:
    stream = io.StringIO()
    print_table(Console(file=stream, width=40), EVERYTHING)
    assert stream.getvalue() == (GOLDEN / "narrow.txt").read_text(encoding="utf-8")


def test_a_note_says_what_the_benchmarks_in_the_table_read_from_or_do() -> None:
    results = [measured(cell(name, "fs"), [1.0]) for name in ("add", "hot", "their_own")]
    note = (
        "add: put new objects into a mapping, commit; hot: from the storage's cache, if it has one"
    )
    assert f"\n{note}\n" in printed(results)
    legends = {name: benchmark.legend for name, benchmark in benchmarks().items()}
    assert "\ncold, load: from the server or the file, the client's caches empty\n" in printed(
        [measured(cell(name, "fs"), [1.0]) for name in ("cold", "load")]
    )
    assert all(legends.values())
    assert not any(set(legend) & set(";:.") for legend in legends.values())


def test_a_note_says_that_cold_is_not_from_disk_and_which_caches_were_in_memory() -> None:
    def cold(benchmark: str, contender: str, caches: list[str]) -> CellResult:
        return measured(cell(benchmark, contender), [1.0], uncleared_caches=json.dumps(caches))

    fs, pg, memory = ["operating system"], ["PostgreSQL server", "operating system"], list[str]()
    start = "not from disk: these caches were still in memory: "
    one = printed([cold("cold", "fs", fs), cold("cold", "pg", pg), cold("cold", "memory", memory)])
    assert f"cold is {start}operating system (fs, pg); PostgreSQL server (pg)\n" in one
    several = printed([cold("cold", "fs", fs), cold("load", "fs", fs), cold("load", "pg", pg)])
    assert f"cold, load are {start}operating system (fs, pg); PostgreSQL server (pg)\n" in several
    assert "from disk" not in printed([cold("cold", "memory", memory)])


def test_a_note_is_wrapped_between_words_and_never_in_a_path_or_in_options() -> None:
    path = f"/{'a-long-directory/' * 6}out.json"
    note = (
        "~ imprecise: 22 of 25 figures; other programs used 6% of the processors: "
        f"--append {path} --at-most 5; see {path}"
    )
    stream = io.StringIO()
    text.write(Report(notes=[Note(note)]), Console(file=stream, width=80))
    assert stream.getvalue().splitlines()[1:] == [
        "~ imprecise: 22 of 25 figures; other programs used 6% of the processors:",
        f"    --append {path} --at-most 5;",
        "    see",
        f"    {path}",
    ]


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (10, ["the_contender_with_the_l", "ongest_name is 1.5 times", "as fast"]),
        (100, ["the_contender_with_the_longest_name is 1.5 times as", "fast"]),
        (200, ["the_contender_with_the_longest_name is 1.5 times as fast"]),
    ],
)
def test_a_table_that_is_too_wide_has_its_words_wrapped_but_no_number(
    width: int, words: list[str]
) -> None:
    row = Row("add", [Entry("1,000,000", 1e6), Entry(f"{LONG} is 1.5 times as fast")])
    table = Table("", [LONG, "verdict"], [row], words=frozenset({"verdict"}))
    stream = io.StringIO()
    text.write(Report([table]), Console(file=stream, width=width))
    first, *others = (line.rstrip() for line in stream.getvalue().splitlines()[3:-1])
    assert first.split(maxsplit=2) == ["add", "1,000,000", words[0]]
    assert [line.strip() for line in others] == words[1:]


def test_a_note_gives_the_cause_of_imprecise_figures_and_a_remedy() -> None:
    def shown(path: str | None, duration: float = 2.0, **more: float) -> str:
        rounds = noisy(1, runs=4, noise=0.2)
        result = measured(cell("add", "fs"), *rounds, precision=0.05, duration=duration, **more)
        stream = io.StringIO()
        report = make_report([ResultSet([result], path=Path(path) if path else None)])
        text.write(report, Console(file=stream, width=1000))
        return next(line for line in stream.getvalue().splitlines() if line.startswith("~ "))

    assert shown(None, duration=0.0) == "~ imprecise: 1 of 1 figures (±5% wanted)"
    assert "; other programs used 40% of the processors; " in shown(None, other_load=0.4)
    assert "other programs" not in shown(None, other_load=0.01)
    minutes = re.search(
        r"; about (\d+) more minutes: repeat the command with --append a.json --at-most (\d+)$",
        shown("a.json"),
    )
    assert minutes
    assert minutes[1] == minutes[2]
    assert " --append 'two words.json' --at-most " in shown("two words.json")
    assert shown(None, duration=2000.0).endswith(
        "; it would take more than 10 hours: a quieter machine is needed"
    )


def test_names_are_not_taken_for_markup() -> None:
    assert "a[red]b[/c]" in printed([measured(cell("add", "a[red]b[/c]"), [1.0])])


def test_an_unknown_benchmark_name_is_not_taken_for_a_format_string() -> None:
    assert "a{b" in printed([measured(cell("a{b", "fs"), [1.0])])


def test_a_table_uses_ascii_if_its_encoding_has_no_plus_minus_sign() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    print_table(Console(file=stream, width=200), [measured(cell("add", "fs"), [1.0, 2.0])])
    stream.flush()
    assert b"+-" in stream.buffer.getvalue()


def test_a_table_in_progress_uses_ascii_if_its_encoding_has_no_ellipsis() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    console = Console(file=stream, width=200)
    report = make_report([ResultSet([CellResult(cell("add", "fs"))])], pending="…")
    console.print(*text.tables(report, console))
    stream.flush()
    assert stream.buffer.getvalue().split()[-1] == b"..."


def test_a_reason_names_exactly_the_cells_that_it_applies_to() -> None:
    late = "not done within its time limit"
    some = [
        failed(cell("add", "a"), late),
        measured(cell("cold", "a"), [1.0]),
        measured(cell("add", "b"), [1.0]),
        failed(cell("cold", "b"), late),
    ]
    assert f"[1] a, add; b, cold: failed: {late}\n" in printed(some)
    both = [failed(cell(name, contender), late) for name in ("add", "cold") for contender in "ab"]
    assert f"[1] a, b, every benchmark: failed: {late}\n" in printed(both)


def test_a_note_advises_leaving_out_an_unsupported_row_if_there_are_others() -> None:
    refused = [unsupported(cell("add", name), "never") for name in ("a", "b")]
    others = [measured(cell("hot", name), [1.0]) for name in ("a", "b")]
    assert "[1] a, b, add: not supported: never (leave it out: -add)\n" in printed(refused + others)
    assert "leave it out" not in printed(refused)


def test_a_note_names_the_benchmarks_in_which_pypy_warms_up() -> None:
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


def test_a_note_counts_the_connections_that_were_made_again() -> None:
    limit = {"idle_limit": "idle_session_timeout 0.06 s"}
    text = printed(
        [
            measured(cell("add", "pg"), [0.3], [0.3], reconnections=2, **limit),
            measured(cell("hot", "pg"), [0.3], **limit),
            measured(cell("add", "zeo"), [0.3], reconnections=1),
        ]
    )
    assert (
        "pg: at least 4 connections closed while waiting for a turn, so that figures include "
        "connecting again: add (idle_session_timeout 0.06 s); raise it for the user of the "
        "benchmark\n"
    ) in text
    assert text.count("connecting again") == 2


def test_a_note_names_a_host_that_is_slower_than_all_hosts_together() -> None:
    def hosts(*seconds: float, clients: Sequence[int] = (4, 4)) -> dict[str, Any]:
        metadata: dict[str, Any] = {}
        for at, (duration, number) in enumerate(zip(seconds, clients, strict=False), 1):
            host = f"host_{at}"
            metadata |= {host: f"load{at}", f"{host}_s": duration, f"{host}_clients": number}
        return metadata

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
