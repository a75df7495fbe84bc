"""``zodbshootout workload``: describe the recorded workloads of applications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from zodbshootout.cli import values
from zodbshootout.cli.arguments import given_by, option
from zodbshootout.cli.output import Streams
from zodbshootout.cli.report import FORCE, ReportFile
from zodbshootout.cli.show import labels
from zodbshootout.errors import UserError
from zodbshootout.recording.description import describe
from zodbshootout.recording.recorded import Workload, WorkloadError
from zodbshootout.reports import checked_format, formats
from zodbshootout.reports.elements import Report
from zodbshootout.reports.workload_report import workload_report


@dataclass(frozen=True)
class WorkloadOptions:
    """Describe workloads that <recording> sections have recorded.

    The description has transactions, loads, stores, sizes and conflicts, and says where the storage
    spends its time.
    """

    # fmt: off
    files: Sequence[Workload] = option("FILE", nargs="+", type=values.workload,
        help="the directory that a <recording> section names, one of the files in that directory, "
        "or the name of an installed workload, such as plone")
    format: str | None = option(
        "--format FORMAT", help=f"one of {', '.join(formats())} (default: text)")
    output: Path | None = option("-o --output PAGE", type=Path,
        help="write to this file, in the format of its ending: .html, .md, .csv and so on")
    force: bool = given_by(FORCE)
    # fmt: on


def run(options: WorkloadOptions, streams: Streams) -> int:
    """Print the descriptions of workloads, or write them to a file; return the exit status.

    :raises UserError: if a workload cannot be read, or its description cannot be shown or written
    """
    if options.output is None:
        write = checked_format(options.format or "text", pictures=False)
        write(_report(options.files), streams.out)
        return 0
    paths = [workload.path for workload in options.files]
    file = ReportFile.checked("-o", options.output, paths, options.format, force=options.force)
    file.write(_report(options.files), streams)
    return 0


def _report(workloads: Sequence[Workload]) -> Report:
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
