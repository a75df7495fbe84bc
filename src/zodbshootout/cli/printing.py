"""What a run prints at its end: its plan or its results, and the page of ``--report``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from zodbshootout.cli.destination import Destination
from zodbshootout.cli.options import Options
from zodbshootout.cli.output import Streams
from zodbshootout.cli.show import next_commands
from zodbshootout.errors import ALL_MEASURED, SOME_FAILED, UserError
from zodbshootout.model.outcome import State
from zodbshootout.model.wording import counted
from zodbshootout.reports import text
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.sections import whole_report
from zodbshootout.reports.tables import make_report, tables_with_comparisons
from zodbshootout.results.files import recorded
from zodbshootout.results.names import long_name
from zodbshootout.results.result import CellResult
from zodbshootout.results.trend import with_trends
from zodbshootout.scheduling.plan import Plan

PYPERF = {
    "metadata": ["show", "--metadata"], "dump": ["dump"], "stats": ["stats"], "hist": ["hist"],
}  # fmt: skip
"""pyperf's commands, by the options that ask for them."""


def show_plan(plan: Plan, streams: Streams) -> int:
    """Print which cells can be measured, and for how long; return the exit status."""
    results = [
        CellResult(cell)
        if (failure := plan.failure(cell)) is None
        else CellResult(cell).failed(failure)
        for cell in plan.cells
    ]
    report = make_report([ResultSet(recorded(results, streams.mask))], pending="yes")
    text.write(report, streams.out)
    effort, minutes = plan.effort, plan.estimated_seconds() / 60
    runnable = sum(result.state is State.NOT_RUN for result in results)
    cells = counted(runnable, "cell")
    if effort.precision:
        streams.say(
            f"{cells}, measured until all are known within {100 * effort.precision:g} %, "
            f"{'about' if plan.assured_seconds else 'at most'} {minutes:.1f} minutes"
        )
    elif effort.duration:
        streams.say(f"{cells}, about {minutes:.1f} minutes (--for)")
    else:
        streams.say(f"{cells}, {effort.processes} runs of each, about {minutes:.1f} minutes")
    failed = any(result.state is State.FAILED for result in results)
    return streams.status_after(SOME_FAILED if failed else ALL_MEASURED)


def show_results(
    results: Sequence[CellResult],
    to: Destination,
    baseline: str | None,
    options: Options,
    streams: Streams,
) -> int:
    """Print the table and pyperf's reports, and write the page; return the exit status."""
    for result in results if options.log == "DEBUG" else ():
        if result.detail:
            streams.tell(f"{long_name(result.cell)}: {result.detail}")
    result_sets = [ResultSet(with_trends(results), path=to.files.combined)]
    tables = tables_with_comparisons(result_sets, None, baseline)
    text.write(tables, streams.out)
    if not any(result.measured for result in results):
        return ALL_MEASURED
    statuses = [
        _show_by_pyperf(command, to.files.combined, streams)
        for option, command in PYPERF.items()
        if getattr(options, option)
    ]
    streams.say(f"Results: {to.files.combined}, and by contender in {to.files.directory}/")
    if to.page is not None:
        try:
            to.page.write(whole_report(result_sets, baseline), streams)
        except UserError as error:
            raise UserError(str(error), SOME_FAILED) from None
    if not options.quiet:
        for line in next_commands(result_sets):
            streams.say(line)
    return max(statuses, default=ALL_MEASURED)


def _show_by_pyperf(command: Sequence[str], path: Path, streams: Streams) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "pyperf", *command, str(path)],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.stdout:
        streams.say(done.stdout.rstrip())
    if not done.returncode:
        return ALL_MEASURED
    reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    streams.complain(f"pyperf {' '.join(command)} failed: {reason}")
    return SOME_FAILED
