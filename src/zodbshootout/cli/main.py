"""The command: from the arguments of the command line to the exit status."""

from __future__ import annotations

import argparse
import errno
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from rich.console import Console

from zodbshootout.cli import compare, report, show
from zodbshootout.cli import options as command_line
from zodbshootout.cli.arguments import raise_usage_errors
from zodbshootout.cli.destination import check_like, check_other_files, result_files
from zodbshootout.cli.hosts import check_alike, on_hosts, reachable
from zodbshootout.cli.launching import launcher_for, open_all
from zodbshootout.cli.options import Options, Zap
from zodbshootout.cli.progress import Bar, Lines, NoProgress
from zodbshootout.cli.report import format_for, write_report
from zodbshootout.cli.streams import Streams, console_on, print_line
from zodbshootout.cli.variants import Variants, variants_of
from zodbshootout.client.outcome import State
from zodbshootout.config.configuration import Source, read_source
from zodbshootout.config.secrets import of_words
from zodbshootout.config.uri import source_of
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.making import Maker
from zodbshootout.contenders.selection import (
    check_baseline,
    named,
    shared_databases,
    to_be_zapped,
)
from zodbshootout.crews.cluster import Cluster
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian, GuardianLost
from zodbshootout.reports import text
from zodbshootout.reports.headings import ResultSet
from zodbshootout.reports.tables import tables_with_comparisons
from zodbshootout.results.files import NotWritten, ResultFiles
from zodbshootout.results.result import CellResult, long_name
from zodbshootout.scheduling.cells import CellTasks
from zodbshootout.scheduling.plan import Plan, make_plan
from zodbshootout.scheduling.result_store import GaveUp, ResultStore
from zodbshootout.scheduling.shootout import RunOptions, Shootout
from zodbshootout.servers.dask import cluster_for

ALL_MEASURED = 0
BAD_USAGE = 2
SOME_FAILED = 3
INTERRUPTED = 130
_COMMANDS: Mapping[str, Any] = {"show": show, "report": report, "compare": compare}


def main(
    arguments: Sequence[str],
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
    stdin: TextIO | None = None,
) -> int:
    """Run the command and return its exit status."""
    streams = Streams(
        console_on(stdout or sys.stdout), console_on(stderr or sys.stderr), stdin or sys.stdin
    )
    try:
        return _command(arguments, streams)
    except UserError as error:
        streams.complain(str(error))
        return BAD_USAGE
    except OSError as error:
        if error.errno not in {errno.ENAMETOOLONG, errno.ELOOP}:
            raise
        streams.complain(f"{error.filename}: {error.strerror}")
        return BAD_USAGE
    except (GuardianLost, NotWritten) as error:
        stopped = "stopped: " if isinstance(error, GuardianLost) else ""
        streams.complain(f"{stopped}{error}")
        return SOME_FAILED
    except KeyboardInterrupt:
        streams.complain("interrupted")
        return INTERRUPTED
    except SystemExit as error:
        return int(error.code or 0)


def _command(arguments: Sequence[str], streams: Streams) -> int:
    if arguments and arguments[0] in _COMMANDS:
        name, *words = arguments
        status = _COMMANDS[name].run(parser_of(name).parse_args(words), streams)
        return _after_printing(streams, status)
    streams.mask.hide(of_words(arguments))
    options = command_line.parse(arguments)
    with _termination_as_interrupt():
        return _shoot_out(options, streams)


def parser_of(command: str) -> argparse.ArgumentParser:
    """Return the parser of the arguments after ``show``, ``compare`` or ``report``."""
    parser = argparse.ArgumentParser(prog=f"zodbshootout {command}", allow_abbrev=False)
    raise_usage_errors(parser)
    _COMMANDS[command].add_arguments(parser)
    return parser


