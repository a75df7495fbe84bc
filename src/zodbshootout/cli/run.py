"""A run: from its options to the table, the files and the exit status."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from zodbshootout.cli.destination import check_like, check_other_files, result_files
from zodbshootout.cli.gate import FAILURES, judged, status_of
from zodbshootout.cli.launcher import launcher_for
from zodbshootout.cli.options import COPY, Options
from zodbshootout.cli.output import Streams
from zodbshootout.cli.progress import progress_on
from zodbshootout.cli.report import name_output, write_report
from zodbshootout.cli.show import next_commands
from zodbshootout.cli.values import ASK, FORCE
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.data import workload_objects
from zodbshootout.client.data.sources import facts_of
from zodbshootout.client.data.trace import make_trace
from zodbshootout.config.source import Source, read_source
from zodbshootout.config.uri import source_of
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.private import with_private_data
from zodbshootout.contenders.selection import (
    baseline_among,
    named,
    not_moved,
    only_clients_in_environments,
    refused_unless_alone,
    shared_databases,
    to_be_zapped,
)
from zodbshootout.contenders.variants import read_variants
from zodbshootout.crews.cluster import Cluster
from zodbshootout.errors import ALL_MEASURED, INTERRUPTED, SOME_FAILED, UserError, errors_of_files
from zodbshootout.guardian import Guardian, GuardianLost
from zodbshootout.model.grouping import grouped
from zodbshootout.model.outcome import State, describe
from zodbshootout.model.parameters import CLIENTS
from zodbshootout.model.specification import CopiedData, ReplayedWorkload
from zodbshootout.model.wording import counted
from zodbshootout.recording.recorded import Workload, WorkloadError
from zodbshootout.reports import format_of_file, text
from zodbshootout.reports.comparison import ColumnComparison
from zodbshootout.reports.headings import ResultSet
from zodbshootout.reports.sections import whole_report
from zodbshootout.reports.tables import make_report, tables_with_comparisons
from zodbshootout.results.files import ResultFiles
from zodbshootout.results.names import long_name
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import compare
from zodbshootout.results.trend import with_trends
from zodbshootout.scheduling.fork_servers import ForkServers
from zodbshootout.scheduling.host_checks import check_hosts, on_hosts
from zodbshootout.scheduling.opening import open_all
from zodbshootout.scheduling.orders import Tasks
from zodbshootout.scheduling.plan import Plan, make_plan
from zodbshootout.scheduling.result_store import Observer, ResultStore
from zodbshootout.scheduling.shootout import Shootout
from zodbshootout.servers.dask import cluster_for

LARGE_FILE = 2**22
"""The size in bytes above which reading a workload or a FileStorage takes seconds."""
MAPPING = "\n<zodb mapping>\ncache-size 5000\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"
"""The contender that ``--include-mapping`` adds."""


def run(options: Options, streams: Streams) -> int:
    """Measure what the options ask for, print the results, and return the exit status.

    :raises UserError: if the run is not possible, or its results cannot be written
    """
    # Directories remain until the guardian has ended the processes that use them.
    with ExitStack() as directories, _guardian() as guardian, ExitStack() as stack:
        with errors_of_files():
            variants = read_variants(
                _sources(options), options.variants, directories, guardian, streams.mask
            )
            contenders = variants.contenders(options.only)
            options = _with_names(options, contenders)
            directory = variants.context.directory
            options = _with_trace(options, directory, streams)
            options = _with_copied(options, directory, streams)
            cluster = stack.enter_context(cluster_for(options.hosts, guardian, directory))
            if cluster is not None:
                contenders = [contender.on_hosts(cluster) for contender in contenders]
                options = replace(options, sweep=on_hosts(options.sweep, cluster))
            plan = make_plan(contenders, options.benchmarks, options.sweep, options.effort)
            files = replace(result_files(options, plan), mask=streams.mask)
            check_other_files(options, plan, files.combined)
        with (
            progress_on(streams, len(plan.rows), options) as observer,
            ForkServers(
                launcher_for(options, variants, observer, streams.mask.secrets)
            ) as fork_servers,
        ):
            plan, servers = open_all(variants, plan, fork_servers, stack, observer)
            plan, notes = _settled(options, plan, cluster)
            for note in notes:
                streams.complain(note)
            options = _with_zapped(options, plan, streams, observer)
            variables = {*variants.environment_names, *options.inherit_environ}
            tasks = Tasks(plan, options.run, cluster, sorted(variables))
            store = ResultStore(plan, observer, files.write, options.run.fail_fast, files.begun)
            shootout = Shootout(tasks, store, fork_servers, servers)
            check_like(files, plan, shootout.expected_metadata, options)
            if not options.list_only:
                status, message = _measure(shootout)
                interrupted, again = _measured_again(shootout, status, options)
                if interrupted:
                    status, message = INTERRUPTED, interrupted
                _show_log(cluster, options, observer)
        if options.list_only:
            return _show_plan(plan, files, streams)
        if message:
            streams.complain(message)
        recorded = files.recorded(shootout.store.results)
        status = _report(recorded, files, options, streams) or status
        status = _gate(status, [recorded, again], plan, options, streams)
    return streams.status_after(status, files.combined)


def _guardian() -> Guardian:
    try:
        return Guardian()
    except OSError as error:
        raise UserError(f"no process can be started: {error.strerror}") from error


def _sources(options: Options) -> list[Source]:
    sources = [
        read_source(file) if isinstance(file, Path) else source_of(file) for file in options.files
    ]
    if options.private:
        change = partial(with_private_data, only=options.only)
        sources = [replace(source, change=change) for source in sources]
    if options.include_mapping:
        sources[0] = replace(sources[0], text=sources[0].text + MAPPING)
    return sources


def _with_names(options: Options, contenders: Sequence[Contender]) -> Options:
    """Resolve the names in ``--baseline`` and ``--may-write``; check the names in other options."""
    names = [contender.title for contender in contenders]
    baseline = baseline_among(contenders, options.run.baseline)
    may_write = named("--may-write", options.run.may_write, names)
    named("--zap", _to_be_zapped(options), names)
    required = [one.contender for one in options.requirements if one.contender]
    named("--require", required, [name.lower() for name in names])
    option = "--leaks" if options.run.leaks else options.memory
    for contender in contenders:
        if option and contender.environment:
            raise UserError(
                f"{option} applies to this Python only, but {contender.title} uses another one; "
                "choose others with --only"
            )
    return replace(options, run=replace(options.run, baseline=baseline, may_write=may_write))


def _settled(options: Options, plan: Plan, cluster: Cluster | None) -> tuple[Plan, Sequence[str]]:
    """Adapt the plan to the contenders that were opened; return it with notes for the user."""
    if cluster is not None:
        check_hosts(cluster, plan)
    sweep, contenders = options.sweep, plan.contenders
    opened = [contender for contender in contenders if contender.title not in plan.unavailable]
    notes = [*shared_databases(opened), *only_clients_in_environments(contenders)]
    if any(options.variants.rtts):
        notes += not_moved(contenders)
    if options.private:
        files = " and ".join(map(str, options.paths))
        verb = "name" if len(options.paths) > 1 else "names"
        notes.append(
            f"--private: the run makes its own data; nothing that {files} {verb} is opened"
        )
    reason = refused_unless_alone(opened, sweep.parameters()[0]) or next(
        (why for name in options.benchmarks if (why := benchmarks()[name].alone)), None
    )
    if options.default_concurrency and sweep.values[CLIENTS] != [1] and reason:
        notes.append(f"1 client instead of {sweep.values[CLIENTS][0]:g}: {reason}")
        alone = replace(sweep, values={**sweep.values, CLIENTS: [1]})
        rows = make_plan(contenders, options.benchmarks, alone, options.effort).rows
        plan = replace(plan, rows=rows)
    return plan, notes


def _with_trace(options: Options, directory: Path, streams: Streams) -> Options:
    """Make a trace of the workload to replay, and put the trace into the parameters."""
    if options.workload is None:
        return options
    if options.workload.size > LARGE_FILE and not options.quiet:
        streams.tell(f"reading {options.workload.path}")
    try:
        replayed = make_trace(options.workload, directory / "workload.trace")
    except WorkloadError as error:
        raise UserError(f"--workload: {error}") from None
    if not replayed.transactions:
        raise UserError(f"--workload: {options.workload.path} holds no transactions")
    replayed = replace(replayed, speed=options.speed)
    if options.data is not None:
        replayed = _with_data(replayed, options.workload, options.data[0])
    base = replace(options.sweep.base, workload=replayed)
    return replace(options, sweep=replace(options.sweep, base=base))


def _with_data(replayed: ReplayedWorkload, workload: Workload, path: Path) -> ReplayedWorkload:
    if any(facts.get("anonymous") for facts in workload.facts):
        raise UserError(f"--data: {workload.path} is anonymous: its oids are not those of {path}")
    try:
        return workload_objects.with_data(replayed, path)
    except Exception as error:  # noqa: BLE001 - FileStorage raises exceptions of many kinds
        raise UserError(f"--data: {path}: {describe(error)}") from None


def _with_copied(options: Options, directory: Path, streams: Streams) -> Options:
    """Put facts about the FileStorage of ``--data`` into the parameters of ``copy``."""
    if COPY not in options.benchmarks:
        return options
    copied = CopiedData()
    if options.data is not None:
        path, blob_dir = options.data
        try:
            if path.stat().st_size > LARGE_FILE and not options.quiet:
                streams.tell(f"reading {path}")
            copied = facts_of(path, blob_dir)
        except Exception as error:  # noqa: BLE001 - FileStorage raises exceptions of many kinds
            raise UserError(f"--data: {path}: {describe(error)}") from None
    base = replace(options.sweep.base, copied=replace(copied, directory=str(directory)))
    return replace(options, sweep=replace(options.sweep, base=base))


def _to_be_zapped(options: Options) -> list[str]:
    """Return the names in the value of ``--zap``."""
    return [] if options.zap in {None, ASK, FORCE} else [str(options.zap).lower()]


def _with_zapped(options: Options, plan: Plan, streams: Streams, observer: Observer) -> Options:
    """Return the options with the names of the contenders to zap; ask the user if need be."""
    if options.zap is None:
        return options

    def ask(question: str) -> bool:
        with observer.paused():
            return not options.list_only and streams.ask(question)

    zapped = to_be_zapped(
        plan.contenders,
        _to_be_zapped(options),
        ask if streams.can_ask or options.list_only else None,
        force=options.zap == FORCE,
        unavailable=plan.unavailable,
    )
    return replace(options, run=replace(options.run, zapped=zapped))


def _measure(shootout: Shootout) -> tuple[int, str]:
    """Measure until the plan is done or an error occurs; return the status and the reason."""
    store = shootout.store
    try:
        shootout.run()
    except UserError as error:
        return error.status, str(error)
    except (KeyboardInterrupt, GuardianLost) as error:
        with suppress(UserError):
            store.save()
        if isinstance(error, GuardianLost):
            return SOME_FAILED, f"stopped: {error}"
        kept = any(result.measured for result in store.results)
        outcome = "results so far were saved" if kept else "nothing was measured"
        return INTERRUPTED, f"interrupted; {outcome}"
    return _status_and_reason(store.results)


def _show_log(cluster: Cluster | None, options: Options, observer: Observer) -> None:
    """Show what Dask's processes have logged, if the options ask for a log."""
    if options.run.log and cluster is not None:
        for line in cluster.logged():
            observer.relay(line)


