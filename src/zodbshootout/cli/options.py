"""The command line: arguments in, checked options out."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from zodbshootout.cli.arguments import (
    ASK,
    FORCE,
    LEVELS,
    MIN_RUNS,
    NOT_OURS,
    PRECISION,
    PROCESSES,
    RIGOROUS,
    SECONDS_OF_A_CELL,
    SHORT_RUN_TIME,
    parser,
)
from zodbshootout.cli.words import (
    chosen_benchmarks,
    file_and_benchmarks,
    separated,
    uri_among,
)
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.specification import ClientKind, CrewShape, MappingType, Parameters
from zodbshootout.config.configuration import EMBEDDED
from zodbshootout.contenders.environment import Environment, of_words
from zodbshootout.crews.logs import BadLoggers, read_loggers
from zodbshootout.errors import UserError
from zodbshootout.scheduling.interleaved_run import RUN_TIME, Effort
from zodbshootout.scheduling.plan import Sweep
from zodbshootout.scheduling.preparing import ZAPPED_BEFORE
from zodbshootout.scheduling.shootout import RunOptions
from zodbshootout.workers.environment import cpus, default_affinity

_MAPPINGS = {
    None: MappingType.PERSISTENT_MAPPING,
    "IO": MappingType.IO,
    "OO": MappingType.OO,
}


@dataclass(frozen=True)
class Zap:
    """Whose data is to be destroyed."""

    asked_for: bool = False
    names: Sequence[str] = ()
    """Names of contenders, separated by commas unless a name has commas in it."""
    force: bool = False
    """All of them, without a question."""


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    words: Sequence[str]
    """The words of the command line."""
    path: Path
    """The configuration file.  With a URI, what results are named for."""
    uri: str | None
    """A ZODB URI in place of that file."""
    benchmarks: Sequence[str]
    only: Sequence[str]
    against: Sequence[Environment]
    """Where each contender is measured, too."""
    hosts: str | None
    """The Dask cluster on whose workers the clients are."""
    sweep: Sweep
    effort: Effort
    run: RunOptions
    zap: Zap
    list_only: bool
    output: Path | None
    append: Path | None
    resume: Path | None
    report: Path | None
    quiet: bool
    verbose: bool
    show: Sequence[str]
    """What pyperf is to show of the results: ``metadata``, ``dump``, ``stats``, ``hist``."""
    include_mapping: bool
    timeout: float
    """Seconds that one worker may be at work."""
    open_timeout: float
    """Seconds that a worker may be at work which looks at a contender."""
    python: str
    gevent: bool
    affinity: str
    """The numbers of CPUs, separated by commas; all where empty."""
    hooks: Sequence[str]
    memory: str | None
    """``--tracemalloc`` or ``--track-memory``, where memory is measured in place of time."""
    inherit_environ: Sequence[str]
    copy_env: bool
    locale: bool


def parse(arguments: Sequence[str]) -> Options:
    """Make options of a command line.

    :raises UserError: with one line for the user
    :raises SystemExit: after ``--help``
    """
    found = parser().parse_intermixed_args(separated(arguments))
    _reject_what_is_not_ours(found)
    uri = uri_among(found.words)
    path, names = file_and_benchmarks(found.words, uri)
    sweep = _sweep(found, named=uri is None and path != EMBEDDED)
    chosen = chosen_benchmarks(names, found.exclude)
    return Options(
        words=arguments,
        path=path,
        uri=uri,
        benchmarks=chosen,
        only=[name.lower() for name in found.only],
        against=_against(found),
        hosts=_hosts(found),
        sweep=sweep,
        effort=_effort(found),
        run=_run_options(found, sweep, chosen),
        zap=_zap(found.zap, chosen),
        list_only=found.list_only,
        output=_file("-o", found.output),
        append=_file("--append", found.append),
        resume=_file("--resume", found.resume),
        report=found.report,
        quiet=found.quiet,
        verbose=found.verbose and not found.quiet,
        show=[name for name in ("metadata", "dump", "stats", "hist") if getattr(found, name)],
        include_mapping=found.include_mapping in {"true", "yes", "on"},
        timeout=found.timeout,
        open_timeout=found.open_timeout,
        python=_executable(found.python),
        gevent=found.gevent,
        affinity=_affinity(found.affinity),
        hooks=found.hook or [],
        memory=_memory(found, sweep),
        inherit_environ=found.inherit_environ or [],
        copy_env=found.copy_env,
        locale=found.locale,
    )


def _reject_what_is_not_ours(found: argparse.Namespace) -> None:
    given = {"-o": found.output, "--append": found.append, "--resume": found.resume}
    if len(named := [option for option, value in given.items() if value]) > 1:
        raise UserError(f"{' and '.join(named)}: give one of them")
    for name in sorted(NOT_OURS - {"pipe"}):
        if getattr(found, name) not in {None, False}:
            option = "--" + name.replace("_", "-")
            advice = {
                "compare_to": "use --against PYTHON",
                "python_names": "use --against PYTHON",
            }.get(name, "it is for pyperf's own workers")
            raise UserError(f"{option} is not available: {advice}")


def _file(option: str, name: str | None) -> Path | None:
    if not name:
        return None
    path = Path(name)
    if path.is_dir():
        raise UserError(f"{option}: {name} is a directory; name a file, such as {path / 'a.json'}")
    return path


def _sweep(found: argparse.Namespace, *, named: bool) -> Sweep:
    """Return what is to be swept; *named* says whether a configuration file was."""
    threads = found.threads or ("shared" if found.gevent else None)
    unit = ClientKind.PROCESS
    if threads:
        unit = ClientKind.GREENLET if found.gevent else ClientKind.THREAD
    if (found.btree_leaf_size or found.btree_internal_size) and not found.btrees:
        raise UserError("--btree-leaf-size and --btree-internal-size need --btrees")
    if found.gevent and importlib.util.find_spec("gevent") is None:
        raise UserError("--gevent: gevent is not installed; install it: pip install gevent")
    return Sweep(
        concurrency=_flat(found.concurrency, 2 if named or threads else 1),
        objects=_flat(found.object_counts, 1000),
        object_sizes=_flat(found.object_size, 300),
        base=Parameters(
            CrewShape(1, unit, shared=threads == "shared"),
            mapping=_MAPPINGS[found.btrees],
            leaf_size=found.btree_leaf_size,
            internal_size=found.btree_internal_size,
            blobs=found.blobs,
            compressibility=found.compressibility,
            min_objects=found.min_objects,
            seed=found.seed,
        ),
    )


def _run_options(found: argparse.Namespace, sweep: Sweep, chosen: Sequence[str]) -> RunOptions:
    if found.restart_servers and not any(benchmarks()[name].cold for name in chosen):
        cold = [name for name, each in benchmarks().items() if each.cold]
        raise UserError(
            "--restart-servers restarts them before what reads cold, which is not among the "
            f"benchmarks; there are {', '.join(cold)}"
        )
    if found.leaks and sweep.base.crew.client_kind is ClientKind.PROCESS:
        raise UserError(
            "--leaks looks at the objects of one process, and each client would be another; "
            "add --threads"
        )
    return RunOptions(
        log=_log(found.log),
        fail_fast=found.fail_fast,
        retries=found.retries,
        may_write=[name.lower() for name in found.may_write],
        pack=found.pack,
        restart=found.restart_servers,
        leaks=found.leaks,
        profiles=_profiles(found.profile),
        profiler=_profiler(found),
        label=found.label,
        baseline=found.baseline.lower() if found.baseline else None,
    )


def _profiles(directory: Path | None) -> Path | None:
    if directory is None:
        return None
    if directory.exists() and not directory.is_dir():
        raise UserError(f"--profile: {directory} is not a directory")
    if directory.is_dir() and any(directory.iterdir()):
        raise UserError(f"--profile: {directory} is not empty; name another directory")
    return directory.absolute()


def _profiler(found: argparse.Namespace) -> str:
    profiler: str = found.profiler
    if profiler == "vmprof" and importlib.util.find_spec("vmprof") is None:
        raise UserError("--profiler: vmprof is not installed; install it: pip install vmprof")
    return profiler


def _zap(value: str | None, chosen: Sequence[str]) -> Zap:
    if value is None:
        return Zap()
    if ZAPPED_BEFORE not in chosen:
        raise UserError(
            f"--zap destroys data right before {ZAPPED_BEFORE}, which is not among the benchmarks; "
            f"add it, or leave out --zap"
        )
    if value == FORCE:
        return Zap(asked_for=True, force=True)
    if value == ASK:
        return Zap(asked_for=True)
    return Zap(asked_for=True, names=[value.lower()])


def _flat(given: Sequence[Sequence[int]] | None, default: int) -> list[int]:
    return list(dict.fromkeys(number for part in given or [(default,)] for number in part))


def _effort(found: argparse.Namespace) -> Effort:
    """Apply ``--fast`` and the like: they win over the numbers given, as in pyperf."""
    if (found.tracemalloc or found.track_memory) and not found.loops:
        found.loops = 1  # the memory that iterations take does not tell how long they last
    runs = found.processes or PROCESSES
    effort = Effort(runs, found.values, found.warmups, found.loops, found.min_time)
    if found.debug_single_value:
        effort = replace(effort, processes=1, values=1, warmups=0, loops=1, min_time=1e-9)
    elif found.processes is None and (found.precision or not found.values):
        return _until_precise(effort, found)
    elif found.rigorous:
        effort = replace(effort, processes=2 * PROCESSES)
    elif found.fast:
        effort = replace(effort, run_time=RUN_TIME / 3)
    for option, given in (("--precision", found.precision), ("--at-most", found.at_most)):
        if given:
            raise UserError(
                f"{option} cannot be combined with -p, with -n alone, or with --debug-single-value"
            )
    return effort


def _until_precise(effort: Effort, found: argparse.Namespace) -> Effort:
    """Return an effort that ends where figures are known well enough, or the time is up."""
    precision, seconds = PRECISION, SECONDS_OF_A_CELL
    if found.rigorous:
        precision, seconds = RIGOROUS, 4 * SECONDS_OF_A_CELL
    elif found.fast:
        seconds /= 3
    return replace(
        effort,
        processes=MIN_RUNS,
        run_time=SHORT_RUN_TIME,
        precision=found.precision or precision,
        limit=60 * (found.at_most or 0),
        cell_limit=seconds,
    )


def _affinity(given: str | None) -> str:
    if given is None:
        return default_affinity()
    try:
        wanted = cpus(given)
    except ValueError:
        raise UserError(f"--affinity: {given!r} is not a list of CPUs, such as 0-3,6") from None
    last = (os.cpu_count() or max(wanted) + 1) - 1
    if max(wanted) > last:
        raise UserError(f"--affinity: there is no CPU {max(wanted)}; the last one is {last}")
    return ",".join(map(str, wanted))


def _executable(name: str) -> str:
    path = shutil.which(os.path.expanduser(name))  # noqa: PTH111 - a Path would lose the ./
    if path is None:
        raise UserError(f"--python: there is no program {name!r}")
    path = os.path.abspath(path)  # noqa: PTH100 - virtual environments are made of links
    if path != sys.executable:
        _check_has_us(path)
    return path


def _check_has_us(python: str) -> None:
    tried = subprocess.run([python, "-c", "import zodbshootout"], check=False, capture_output=True)
    if tried.returncode:
        raise UserError(
            f"--python: zodbshootout is not installed for {python}; "
            f"install the checkout there: {python} -m pip install CHECKOUT"
        )


def _against(found: argparse.Namespace) -> list[Environment]:
    if not found.against:
        return []
    for option in ("python", "leaks", "tracemalloc", "track_memory"):
        if getattr(found, option) not in {None, False, sys.executable}:
            name = option.replace("_", "-")
            raise UserError(f"--{name} is about this Python; leave it out with --against")
    return of_words(found.against)


def _hosts(found: argparse.Namespace) -> str | None:
    if found.hosts is None:
        return None
    if found.log and found.log.upper() not in LEVELS:
        raise UserError("--log: a file is on this host alone; name a level with --hosts")
    about_here = ["profile", "leaks", "tracemalloc", "track_memory", "against", "affinity", "hook"]
    if found.python not in {None, sys.executable}:
        about_here.append("python")
    for option in about_here:
        if getattr(found, option):
            name = option.replace("_", "-")
            raise UserError(f"--{name} is about this host; leave it out with --hosts")
    hosts: str = found.hosts
    return hosts


def _log(value: str | None) -> str | None:
    if value is None:
        return None
    if value.upper() in LEVELS:
        return value.upper()
    if not Path(value).is_file():
        raise UserError(f"--log: {value!r} is neither a level ({', '.join(LEVELS)}) nor a file")
    path = Path(value).absolute()
    try:
        read_loggers(path)
    except BadLoggers as error:
        raise UserError(str(error)) from error
    return str(path)


def _memory(found: argparse.Namespace, sweep: Sweep) -> str | None:
    option = None
    if found.tracemalloc:
        option = "--tracemalloc"
    elif found.track_memory:
        option = "--track-memory"
    if option and sweep.base.crew.client_kind is ClientKind.PROCESS:
        raise UserError(
            f"{option} measures the worker, and the clients would be other processes; add --threads"
        )
    return option
