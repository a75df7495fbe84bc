"""``zodbshootout report``: write a page with charts, or pictures, of what result files hold."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path

from rich.console import Console

from zodbshootout.cli.arguments import raise_usage_errors
from zodbshootout.cli.show import REPORTS, check_format, headings, labels, results_in
from zodbshootout.cli.streams import Streams
from zodbshootout.errors import UserError
from zodbshootout.reports import registry
from zodbshootout.reports.records import Source
from zodbshootout.reports.report import NothingToShow
from zodbshootout.reports.sections import Sections
from zodbshootout.reports.tables import NoSuchContender
from zodbshootout.results.files import temporary_beside

WIDTH = 1000
"""Of plain text: lines are not broken."""


def report(arguments: Sequence[str], streams: Streams) -> None:
    """Write the report of some files.

    :raises UserError: with one line for the user
    :raises SystemExit: after ``--help``
    """
    found = parser().parse_args(arguments)
    name = format_for("-o", found.output, found.format)
    sources = [
        Source(results_in(path), label, path.name)
        for path, label in zip(found.files, labels(found.files), strict=True)
    ]
    try:
        write_report(sources, found.output, name, found.baseline, found.ceiling)
    except (NoSuchContender, NothingToShow) as error:
        raise UserError(f"report: {error}") from None
    except OSError as error:
        raise UserError(f"-o: cannot write {found.output}: {error.strerror}") from None
    streams.say(f"Report: {found.output}")


def format_for(option: str, path: Path, given: str | None = None) -> str:
    """Return the name of the format of a file: what is *given*, or what its ending stands for.

    :raises UserError: when there is no such format or file, or what it needs is not installed
    """
    if path.is_dir():
        raise UserError(f"{option}: {path} is a directory; name a file, such as page.html")
    if given is not None:
        check_format(given, REPORTS)
        return given
    name = registry.format_of(path)
    if name is None:
        raise UserError(
            f"{option}: {path}: no format ends in {path.suffix or 'nothing'!r}; name a file such "
            "as page.html"
        )
    try:
        registry.format_named(name)
    except registry.NotInstalled as error:
        raise UserError(f"{option}: {error}") from None
    return name


def write_report(
    sources: Sequence[Source],
    path: Path,
    name: str,
    baseline: str | None = None,
    ceiling: str | None = None,
) -> None:
    """Write the whole report of some results to a file, in place of what is there.

    :raises NoSuchContender: when no column has the title *baseline* or *ceiling*
    :raises NothingToShow: when the format can show nothing of them
    :raises OSError: when the file cannot be written; what was there before is still there
    """
    whole = Sections(sources, headings(), baseline, ceiling).report()
    temporary = temporary_beside(path)
    try:
        with temporary.open("wb") as binary, TextIOWrapper(binary, encoding="utf-8") as file:
            registry.format_named(name)(whole, Console(file=file, width=WIDTH))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments after ``report``."""
    made = argparse.ArgumentParser(
        prog="zodbshootout report",
        description="Write a page with tables and charts of result files; several are shown side "
        "by side.",
        allow_abbrev=False,
    )
    raise_usage_errors(made)
    made.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a file that -o or --append has named"
    )
    made.add_argument(
        "-o", "--output", type=Path, required=True, metavar="PAGE",
        help="write to this file; its ending tells the format: .html, .md, .svg, .png and so on",
    )  # fmt: skip
    made.add_argument(
        "--format", metavar="FORMAT",
        help=f"write in this format whatever the ending is: {', '.join(REPORTS)}",
    )  # fmt: skip
    made.add_argument(
        "--baseline", metavar="NAME",
        help="compare the others with that contender (default: the first)",
    )  # fmt: skip
    made.add_argument(
        "--ceiling", metavar="NAME",
        help="draw that contender as the limit of the others, such as one that does nearly nothing",
    )  # fmt: skip
    return made
