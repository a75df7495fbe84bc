"""What is printed of stored results, held to golden files.

``REWRITE_GOLDENS=1 pytest tests/golden`` writes all golden files anew.  Their diff shows what users
will see change, and the message of the commit says why.

The results in ``data`` were measured.  Most are parts of the files in ``docs/results/data``: some
of the cells, and a few runs of each.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.commands import outcome
from zodbshootout.cli import compare, show
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.elements import Chart, Report, Scale, Table
from zodbshootout.reports.sections import whole_report
from zodbshootout.results.files import read_results

HERE = Path(__file__).parent
DATA = HERE / "data"
COMPARED = {
    "default": ("--contender", "zeo", "postgresql"),
    "sweep": ("--contender", "filestorage", "sqlite"),
    "releases": ("--environment", "installed", "relstorage==4.2.0"),
    "define": ("--contender", "zeo", "postgresql"),
    "rtt": ("--contender", "zeo", "postgresql"),
    "rates": ("--contender", "zeo", "postgresql"),
    "limit": ("--contender", "filestorage", "mapping"),
    "during": ("--contender", "zeo", "postgresql"),
    "for": ("--contender", "steady", "slowing"),
    "replay": ("--contender", "zeo", "postgresql"),
    "costs": ("--contender", "zeo", "postgresql", "--metric", "trips"),
    "failures": ("--contender", "fs", "memory"),
}
"""The stored results, and the options of a comparison of each."""
SHOWN = {
    "table.txt": (),
    "seconds.txt": ("--unit", "seconds"),
    "p99.txt": ("--unit", "p99"),
    "stdev.txt": ("--unit", "stdev"),
    "costs.txt": ("--costs",),
    "csv": ("--format", "csv"),
    "json": ("--format", "json"),
    "md": ("--format", "markdown"),
}
"""The endings of the golden files of ``show``, and the options that print them."""


EACH = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in COMPARED]
"""The stored results; the tests of one file are in one process, which reads the file once."""
read = cache(read_results)


@pytest.fixture(autouse=True)
def _among_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA)
    monkeypatch.setenv("COLUMNS", "100")
    for module in (compare, show):
        monkeypatch.setattr(module, "read_results", read)


@pytest.mark.parametrize("ending", SHOWN)
@pytest.mark.parametrize("name", EACH)
def test_results_are_shown_as_before(name: str, ending: str) -> None:
    check(f"{name}.{ending}", printed("show", f"{name}.json.gz", *SHOWN[ending]))


@pytest.mark.parametrize("name", EACH)
def test_results_are_compared_as_before(name: str) -> None:
    check(f"{name}.compare.txt", printed("compare", f"{name}.json.gz", *COMPARED[name]))


@pytest.mark.parametrize("name", EACH)
def test_a_page_has_what_it_had_before(name: str) -> None:
    report = whole_report([ResultSet(read(Path(f"{name}.json.gz")))])
    check(f"{name}.page.txt", "\n".join(_lines_of_page(report)) + "\n")


def printed(*words: str) -> str:
    status, out, err = outcome(*words)
    return f"{out}{err}" + (f"exit status {status}\n" if status else "")


def check(file: str, text: str) -> None:
    path = HERE / "printed" / file
    # The last digits depend on the version of Python, whose sums became more exact.
    lines = re.sub(
        r"\d+\.\d{6,}(e-?\d+)?", lambda number: f"{float(number[0]):.9g}", text
    ).splitlines()
    if os.environ.get("REWRITE_GOLDENS"):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert lines == path.read_text(encoding="utf-8").splitlines()


def _lines_of_page(report: Report, depth: int = 1) -> Iterator[str]:
    """Yield what a page has: titles, sentences, tables, and charts with their points."""
    yield f"{'#' * depth} {report.title}"
    for table in [*filter(None, [report.matrix]), *report.tables]:
        yield from _lines_of_table(table)
    sentences = {
        "fact": report.facts,
        "verdict": [f"{note}." for note in report.verdicts],
        "note": report.notes,
    }
    yield from (f"{kind}: {one}" for kind, ones in sentences.items() for one in ones)
    for chart in report.charts:
        yield from _lines_of_chart(chart)
    for listing in report.listings:
        yield from [f"listing: {listing.caption}", *listing.text.splitlines()]
    for part in report.parts:
        yield from _lines_of_page(part, depth + 1)


def _lines_of_table(table: Table) -> Iterator[str]:
    yield f"table: {table.caption}"
    yield from ("  " + " | ".join(line) for line in table.lines())


def _words_of_scale(scale: Scale) -> str:
    start = "logarithmic" if scale.logarithmic else "from 0" if scale.from_zero else "close"
    return f"{scale.title} ({scale.labels.value}, {start})"


def _lines_of_chart(chart: Chart) -> Iterator[str]:
    yield f"{chart.kind.name.lower()}: {chart.title}; {chart.subtitle}"
    yield f"  axes: {_words_of_scale(chart.x)}; {_words_of_scale(chart.y)}"
    for point in chart.points:
        place = chart.x.names[int(point.x)] if chart.x.names else f"{point.x:.5g}"
        ends = [f"{end:.4g}" for end in (point.low, point.high) if end is not None]
        yield "  " + " | ".join([point.column, place, f"{point.y:.5g}", point.text, *ends])
    yield from (f"  mark: {mark.sentence}" for mark in chart.marks)
