"""``zodbshootout report``: write a page with charts, or pictures, from result files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from zodbshootout.cli.output import Streams
from zodbshootout.cli.show import read_files
from zodbshootout.cli.values import result_to_read
from zodbshootout.errors import UserError
from zodbshootout.reports import Write, format_of_file, formats
from zodbshootout.reports.elements import Report
from zodbshootout.reports.sections import whole_report
from zodbshootout.results.files import damage_of, holds_results
from zodbshootout.results.replacement import replace_file, to_be_replaced

WIDTH = 1000
"""The width of plain text, in characters; it is so large that no line is wrapped."""


def run(options: argparse.Namespace, streams: Streams) -> int:
    """Write the report of the files; return the exit status.

    :raises UserError: if something cannot be read, shown or written
    """
    check_output("-o", options.output, options.files)
    write = format_of_file(options.output, "-o", options.format)
    with damage_of(*options.files):
        report = whole_report(read_files(options.files), options.baseline)
        write_report(report, options.output, write)
    name_output("Report", options.output, streams)
    return 0


def check_output(option: str, path: Path, inputs: Sequence[Path]) -> None:
    """Check that a report may replace the file of *option*.

    :raises UserError: if the file is a directory, is one of the *inputs*, or holds results
    :raises OSError: if the file's name is invalid, or the file is something like a socket
    """
    if path.is_dir():
        raise UserError(f"{option}: {path} is a directory; name a file, such as page.html")
    target = to_be_replaced(path)
    read = {Path(os.path.realpath(file)) for file in inputs}
    if target in read or holds_results(path):
        raise UserError(f"{option}: {path} holds results or is an input; name another file")


def write_report(report: Report, path: Path, write: Write, option: str = "-o") -> None:
    """Replace the file of *option* with a report.

    :raises UserError: if the format can show nothing of the report, or the file cannot be written;
        the content of the file is unchanged then
    """

    def write_to(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8") as file:
            write(report, Console(file=file, width=WIDTH))

    try:
        replace_file(path, write_to)
    except (OSError, UserError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{option}: cannot write {path}: {reason}") from None


def name_output(title: str, path: Path, streams: Streams) -> None:
    """Print the path of a file that was written, unless it is a pipe or a device."""
    if to_be_replaced(path) is not None:
        streams.say(f"{title}: {path}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command to its parser."""
    parser.description = (
        "Write a page with tables and charts of result files; several are shown side by side."
    )
    parser.add_argument(
        "files", nargs="+", type=result_to_read, metavar="FILE",
        help="a file written by -o or --append; 'last' stands for the newest of the current "
        "directory's runs",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="PAGE",
        help="write to this file, in the format of its ending: .html, .md, .svg, .png and so on",
    )  # fmt: skip
    parser.add_argument(
        "--format", metavar="FORMAT",
        help=f"write in this format, whatever the ending: {', '.join(formats())}",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="NAME",
        help="compare the other contenders with NAME (default: with the first)",
    )  # fmt: skip