def _status_and_reason(results: Sequence[CellResult]) -> tuple[int, str]:
    states = {result.state for result in results}
    if State.FAILED in states:
        return SOME_FAILED, ""
    if State.NOT_RUN in states:
        return SOME_FAILED, "not everything was measured: there was no time left (--at-most)"
    if not any(result.measured for result in results):
        return SOME_FAILED, "nothing was measured: no contender supports any of the benchmarks"
    return ALL_MEASURED, ""


def _show_plan(plan: Plan, files: ResultFiles, streams: Streams) -> int:
    results = [
        CellResult(cell)
        if (failure := plan.failure(cell)) is None
        else CellResult(cell).failed(failure)
        for cell in plan.cells
    ]
    report = make_report([ResultSet(files.recorded(results))], pending="yes")
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


def _report(
    results: Sequence[CellResult], files: ResultFiles, options: Options, streams: Streams
) -> int:
    """Print the table and pyperf's reports, write the page of ``--report``; return the status."""
    if options.run.log == "DEBUG":
        for result in results:
            if result.detail:
                streams.tell(f"{long_name(result.cell)}: {result.detail}")
    result_sets = [ResultSet(with_trends(results), path=files.combined)]
    tables = tables_with_comparisons(result_sets, baseline=options.run.baseline)
    text.write(tables, streams.out)
    if not any(result.measured for result in results):
        return ALL_MEASURED
    statuses = [_show_by_pyperf(report, files.combined, streams) for report in options.show]
    streams.say(f"Results: {files.combined}, and by contender in {files.directory}/")
    if options.report is not None:
        _write_page(result_sets, options, streams)
    if not options.quiet:
        for line in next_commands(result_sets):
            streams.say(line)
    return max(statuses, default=ALL_MEASURED)


