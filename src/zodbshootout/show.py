"""``zodbshootout show``: print what result files hold."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from zodbshootout.arguments import UsageError, raise_usage_error
from zodbshootout.client.benchmarks.registry import benchmarks
from zodbshootout.config.explanation import suggestion
from zodbshootout.reports.figures import OBJECTS, UNITS
from zodbshootout.reports.registry import formats
from zodbshootout.reports.report import Heading, NoSuchContender, Source, make_report
from zodbshootout.result_files import Unusable, read_results
from zodbshootout.results import CellResult
from zodbshootout.streams import Streams

TABLE = "-table"
"""What the name of a format ends in that lays cells out as the table does."""


def show(arguments: Sequence[str], streams: Streams) -> None:
    """Print the tables of some files.

    :raises UsageError: with one line for the user
    :raises SystemExit: after ``--help``
    """
    found = parser().parse_args(arguments)
    name = f"{found.format}{TABLE}" if found.layout == "table" else found.format
    if found.format not in formats():
        raise UsageError(f"--format: no {found.format!r}; {suggestion(found.format, _names())}")
    if found.layout == "table" and name not in formats():
        raise UsageError(f"--layout: {found.format} has no other layout; csv has")
    sources = [
        Source(_results(path), label)
        for path, label in zip(found.files, _labels(found.files), strict=True)
    ]
    try:
        report = make_report(sources, headings(), UNITS[found.unit], found.relative_to)
    except NoSuchContender as error:
        raise UsageError(f"--relative-to: {error}") from None
    formats()[name](report, streams.out)


def headings() -> dict[str, Heading]:
    """Return what the rows of tables say of the benchmarks that are installed."""
    return {name: Heading(each.title, each.counted) for name, each in benchmarks().items()}


def _results(path: Path) -> list[CellResult]:
    try:
        return read_results(path)
    except Unusable as error:
        raise UsageError(str(error)) from None


def _labels(paths: Sequence[Path]) -> list[str]:
    """Return what tells the files apart in a table: nothing where there is one."""
    if len(paths) == 1:
        return [""]
    names = [path.name.removesuffix(".gz").removesuffix(".json") for path in paths]
    return names if len(set(names)) == len(names) else list(map(str, paths))


def _names() -> list[str]:
    return [name for name in formats() if not name.endswith(TABLE)]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments after ``show``."""
    made = argparse.ArgumentParser(
        prog="zodbshootout show",
        description="Print the tables of result files; several are shown side by side.",
        allow_abbrev=False,
    )
    made.error = raise_usage_error  # type: ignore[method-assign]
    made.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a file that -o or --append has named"
    )
    made.add_argument(
        "--format", default="text", metavar="FORMAT",
        help=f"one of {', '.join(_names())} (default: text)",
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
    return made
