"""The command: from the words on the command line to the exit status."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TextIO

import platformdirs
from rich.console import Console
from rich.text import Text

from zodbshootout import options as command_line
from zodbshootout.benchmarks.registry import benchmarks
from zodbshootout.config.configuration import (
    SCRATCH,
    ConfigurationError,
    Source,
    parse,
    read_source,
)
from zodbshootout.config.explanation import suggestion
from zodbshootout.config.sections import ServerSection
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.guardian import Guardian
from zodbshootout.options import Options, UsageError
from zodbshootout.perf.launch import (
    Launcher,
    WorkerFailed,
    default_affinity,
    worker_environment,
)
from zodbshootout.perf.task import Action, Subject, Task
from zodbshootout.plan import Plan, make_plan
from zodbshootout.progress import Bar, Lines, Silence
from zodbshootout.reports.table import print_table
from zodbshootout.results import CellResult, NotWritten, ResultFiles, State, Unusable, long_name
from zodbshootout.servers.address import free_address
from zodbshootout.servers.private import ServerFailed, Site
from zodbshootout.servers.registry import server_of
from zodbshootout.shootout import GaveUp, Shootout

ALL_MEASURED = 0
BAD_USAGE = 2
SOME_FAILED = 3
INTERRUPTED = 130


@dataclass(frozen=True)
class Streams:
    """Where results and where everything else is printed."""

    out: Console
    err: Console

    def complain(self, message: str) -> None:
        """Print one line that says what is wrong."""
        _print(self.err, f"zodbshootout: {message}")


@dataclass(frozen=True)
class Workplace:
    """Where a run keeps what goes away with it."""

    directory: Path
    guardian: Guardian


def main(
    arguments: Sequence[str], stdout: TextIO | None = None, stderr: TextIO | None = None
) -> int:
    """Run the command and return its exit status."""
    streams = Streams(_console(stdout or sys.stdout), _console(stderr or sys.stderr))
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
        names = {SCRATCH: str(scratch), **{name: free_address() for name in source.server_names}}
        configuration = parse(source, names)
        contenders = _selected(contenders_of(configuration), options)
        plan = make_plan(contenders, options.benchmarks, options.sweep, options.effort)
        if options.list_only:
            _print_plan(streams.out, plan)
            return ALL_MEASURED
        files = _result_files(options, plan)
        subject = Subject(source, names)
        observer = _observer(options, streams.err, plan)
        launcher = _launcher(options, source, workplace, observer)
        with observer:
            observer.note("starting servers")
            absent = _start_servers(stack, configuration.servers, contenders, subject, workplace)
            observer.note("opening the contenders")
            absent, facts = _look_at(plan.contenders, launcher, subject, options, absent)
            shootout = Shootout(
                plan=plan.knowing(facts),
                subject=subject,
                launcher=launcher,
                observer=observer,
                keep=files.write,
                facts=facts,
                absent=absent,
                collector=options.collector,
                log=options.log,
                fail_fast=options.fail_fast,
            )
            end = _measure(shootout)
        if end.message:
            streams.complain(end.message)
        _report(shootout.results, files, options, streams)
    return end.status


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
        return End(SOME_FAILED, f"cannot write results: {error}; the table is all there is")
    failed = any(result.state is State.FAILED for result in shootout.results)
    return End(SOME_FAILED if failed else ALL_MEASURED)


def _source(options: Options) -> Source:
    source = read_source(options.path)
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


def _start_servers(
    stack: ExitStack,
    sections: Sequence[ServerSection],
    contenders: Sequence[Contender],
    subject: Subject,
    workplace: Workplace,
) -> dict[str, str]:
    """Start the servers that contenders refer to; return why some contenders have none."""
    absent: dict[str, str] = {}
    for section in sections:
        users = [each for each in contenders if each.refers_to(section.name)]
        if not users:
            continue
        server = server_of(section)
        stack.callback(server.stop)
        site = Site(
            address=subject.names[section.name],
            directory=workplace.directory / f"server-{section.name}",
            source=subject.source,
            names=subject.names,
            guardian=workplace.guardian,
        )
        try:
            server.start(site)
        except ServerFailed as error:
            absent |= {contender.name: str(error) for contender in users}
    return absent


def _look_at(
    contenders: Sequence[Contender],
    launcher: Launcher,
    subject: Subject,
    options: Options,
    absent: Mapping[str, str],
) -> tuple[dict[str, str], dict[str, Mapping[str, str]]]:
    """Open every contender once; return why some cannot be opened, and facts of the others.

    :raises ConfigurationError: when something has to be installed first
    """
    absent = dict(absent)
    facts: dict[str, Mapping[str, str]] = {}
    for contender in contenders:
        if contender.name in absent:
            continue
        reason = contender.absence()
        if reason is not None:
            absent[contender.name] = reason
            continue
        try:
            facts[contender.name] = launcher.do(
                Task(Action.LOOK, subject, contender.name, log=options.log)
            )
        except WorkerFailed as error:
            if error.report.state == "misconfigured":
                raise ConfigurationError(f"{contender.name}: {error}") from None
            absent[contender.name] = f"cannot be opened: {error}"
    return absent, facts


def _launcher(
    options: Options, source: Source, workplace: Workplace, observer: Silence
) -> Launcher:
    directory = workplace.directory / "workers"
    directory.mkdir()
    affinity = options.affinity or default_affinity()
    passed_on = [f"--hook={hook}" for hook in options.hooks]
    if affinity:
        passed_on.append(f"--affinity={affinity}")
    if options.memory:
        passed_on.append(options.memory)
    passed_on.append("--verbose" if options.verbose else "--quiet")
    environment = worker_environment(
        os.environ,
        [*options.inherit_environ, *source.environment_names],
        locale=options.locale,
        copy_all=options.copy_env,
    )
    return Launcher(
        directory=directory,
        guardian=workplace.guardian,
        environment=environment,
        python=options.python,
        options=passed_on,
        gevent=options.gevent,
        timeout=options.timeout,
        relay=observer.relay if options.verbose or options.log else lambda _: None,
    )


def _result_files(options: Options, plan: Plan) -> ResultFiles:
    """Return where results go.

    :raises UsageError: when something is there already, or nothing can be written there
    """
    if options.append:
        try:
            files = ResultFiles(options.append).appending()
        except Unusable as error:
            raise UsageError(f"--append: {error}") from None
        _check_writable(options.append.parent)
        conflict = files.conflict(
            plan.cells, _told(plan, options), "byte" if options.memory else "second"
        )
        if conflict:
            raise UsageError(f"--append: {conflict}; append to another file")
        return files
    if options.output:
        files = ResultFiles(options.output)
        for path in files.all:
            if path.exists():
                raise UsageError(
                    f"-o: {path} exists; name another file, or use --append to add to it"
                )
        _check_writable(options.output.parent)
        return files
    directory = Path(platformdirs.user_data_dir("zodbshootout", appauthor=False))
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"results cannot be written: {error}; name a file with -o") from None
    _check_writable(directory)
    now = datetime.datetime.now().astimezone().strftime("%Y-%m-%dT%H.%M.%S")
    return ResultFiles(directory / f"{now}-{options.path.stem}-{os.getpid()}.json")


def _told(plan: Plan, options: Options) -> dict[str, dict[str, str]]:
    """Return what the metadata will say of the way in which each contender is measured."""
    return {
        each.name: {"collector": options.collector, "configuration_hash": each.fingerprint()}
        for each in plan.contenders
    }


def _check_writable(directory: Path) -> None:
    if not directory.is_dir():
        raise UsageError(f"there is no directory {directory} to write results to")
    if not os.access(directory, os.W_OK):
        raise UsageError(f"results cannot be written to {directory}: no permission")


def _observer(options: Options, err: Console, plan: Plan) -> Silence:
    if options.quiet:
        return Silence()
    if err.is_terminal:
        return Bar(err)
    return Lines(err, len(plan.cells))


def _print_plan(out: Console, plan: Plan) -> None:
    _print(out, f"Contenders: {', '.join(each.name for each in plan.contenders)}")
    names = dict.fromkeys(row.benchmark for row in plan.rows)
    _print(out, f"Benchmarks: {', '.join(names)}")
    for cell in plan.cells:
        parameters = cell.parameters
        refusal = plan.refusal(cell)
        line = (
            f"{cell.contender}: {cell.benchmark}, {parameters.crew}, {parameters.objects} objects "
            f"of {parameters.object_size} bytes"
        )
        _print(out, f"{line}: not supported: {refusal}" if refusal else line)
    minutes = plan.estimated_seconds() / 60
    runnable = sum(plan.refusal(cell) is None for cell in plan.cells)
    plural = "" if runnable == 1 else "s"
    _print(
        out, f"{runnable} cell{plural}, {plan.total_workers} workers, about {minutes:.1f} minutes"
    )


def _report(
    results: Sequence[CellResult], files: ResultFiles, options: Options, streams: Streams
) -> None:
    if options.log == "DEBUG":
        for result in results:
            if result.detail:
                _print(streams.err, f"{long_name(result.cell)}: {result.detail}")
    titles = {name: benchmark.title for name, benchmark in benchmarks().items()}
    print_table(streams.out, results, titles)
    if not any(result.measured for result in results):
        return
    for shown in options.show:
        _print(streams.out, _shown_by_pyperf(shown, files.combined))
    _print(streams.out, f"Results: {files.combined}, and by contender in {files.directory}/")


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


def _print(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)


def _console(stream: TextIO) -> Console:
    """Return a console that wraps at a terminal's edge, and nowhere where there is no terminal."""
    console = Console(file=stream)
    return console if console.is_terminal else Console(file=stream, width=1000)


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