def _gate(
    status: int,
    runs: Sequence[Sequence[CellResult]],
    plan: Plan,
    options: Options,
    streams: Streams,
) -> int:
    """Apply ``--require`` to the first of two runs, ``--fail-above`` to both; return the status."""
    if status == INTERRUPTED:
        return status
    judgements = [one for limit in options.requirements for one in limit.judged(runs[0])]
    has_limit = options.fail_above is not None
    first, second = (
        _comparisons(results, plan) if has_limit and results else {} for results in runs
    )
    for name, sides in first.items():
        again = second[name].comparison if second else None
        judgements += judged(sides, options.fail_above, again)
    return status_of(judgements, streams) or status


def _comparisons(results: Sequence[CellResult], plan: Plan) -> dict[str, ColumnComparison]:
    """Return the comparison of each variant of ``--against`` with its original, by its title."""
    by_title = grouped((result.cell.title, result) for result in results)
    comparisons = {}
    for variant in plan.contenders:
        is_release = variant.environment and variant.environment.one_of_several
        if not variant.variant or (is_release and variant.title in plan.unavailable):
            continue
        base, new = by_title.get(variant.name, []), by_title.get(variant.title, [])
        compared = compare(base, new, across=True)
        comparisons[variant.title] = ColumnComparison(variant.name, variant.title, compared)
    return comparisons


