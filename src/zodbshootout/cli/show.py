"""``zodbshootout show``: print the tables of result files."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from zodbshootout.cli.arguments import flag, given_by, option, record
from zodbshootout.cli.output import Streams, project_url
from zodbshootout.cli.values import LAST, is_last, quantity, result_to_read
from zodbshootout.model.quantities import QUANTITIES, Quantity
from zodbshootout.reports import checked_format, formats, table_layout
from zodbshootout.reports.cells import Cells, ResultSet
from zodbshootout.reports.costs import costs_report
from zodbshootout.reports.over_time import over_time_report
from zodbshootout.reports.tables import tables_with_comparisons
from zodbshootout.results.files import damage_of, read_results

FILES = record(
    "FILE", nargs="+", type=result_to_read,
    help="a file written by -o or --append, or a file in the .d directory beside it; 'last' stands "
    "for the newest of the current directory's runs",
)  # fmt: skip
BASELINE = record(
    "--baseline NAME", help="compare the other contenders with NAME (default: with the first)"
)


@dataclass(frozen=True)
class ShowOptions:
    """Print the tables of result files; several are shown side by side."""

    # fmt: off
    files: Sequence[Path] = given_by(FILES)
    format: str = option("--format FORMAT", "text",
        help=f"one of {', '.join(formats(pictures=False))} (default: text)")
    layout: str = option("--layout", "cells", choices=("cells", "table"),
        help="in CSV, a line for each cell (cells, the default) or each row of the table (table)")
    unit: Quantity | None = option("--unit NAME", type=quantity,
        help=f"show this quantity instead of the usual figures: {', '.join(QUANTITIES)}, or any "
        "other percentile of latencies, such as p99.5")
    costs: bool = flag("--costs",
        help="print what each benchmark costs besides time: processor time and memory of clients "
        "and of private servers, what they write, and the growth of the database")
    over_time: bool = flag("--over-time",
        help="print how figures changed during the minutes of --for: throughput, latencies, "
        "processor time, memory and the size of the database; CSV and JSON have the figures of "
        "each run")
    baseline: str | None = given_by(BASELINE)
    # fmt: on


def run(options: ShowOptions, streams: Streams) -> int:
    """Print the tables of the files; return the exit status.

    :raises UserError: if something cannot be read or shown
    """
    write = checked_format(options.format, pictures=False)
    if options.layout == "table":
        write = table_layout(options.format)
    result_sets = read_files(options.files)
    with damage_of(*options.files):
        if options.costs:
            report = costs_report(result_sets)
        elif options.over_time:
            report = over_time_report(result_sets)
        else:
            report = tables_with_comparisons(result_sets, options.unit, options.baseline)
        write(report, streams.out)
    if options.format == "text":
        for line in next_commands(result_sets):
            streams.say(line)
    return 0


def next_commands(result_sets: Sequence[ResultSet]) -> Iterator[str]:
    """Yield commands to type next, and the address of a page on tables.

    If nothing was measured, yield nothing.
    """
    paths = [results.path for results in result_sets if results.path]
    if not paths or not any(result.measured for sets in result_sets for result in sets.results):
        return
    files = " ".join(shlex.quote(str(path)) for path in paths)
    page = paths[0].with_name(f"{paths[0].name.partition('.json')[0]}.html")
    if len(paths) == 1 and is_last(paths[0]):
        files, page = LAST, Path("page.html")
    yield "Next:"
    first, *others = (
        list(dict.fromkeys(column for column, _ in Cells.of([replace(file, label="")]).timed))
        for file in result_sets
    )
    if len(others) == 1 and set(first) & set(others[0]):
        yield f"  zodbshootout compare {files}"
    elif not others and len(first) > 1:
        base, new = map(shlex.quote, first[:2])
        yield f"  zodbshootout compare {files} --contender {base} {new}"
        yield f"  zodbshootout show {files} --baseline {new}"
    yield f"  zodbshootout report {files} -o {shlex.quote(str(page))}"
    yield f"  zodbshootout show {files} --format markdown"
    yield f"Reading the table: {project_url('Documentation')}en/latest/results.html"


def read_files(paths: Sequence[Path]) -> list[ResultSet]:
    """Return the results in several files.

    :raises UserError: if a file holds no results
    """
    return [
        ResultSet(read_results(path), label, path)
        for path, label in zip(paths, labels(paths), strict=True)
    ]


def labels(paths: Sequence[Path]) -> list[str]:
    """Return labels that distinguish files in a table; the label of a single file is empty."""
    if len(paths) == 1:
        return [""]
    names = [path.name.removesuffix(".gz").removesuffix(".json") for path in paths]
    for candidates in (names, list(map(str, paths))):
        if len(set(candidates)) == len(candidates):
            return candidates
    return [f"{number}. {path}" for number, path in enumerate(paths, 1)]