def _shoot_out(options: Options, streams: Streams) -> int:
    # Directories are left until the guardian has ended what is at work in them.
    with ExitStack() as places, Guardian() as guardian, ExitStack() as stack:
        variants = variants_of(_source(options), options, places, guardian, streams.mask)
        directory = variants.context.directory
        names = [each.name for each in variants.contenders]
        check_baseline(options.run.baseline, names)
        may_write = named("--may-write", options.run.may_write, names)
        cluster = stack.enter_context(
            cluster_for(options.hosts, guardian, directory, start=not options.list_only)
        )
        contenders = reachable(variants.contenders, cluster)
        for shared in shared_databases(contenders):
            streams.complain(shared)
        sweep = on_hosts(options.sweep, cluster)
        plan = make_plan(contenders, options.benchmarks, sweep, options.effort)
        if options.run.restart:
            variants.check_servers_can_restart()
        if options.list_only:
            _print_plan(streams, plan)
            for environment in variants.environments:
                streams.say(Maker(guardian).told(environment))
            return _after_printing(streams, ALL_MEASURED)
        files = result_files(options, plan)
        check_other_files(options)
        run = replace(
            options.run, zapped=_zapped(options.zap, contenders, streams), may_write=may_write
        )
        observer = _observer(options, streams.err, plan)
        with observer:
            launcher = launcher_for(options, variants.context, observer, streams.mask)
            opened = open_all(variants, plan, launcher, stack, observer)
            plan = opened.plan
            check_alike(cluster, plan)
            shootout = Shootout(
                plan=plan,
                store=ResultStore(
                    plan, observer, files.write, run.fail_fast, streams.mask, files.begun
                ),
                launcher=launcher,
                tasks=_tasks(plan, run, options, variants, cluster),
                servers=opened.servers,
                options=run,
                absent=opened.failures,
            )
            if options.append or options.resume:
                check_like(files, shootout.expected_metadata(), options)
            status, message = _measure(shootout)
            if run.log:
                _relay_log(cluster, lambda line: observer.relay(streams.mask(line)))
        if message:
            streams.complain(message)
        _report(shootout, files, options, streams)
    return _after_printing(streams, status, files.combined)


def _zapped(zap: Zap, contenders: Sequence[Contender], streams: Streams) -> frozenset[str]:
    if not zap.asked_for:
        return frozenset()
    ask = streams.ask if streams.can_ask else None
    return to_be_zapped(contenders, zap.names, ask, force=zap.force)


def _relay_log(cluster: Cluster | None, relay: Callable[[str], None]) -> None:
    """Pass on what workers have logged that were started here; others have a terminal."""
    if cluster is not None and cluster.log is not None:
        for line in cluster.log.read_text(encoding="utf-8", errors="replace").splitlines():
            relay(line)


def _tasks(
    plan: Plan, run: RunOptions, options: Options, variants: Variants, cluster: Cluster | None
) -> CellTasks:
    treatment = {
        each.name: {"packed": run.pack, "zapped": each.name in run.zapped}
        for each in plan.contenders
    }
    mask = variants.mask
    command = shlex.join(["zodbshootout", *map(mask, options.words)])
    variables = variants.context.source.environment_names.union(options.inherit_environ)
    return CellTasks(
        plan, treatment, run.leaks, run.profiles, run.profiler, mask(run.label), command,
        cluster=cluster, variables=sorted(variables),
    )  # fmt: skip


def _after_printing(streams: Streams, status: int, results: Path | None = None) -> int:
    """Return the exit status, which is not that of success where the output was lost."""
    if streams.loss is None:
        return status
    where = f"; results are in {results}" if results is not None and results.exists() else ""
    streams.complain(f"cannot print: {streams.loss}{where}")
    return status or SOME_FAILED


def _measure(shootout: Shootout) -> tuple[int, str]:
    """Measure until the plan is through or something ends it; return the status, and why."""
    store = shootout.store
    try:
        shootout.run()
    except KeyboardInterrupt:
        with suppress(NotWritten):
            store.keep()
        kept = any(result.measured for result in store.results)
        what = "what was measured until then is kept" if kept else "nothing was measured"
        return INTERRUPTED, f"interrupted; {what}"
    except GaveUp:
        return SOME_FAILED, "stopped at the first failure (--fail-fast)"
    except GuardianLost as error:
        with suppress(NotWritten):
            store.keep()
        return SOME_FAILED, f"stopped: {error}"
    except NotWritten as error:
        return (
            SOME_FAILED,
            f"cannot write results: {error}; the files hold what was written before",
        )
    return _judged(store.results)