def _measured_again(
    shootout: Shootout, status: int, options: Options
) -> tuple[str, list[CellResult]]:
    """Measure the rows with findings a second time; return a message and the new results.

    The message is empty unless the user interrupts the measurement.
    """
    plan, store = shootout.tasks.plan, shootout.store
    gates = options.fail_above is not None and options.confirm is not False
    if not gates or status == INTERRUPTED or plan.effort.duration:
        return "", []
    again = {
        cell
        for sides in _comparisons(store.results, plan).values()
        for one in judged(sides, options.fail_above)
        if one.outcome in FAILURES
        for cell in one.cells
        if plan.failure(cell) is None  # a contender that cannot be opened would fail again
    }
    rows = [row for row in plan.rows if again.intersection(row)]
    if not rows:
        return "", []
    limit = plan.effort.limit * len(rows) / len(plan.rows)
    smaller = replace(plan, rows=rows, effort=replace(plan.effort, limit=limit))
    repeated = ResultStore(smaller, store.observer, lambda _: None)
    cells = counted(len(again), "cell")
    store.observer.relay(f"measuring the findings of --fail-above again: {cells}")
    repetition = replace(shootout, tasks=replace(shootout.tasks, plan=smaller), store=repeated)
    ended, message = _measure(repetition)
    return message if ended == INTERRUPTED else "", repeated.results


def _show_by_pyperf(report: str, path: Path, streams: Streams) -> int:
    command = ["show", "--metadata"] if report == "metadata" else [report]
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


def _write_page(result_sets: Sequence[ResultSet], options: Options, streams: Streams) -> None:
    assert options.report is not None
    write = format_of_file(options.report, "--report")
    try:
        report = whole_report(result_sets, options.run.baseline)
        write_report(report, options.report, write, "--report")
    except UserError as error:
        raise UserError(str(error), SOME_FAILED) from None
    name_output("Report", options.report, streams)
