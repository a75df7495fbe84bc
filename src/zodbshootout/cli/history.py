"""``zodbshootout history``: judge a history's newest run (point), and write a page on all runs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from zodbshootout.cli.output import Streams
from zodbshootout.cli.report import check_output, name_output, write_report
from zodbshootout.cli.values import limit
from zodbshootout.errors import ALL_MEASURED, SLOWDOWN, UserError, suggestion
from zodbshootout.reports import checked_format, format_of_file, formats
from zodbshootout.reports.elements import Report
from zodbshootout.reports.history_report import atom, exported, history_report, sentence
from zodbshootout.results.anchor import read_accepted
from zodbshootout.results.history import by_machine, read_points
from zodbshootout.results.watching import MachineHistory, machine_histories

EXPORTS = {"customBiggerIsBetter": True, "customSmallerIsBetter": False}
"""The formats for github-action-benchmark, and whether bigger is better in each."""


def run(options: argparse.Namespace, streams: Streams) -> int:
    """Print the newest verdicts; return the exit status.

    :raises UserError: if something cannot be read, shown or written
    """
    histories = read_histories(options.directory)
    if options.format in EXPORTS:
        entries = exported(histories[0], bigger_is_better=EXPORTS[options.format])
        _write(json.dumps(entries, indent=1) + "\n", streams.out)
    else:
        known = [*formats(pictures=False), *EXPORTS]
        if options.format not in known:
            raise UserError(f"--format: no {options.format!r}; {suggestion(options.format, known)}")
        checked_format(options.format, pictures=False)(history_report(histories), streams.out)
    if options.report is not None:
        write_pages(histories, options.report, streams)
    return gate(histories[0], options.fail_above, streams)


def read_histories(directory: Path) -> list[MachineHistory]:
    """Return the histories in a directory, one per machine; the one with the newest point is first.

    :raises UserError: if there are no points, or accepted.toml names an unknown one
    """
    points = read_points(directory)
    if not points:
        raise UserError(
            f"{directory} holds no points; to make one: zodbshootout FILE --history {directory}"
        )
    accepted = read_accepted(directory)
    names = [point.name for point in points]
    for change in accepted:
        if change.point not in names:
            raise UserError(
                f"{directory}/accepted.toml: no point {change.point!r}; "
                f"{suggestion(change.point, names[-5:])}"
            )
    return machine_histories(by_machine(points), accepted)


def gate(history: MachineHistory, limit: float | None, streams: Streams) -> int:
    """Print changes for the worse beyond *limit* at the newest point; return the exit status."""
    if limit is None:
        return ALL_MEASURED
    beyond = [
        finding
        for finding in history.findings[history.newest.name]
        if not finding.accepted and finding.is_beyond(limit)
    ]
    for finding in beyond:
        streams.complain(f"beyond {100 * limit:g} %: {sentence(finding)}")
    return SLOWDOWN if beyond else ALL_MEASURED


def write_pages(histories: Sequence[MachineHistory], path: Path, streams: Streams) -> None:
    """Write the report of *histories* and, if *path* is an HTML file, an Atom feed beside it.

    :raises UserError: if a file cannot be written
    """
    check_output("--report", path, [])
    write = format_of_file(path, "--report")
    has_charts = path.suffix.lower() in {".html", ".htm", ".svg", ".png"}
    report = history_report(histories, page=has_charts)
    write_report(report, path, write, "--report")
    name_output("Report", path, streams)
    if path.suffix.lower() in {".html", ".htm"}:
        feed = path.with_suffix(".atom")
        text = atom(histories, path.name)
        write_report(Report(), feed, lambda _, console: _write(text, console), "--report")
        name_output("Feed", feed, streams)


def _write(text: str, console: Console) -> None:
    console.file.write(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the usage, the description and the arguments of the command to its parser."""
    parser.usage = "zodbshootout history DIR [option ...]"
    parser.description = (
        "Print the verdicts on the newest point of a history, hints of slow drift, and the changes "
        "that were accepted.  zodbshootout FILE --history DIR adds a point."
    )
    parser.epilog = (
        "Exit status: 0, or 1 if --fail-above finds a change for the worse; 2 bad usage."
    )
    parser.add_argument(
        "directory", type=Path, metavar="DIR", help="the directory given to --history"
    )
    parser.add_argument(
        "--report", type=Path, metavar="PAGE",
        help="write a page with a chart of each benchmark to this file, and an Atom feed beside it",
    )  # fmt: skip
    parser.add_argument(
        "--format", default="text", metavar="FORMAT",
        help="a format of zodbshootout show (csv and json have all points); or, for "
        f"github-action-benchmark, {' or '.join(EXPORTS)}",
    )  # fmt: skip
    parser.add_argument(
        "--fail-above", type=limit, metavar="PERCENT",
        help="exit with status 1 if a cell of the newest point takes longer, or costs more, than "
        "with the previous packages or with the anchor; an increase counts if its whole confidence "
        "interval is above PERCENT",
    )  # fmt: skip
