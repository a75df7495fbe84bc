"""``zodbshootout show``: print the tables of result files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from zodbshootout.cli.output import Streams
from zodbshootout.cli.values import result_to_read
from zodbshootout.reports import checked_format, formats, table_layout
from zodbshootout.reports.headings import ResultSet
from zodbshootout.reports.metrics import METRICS, OBJECTS
from zodbshootout.reports.tables import tables_with_comparisons
from zodbshootout.results.files import read_results


def run(options: argparse.Namespace, streams: Streams) -> int:
    """Print the tables of the files; return the exit status.

    :raises UserError: if something cannot be read or shown
    """
    write = checked_format(options.format, pictures=False)
    if options.layout == "table":
        write = table_layout(options.format)
    report = tables_with_comparisons(
        read_files(options.files), METRICS[options.unit], options.relative_to, options.baseline
    )
    write(report, streams.out)
    return 0


def read_files(paths: Sequence[Path]) -> list[ResultSet]:
    """Return the results in several files.

    :raises UserError: if a file holds none
    """
    return [
        ResultSet(read_results(path), label, path)
        for path, label in zip(paths, labels(paths), strict=True)
    ]


def labels(paths: Sequence[Path]) -> list[str]:
    """Return labels that distinguish files in a table; an empty one for a single file."""
    if len(paths) == 1:
        return [""]
    names = [path.name.removesuffix(".gz").removesuffix(".json") for path in paths]
    for candidates in (names, list(map(str, paths))):
        if len(set(candidates)) == len(candidates):
            return candidates
    return [f"{number}. {path}" for number, path in enumerate(paths, 1)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command to its parser."""
    parser.description = "Print the tables of result files; several are shown side by side."
    parser.add_argument(
        "files", nargs="+", type=result_to_read, metavar="FILE",
        help="a file that -o or --append has named; last is the newest of this directory's runs",
    )  # fmt: skip
    parser.add_argument(
        "--format", default="text", metavar="FORMAT",
        help=f"one of {', '.join(formats(pictures=False))} (default: text)",
    )  # fmt: skip
    parser.add_argument(
        "--layout", choices=("cells", "table"), default="cells",
        help="in CSV, a line for each cell (cells, the default), or for each row of the table",
    )  # fmt: skip
    parser.add_argument(
        "--unit", choices=list(METRICS), default=OBJECTS.name,
        help="what the figures of tables are: objects per second (the default), mean seconds per "
        "iteration, their standard deviation, or latencies of single iterations",
    )  # fmt: skip
    parser.add_argument(
        "--relative-to", metavar="NAME", help="show multiples of the figures of that contender"
    )
    parser.add_argument(
        "--baseline", metavar="NAME",
        help="compare the others with that contender below the table (default: the first)",
    )  # fmt: skip
