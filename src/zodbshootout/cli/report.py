"""``zodbshootout report``: write a page with charts, or pictures, from result files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from zodbshootout.cli.arguments import given_by, option, record
from zodbshootout.cli.output import Streams
from zodbshootout.cli.show import BASELINE, FILES, read_files
from zodbshootout.errors import UserError
from zodbshootout.reports import Write, format_by_ending, format_of_file, formats
from zodbshootout.reports.elements import Report
from zodbshootout.reports.sections import whole_report
from zodbshootout.results.files import damage_of, holds_results
from zodbshootout.results.replacement import replace_file, to_be_replaced

WIDTH = 1000
"""The width of plain text, in characters; it is so large that no line is wrapped."""
FORCE = record(
    "--force",
    False,
    action="store_true",
    help="replace the file even if it is not a page of zodbshootout",
)
_MARK = "<!-- zodbshootout -->\n"
_MARKED = frozenset({"html", "markdown", "svg"})
"""The formats of pages that end with a mark, a comment."""
_PAGE = re.compile(
    rb"<!-- zodbshootout -->\s*\Z|\0zodbshootout|\A(\s*\Z|\n[^\n]+\n==+\n|file,benchmark,"
    rb'|workload,figure,|\[\s*\{\s*"(file"|workload"|name".*\s*"unit"))'
)
"""What a page of this program contains in each format; an empty file can be replaced, too."""


@dataclass(frozen=True)
class ReportOptions:
    """Write a page with tables and charts of result files; several are shown side by side."""

    # fmt: off
    files: Sequence[Path] = given_by(FILES)
    output: Path = option("-o --output PAGE", type=Path, required=True,
        help="write to this file, in the format of its ending: .html, .md, .svg, .png and so on")
    format: str | None = option("--format FORMAT",
        help=f"write in this format, whatever the ending: {', '.join(formats())}")
    baseline: str | None = given_by(BASELINE)
    force: bool = given_by(FORCE)
    # fmt: on


def run(options: ReportOptions, streams: Streams) -> int:
    """Write the report of the files; return the exit status.

    :raises UserError: if something cannot be read, shown or written
    """
    file = ReportFile.checked(
        "-o", options.output, options.files, options.format, force=options.force
    )
    with damage_of(*options.files):
        file.write(whole_report(read_files(options.files), options.baseline), streams)
    return 0


@dataclass(frozen=True)
class ReportFile:
    """A file for a report, which replaces an earlier report."""

    option: str
    """The option that names the file."""
    path: Path
    written_by: Write
    is_marked: bool = False
    """Whether the format has comments, and so a mark at the end."""

    @classmethod
    def checked(
        cls,
        option: str,
        path: Path,
        inputs: Sequence[Path],
        form: str | None = None,
        *,
        force: bool = False,
    ) -> ReportFile:
        """Return the file of *option*, whose ending selects the format unless *form* names it.

        :raises UserError: if the file is a directory, is one of the *inputs*, or holds results or,
            unless *force* is true, anything else than a page, or if there is no such format
        :raises OSError: if the file's name is invalid, or the file is something like a socket
        """
        if path.is_dir():
            raise UserError(f"{option}: {path} is a directory; name a file, such as page.html")
        target = to_be_replaced(path)
        read = {Path(os.path.realpath(file)) for file in inputs}
        if target in read or holds_results(path):
            raise UserError(f"{option}: {path} holds results or is an input; name another file")
        is_marked = (form or format_by_ending(path)) in _MARKED
        file = cls(option, path, format_of_file(path, option, form), is_marked)
        if target is not None and target.exists() and not (force or _is_page(target)):
            advice = "name another file" + (", or use --force" if option == "-o" else "")
            raise UserError(f"{option}: {path} exists and is not a page of zodbshootout; {advice}")
        return file

    def write(self, report: Report, streams: Streams) -> None:
        """Write a report, and print the path of the file unless it is a pipe or a device.

        :raises UserError: if the format can show nothing of the report, or the file cannot be
            written; the content of the file is unchanged then
        """

        def write_to(temporary: Path) -> None:
            with temporary.open("w", encoding="utf-8") as file:
                self.written_by(report, Console(file=file, width=WIDTH))
                if self.is_marked:
                    file.write(_MARK)

        try:
            replace_file(self.path, write_to)
        except (OSError, UserError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UserError(f"{self.option}: cannot write {self.path}: {reason}") from None
        if to_be_replaced(self.path) is not None:
            streams.say(f"Report: {self.path}")


def _is_page(path: Path) -> bool:
    """Return whether this program wrote a file; if the file cannot be read, it did not."""
    try:
        return _PAGE.search(path.read_bytes()) is not None
    except OSError:
        return False
