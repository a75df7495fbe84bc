"""The command: from the words on the command line to the exit status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TextIO

from rich.console import Console

from zodbshootout import options as command_line
from zodbshootout.arguments import UsageError
from zodbshootout.benchmarks.registry import benchmarks
from zodbshootout.config.configuration import (
    ConfigurationError,
    Source,
    parse,
    read_source,
)
from zodbshootout.config.explanation import suggestion
from zodbshootout.config.uri import source_of
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.destination import result_files
from zodbshootout.guardian import Guardian
from zodbshootout.options import Options
from zodbshootout.perf.task import Subject
from zodbshootout.plan import Plan, make_plan
from zodbshootout.preparation import (
    Workplace,
    check_restartable,
    launcher_for,
    look_at,
    start_servers,
)
from zodbshootout.progress import Bar, Lines, Silence
from zodbshootout.reports.table import Heading, print_table
from zodbshootout.results import CellResult, NotWritten, ResultFiles, State, long_name
from zodbshootout.servers.naming import given_names
from zodbshootout.shootout import GaveUp, Shootout
from zodbshootout.streams import Streams, console_on, print_line
from zodbshootout.zapping import to_be_zapped

ALL_MEASURED = 0
BAD_USAGE = 2
SOME_FAILED = 3
INTERRUPTED = 130


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
        options = command_line.parse(arguments)
        with _termination_as_interrupt():
            return _shoot_out(options, streams)
    except (UsageError, ConfigurationError) as error:
        streams.complain(str(error))
        return BAD_USAGE
    except KeyboardInterrupt:
        streams.complain("interrupted")
        return INTERRUPTED
    except SystemExit as error:
        return int(error.code or 0)


def _shoot_out(options: Options, streams: Streams) -> int:
    source = _source(options)
    with _scratch_directory() as scratch, Guardian() as guardian, ExitStack() as stack:
        guardian.watch_directory(scratch)
        workplace = Workplace(scratch, guardian)
        names = stack.enter_context(given_names(source, scratch))
        configuration = parse(source, names)
        contenders = _selected(contenders_of(configuration), options)
        plan = make_plan(contenders, options.benchmarks, options.sweep, options.effort)
        if options.conduct.restart:
            check_restartable(configuration, contenders)
        if options.list_only:
            _print_plan(streams.out, plan)
            return _after_printing(streams, ALL_MEASURED)
        files = result_files(options, plan)
        if options.conduct.profiles is not None:
            _make_directory(options.conduct.profiles)
        zapped = to_be_zapped(options.zap, contenders, streams.ask)
        subject = Subject(source, names)
        observer = _observer(options, streams.err, plan)
        launcher = launcher_for(options, source, workplace, observer)
        with observer:
            observer.note("starting servers")
            fleet = start_servers(stack, configuration, plan.measurable, subject, workplace)
            launcher = replace(launcher, restart=fleet.restart_for)
            observer.note("opening the contenders")
            absent, facts = look_at(plan.measurable, launcher, subject, options, fleet.absent)
            shootout = Shootout(
                plan=plan.knowing(facts),
                subject=subject,
                launcher=launcher,
                observer=observer,
                keep=files.write,
                facts=facts,
                absent=absent,
                conduct=replace(options.conduct, zapped=zapped),
                served=fleet.served,
                obituary=fleet.obituary,
            )
            end = _measure(shootout)
        if end.message:
            streams.complain(end.message)
        _report(shootout.results, files, options, streams)
    return _after_printing(streams, end.status, files.combined)


def _after_printing(streams: Streams, status: int, results: Path | None = None) -> int:
    """Return the exit status, which is not that of success where the output was lost."""
    if streams.loss is None:
        return status
    where = f"; results are in {results}" if results is not None and results.exists() else ""
    streams.complain(f"cannot print: {streams.loss}{where}")
    return status or SOME_FAILED


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--profile: {error}") from None
    if not os.access(path, os.W_OK):
        raise UsageError(f"--profile: {path} cannot be written to: no permission")


@dataclass(frozen=True)
class End:
    """How measuring ended."""

    status: int
    message: str = ""


def _measure(shootout: Shootout) -> End:
    """Measure until the plan is through or something ends it."""
    try:
        shootout.run()
    except KeyboardInterrupt:
        with suppress(NotWritten):
            shootout.keep(shootout.results)
        kept = any(result.measured for result in shootout.results)
        what = "what was measured until then is kept" if kept else "nothing was measured"
        return End(INTERRUPTED, f"interrupted; {what}")
    except GaveUp:
        return End(SOME_FAILED, "stopped at the first failure (--fail-fast)")
    except NotWritten as error:
        return End(
            SOME_FAILED, f"cannot write results: {error}; the files hold what was written before"
        )
    failed = any(result.state is State.FAILED for result in shootout.results)
    return End(SOME_FAILED if failed else ALL_MEASURED)


def _source(options: Options) -> Source:
    source = read_source(options.path) if options.uri is None else source_of(options.uri)
    if not options.include_mapping:
        return source
    floor = "\n<zodb mapping>\ncache-size 5000\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"
    return replace(source, text=source.text + floor)


def _selected(contenders: Sequence[Contender], options: Options) -> Sequence[Contender]:
    """Keep the contenders that ``--only`` names, or all."""
    names = [contender.name for contender in contenders]
    if not names:
        raise ConfigurationError(
            f"{options.path}: no contender; each is a section <zodb NAME> with a storage in it"
        )
    for wanted in options.only:
        if wanted not in names:
            raise UsageError(f"--only: no contender {wanted!r}; {suggestion(wanted, names)}")
    return [each for each in contenders if each.name in (options.only or names)]


def _observer(options: Options, err: Console, plan: Plan) -> Silence:
    if options.quiet:
        return Silence()
    if err.is_terminal:
        return Bar(err)
    return Lines(err, len(plan.cells))


def _print_plan(out: Console, plan: Plan) -> None:
    print_line(out, f"Contenders: {', '.join(each.name for each in plan.contenders)}")
    names = dict.fromkeys(row.benchmark for row in plan.rows)
    print_line(out, f"Benchmarks: {', '.join(names)}")
    for cell in plan.cells:
        parameters = cell.parameters
        refusal = plan.refusal(cell)
        line = f"{cell.contender}: {cell.benchmark}, {parameters.crew}"
        if parameters.objects:
            line = f"{line}, {parameters.objects} objects of {parameters.object_size} bytes"
        print_line(out, f"{line}: not supported: {refusal}" if refusal else line)
    minutes = plan.estimated_seconds() / 60
    runnable = sum(plan.refusal(cell) is None for cell in plan.cells)
    plural = "" if runnable == 1 else "s"
    print_line(
        out, f"{runnable} cell{plural}, {plan.total_workers} workers, about {minutes:.1f} minutes"
    )


def _report(
    results: Sequence[CellResult], files: ResultFiles, options: Options, streams: Streams
) -> None:
    if options.conduct.log == "DEBUG":
        for result in results:
            if result.detail:
                print_line(streams.err, f"{long_name(result.cell)}: {result.detail}")
    headings = {name: Heading(each.title, each.counted) for name, each in benchmarks().items()}
    print_table(streams.out, results, headings)
    if not any(result.measured for result in results):
        return
    for shown in options.show:
        print_line(streams.out, _shown_by_pyperf(shown, files.combined))
    print_line(streams.out, f"Results: {files.combined}, and by contender in {files.directory}/")


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
def _scratch_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="zodbshootout-", ignore_cleanup_errors=True) as name:
        yield Path(name)


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
