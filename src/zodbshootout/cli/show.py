"""``zodbshootout show``: print what result files hold."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from zodbshootout.cli.arguments import raise_usage_errors
from zodbshootout.cli.streams import Streams
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.errors import UserError, suggestion
from zodbshootout.reports import registry
from zodbshootout.reports.comparison import compared
from zodbshootout.reports.figures import OBJECTS, UNITS, Metric
from zodbshootout.reports.headings import Heading
from zodbshootout.reports.records import Source
from zodbshootout.reports.report import NothingToShow, Report
from zodbshootout.reports.tables import NoSuchContender, make_report
from zodbshootout.results.files import Unusable, read_results
from zodbshootout.results.result import CellResult

TABLE = "-table"
"""What the name of a format ends in that lays cells out as the table does."""


def show(arguments: Sequence[str], streams: Streams) -> None:
    """Print the tables of some files.

    :raises UserError: with one line for the user
    :raises SystemExit: after ``--help``
    """
    found = parser().parse_args(arguments)
    name = f"{found.format}{TABLE}" if found.layout == "table" else found.format
    check_format(found.format, TEXTS)
    if found.layout == "table" and name not in registry.names():
        raise UserError("--layout table: only csv has it")
    sources = [
        Source(results_in(path), label)
        for path, label in zip(found.files, labels(found.files), strict=True)
    ]
    try:
        report = report_of(sources, UNITS[found.unit], found.relative_to, found.baseline)
    except NoSuchContender as error:
        raise UserError(str(error)) from None
    write_as(name, report, streams.out)


def report_of(
    sources: Sequence[Source],
    unit: Metric = OBJECTS,
    relative_to: str | None = None,
    baseline: str | None = None,
) -> Report:
    """Return what is printed of results: the tables, and comparisons with what is installed.

    :raises NoSuchContender: when no column has the title *relative_to* or *baseline*
    """
    report = make_report(sources, headings(), unit, relative_to, baseline)
    further = [each for source in sources for each in _comparisons(source.results)]
    return replace(report, further=further if unit is OBJECTS else ())


def _comparisons(results: Sequence[CellResult]) -> Iterator[Report]:
    """Compare contenders of another environment with what is installed, cell by cell."""
    names = dict.fromkeys((each.beside, each.cell.contender) for each in results if each.beside)
    for base, new in names:
        of_base, of_new = (
            [each for each in results if each.cell.contender == name] for name in (base, new)
        )
        if found := compared(of_base, of_new, base, new, headings()):
            yield replace(found, title="")


def check_format(name: str, known: Sequence[str]) -> None:
    """Check that a format is one of those that are *known*, and that what it needs is there.

    :raises UserError: when it is not
    """
    if name in registry.PICTURES - {*known}:
        raise UserError(
            f"--format: {name} is for charts; write it with zodbshootout report FILE -o page.{name}"
        )
    if name not in known:
        raise UserError(f"--format: no {name!r}; {suggestion(name, known)}")
    try:
        registry.format_named(name)
    except registry.NotInstalled as error:
        raise UserError(f"--format: {error}") from None


def write_as(name: str, report: Report, console: Console) -> None:
    """Write a report in a format.

    :raises UserError: when there is nothing that it could show
    """
    try:
        registry.format_named(name)(report, console)
    except NothingToShow as error:
        raise UserError(str(error)) from None


def headings() -> dict[str, Heading]:
    """Return what the rows of tables say of the benchmarks that are installed."""
    return {name: Heading(each.title, each.counted) for name, each in benchmarks().items()}


def results_in(path: Path) -> list[CellResult]:
    """Return what a file holds.

    :raises UserError: when it holds no results
    """
    try:
        return read_results(path)
    except Unusable as error:
        raise UserError(str(error)) from None


def labels(paths: Sequence[Path]) -> list[str]:
    """Return what tells the files apart in a table: nothing where there is one."""
    if len(paths) == 1:
        return [""]
    names = [path.name.removesuffix(".gz").removesuffix(".json") for path in paths]
    for told in (names, list(map(str, paths))):
        if len(set(told)) == len(told):
            return told
    return [f"{number}. {path}" for number, path in enumerate(paths, 1)]


REPORTS = tuple(name for name in registry.names() if not name.endswith(TABLE))
"""The names of the formats that a report can be written in."""
TEXTS = tuple(name for name in REPORTS if name not in registry.PICTURES)
"""Those that tables can be printed in."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments after ``show``."""
    made = argparse.ArgumentParser(
        prog="zodbshootout show",
        description="Print the tables of result files; several are shown side by side.",
        allow_abbrev=False,
    )
    raise_usage_errors(made)
    made.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a file that -o or --append has named"
    )
    made.add_argument(
        "--format", default="text", metavar="FORMAT",
        help=f"one of {', '.join(TEXTS)} (default: text)",
    )  # fmt: skip
    made.add_argument(
        "--layout", choices=("cells", "table"), default="cells",
        help="in CSV, a line for each cell (cells, the default), or for each row of the table",
    )  # fmt: skip
    made.add_argument(
        "--unit", choices=list(UNITS), default=OBJECTS.name,
        help="what the figures of tables are: objects per second (the default), mean seconds per "
        "iteration, their standard deviation, or latencies of single iterations",
    )  # fmt: skip
    made.add_argument(
        "--relative-to", metavar="NAME", help="show multiples of the figures of that contender"
    )
    made.add_argument(
        "--baseline", metavar="NAME",
        help="compare the others with that contender below the table (default: the first)",
    )  # fmt: skip
    return made
