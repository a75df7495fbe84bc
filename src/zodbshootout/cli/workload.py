"""``zodbshootout workload``: describe the recorded workloads of applications."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from zodbshootout.cli import values
from zodbshootout.cli.output import Streams
from zodbshootout.cli.report import check_output, name_output, write_report
from zodbshootout.cli.show import labels
from zodbshootout.errors import UserError
from zodbshootout.recording.description import describe
from zodbshootout.recording.recorded import Workload, WorkloadError
from zodbshootout.reports import checked_format, format_of_file, formats
from zodbshootout.reports.elements import Report
from zodbshootout.reports.workload_report import workload_report


def run(options: argparse.Namespace, streams: Streams) -> int:
    """Print the descriptions of workloads, or write them to a file; return the exit status.

    :raises UserError: if a workload cannot be read, or its description cannot be shown or written
    """
    if options.output is None:
        write = checked_format(options.format or "text", pictures=False)
        write(_report(options.files), streams.out)
        return 0
    check_output("-o", options.output, [workload.path for workload in options.files])
    write = format_of_file(options.output, "-o", options.format)
    write_report(_report(options.files), options.output, write)
    name_output("Report", options.output, streams)
    return 0


def _report(workloads: list[Workload]) -> Report:
    """Return a report on the workloads; if there are several, it has a part for each."""
    paths = [workload.path for workload in workloads]
    names = [path.name for path in paths] if len(paths) == 1 else labels(paths)
    reports = []
    for workload, name in zip(workloads, names, strict=True):
        try:
            report = workload_report(name, workload, describe(workload))
        except WorkloadError as error:
            raise UserError(str(error)) from None
        reports.append(replace(report, title=name))
    if len(reports) == 1:
        return reports[0]
    records = [record for report in reports for record in report.records]
    return Report(title=", ".join(names), parts=reports, records=records)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command to its parser."""
    parser.description = (
        "Describe workloads that <recording> sections have recorded: transactions, loads, stores, "
        "sizes, conflicts, and where the storage spends its time."
    )
    parser.add_argument(
        "files", nargs="+", type=values.workload, metavar="FILE",
        help="the directory that a <recording> section names, one of the files in that directory, "
        "or the name of an installed workload, such as plone",
    )  # fmt: skip
    parser.add_argument(
        "--format", metavar="FORMAT", help=f"one of {', '.join(formats())} (default: text)"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PAGE",
        help="write to this file, in the format of its ending: .html, .md, .csv and so on",
    )  # fmt: skip