def _judged(results: Sequence[CellResult]) -> tuple[int, str]:
    """Return the status of a run that came to its end, and what is to be said of that."""
    if any(result.state is State.FAILED for result in results):
        return SOME_FAILED, ""
    if any(result.state is State.NOT_RUN for result in results):
        return SOME_FAILED, "not everything was measured: there was no time left (--at-most)"
    if not any(result.measured for result in results):
        return SOME_FAILED, "nothing was measured: none of the contenders can run any of it"
    return ALL_MEASURED, ""


def _source(options: Options) -> Source:
    source = read_source(options.path) if options.uri is None else source_of(options.uri)
    if not options.include_mapping:
        return source
    mapping = "\n<zodb mapping>\ncache-size 5000\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"
    return replace(source, text=source.text + mapping)


def _observer(options: Options, err: Console, plan: Plan) -> NoProgress:
    if options.quiet:
        return NoProgress()
    if err.is_terminal:
        return Bar(err)
    return Lines(err, len(plan.cells), verbose=options.verbose)


def _print_plan(streams: Streams, plan: Plan) -> None:
    streams.say(f"Contenders: {', '.join(each.name for each in plan.contenders)}")
    names = dict.fromkeys(row.benchmark for row in plan.rows)
    streams.say(f"Benchmarks: {', '.join(names)}")
    for cell in plan.cells:
        parameters = cell.parameters
        refusal = plan.refusal(cell)
        line = f"{cell.contender}: {cell.benchmark}, {parameters.crew}"
        if parameters.objects:
            line = f"{line}, {parameters.objects} objects of {parameters.object_size} bytes"
        streams.say(f"{line}: not supported: {refusal}" if refusal else line)
    effort, minutes = plan.effort, plan.estimated_seconds() / 60
    runnable = sum(plan.refusal(cell) is None for cell in plan.cells)
    plural = "" if runnable == 1 else "s"
    what = f"{runnable} cell{plural}, {effort.processes} runs of each, about {minutes:.1f} minutes"
    if effort.precision:
        what = (
            f"{runnable} cell{plural} until all are known within {100 * effort.precision:g} %, "
            f"at most {minutes:.1f} minutes"
        )
    streams.say(what)


def _report(shootout: Shootout, files: ResultFiles, options: Options, streams: Streams) -> None:
    results = shootout.store.results
    if options.run.log == "DEBUG":
        for result in results:
            if result.detail:
                print_line(streams.err, f"{long_name(result.cell)}: {result.detail}")
    tables = tables_with_comparisons([ResultSet(results)], baseline=options.run.baseline)
    text.write(tables, streams.out)
    if not any(result.measured for result in results):
        return
    for shown in options.show:
        streams.say(_shown_by_pyperf(shown, files.combined))
    streams.say(f"Results: {files.combined}, and by contender in {files.directory}/")
    if options.report is not None:
        _write_page(results, files, options, streams)


def _write_page(
    results: Sequence[CellResult], files: ResultFiles, options: Options, streams: Streams
) -> None:
    assert options.report is not None
    result_sets = [ResultSet(results, name=files.combined.name)]
    write = format_for("--report", options.report)
    try:
        write_report(result_sets, options.report, write, options.run.baseline)
    except (OSError, UserError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NotWritten(f"--report: cannot write {options.report}: {reason}") from None
    streams.say(f"Report: {options.report}")


def _shown_by_pyperf(what: str, path: Path) -> str:
    """Return what ``pyperf stats`` and the like print of a file."""
    command = ["show", "--metadata"] if what == "metadata" else [what]
    done = subprocess.run(
        [sys.executable, "-m", "pyperf", *command, str(path)],
        check=False,
        capture_output=True,
        text=True,
    )
    return done.stdout.rstrip()


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """Have SIGTERM end a run as Ctrl-C does; only a main thread can have it so."""

    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
