"""The options of a run, checked."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from zodbshootout.cli.output import project_url
from zodbshootout.cli.parser import (
    COMMANDS,
    MIN_RUNS_FOR_PRECISION,
    PRECISION,
    PROCESSES,
    RIGOROUS,
    SECONDS_OF_A_CELL,
    SHORT_RUN_TIME,
    run_parser,
)
from zodbshootout.cli.values import LAST, LEVELS, exists, spelled_out
from zodbshootout.client.benchmarks import DEFAULT, benchmarks
from zodbshootout.client.masking import Mask
from zodbshootout.client.specification import ClientKind, CrewShape, MappingType, Parameters
from zodbshootout.config.configuration import EMBEDDED
from zodbshootout.config.environment import environments_of_words
from zodbshootout.config.secrets import of_uri
from zodbshootout.config.uri import is_uri, scheme_of
from zodbshootout.contenders.variants import VariantOptions
from zodbshootout.errors import UserError, close_to, suggestion
from zodbshootout.recording.workload import Workload
from zodbshootout.results.files import holds_results
from zodbshootout.scheduling.calibration import RUN_TIME, Effort
from zodbshootout.scheduling.plan import RunOptions, Sweep
from zodbshootout.scheduling.tasks import ZAPPED_BEFORE
from zodbshootout.workers.environment import default_affinity

REPLAY = "replay"
"""The benchmark that needs a workload."""
T = TypeVar("T", "Options", RunOptions)
N = TypeVar("N", int, float)


@dataclass(frozen=True)
class Options:
    """The options of a run; ``Options.run`` are those that scheduling needs."""

    path: Path
    """The configuration file; with a URI, a file name for the results."""
    uri: str | None
    """A ZODB URI in place of that file."""
    benchmarks: Sequence[str]
    only: Sequence[str]
    variants: VariantOptions
    """The environments and the values with which each contender is measured."""
    hosts: str | None
    """The Dask cluster that the clients are on."""
    sweep: Sweep
    default_concurrency: bool
    """Whether the command line names no number of clients."""
    effort: Effort
    run: RunOptions
    zap: str | None
    """The value of ``--zap``: ``ask``, ``force`` or names of contenders."""
    list_only: bool
    output: Path | None
    append: Path | None
    resume: Path | None
    report: Path | None
    quiet: bool
    verbose: bool
    show: Sequence[str]
    """The reports by pyperf to print: ``metadata``, ``dump``, ``stats``, ``hist``."""
    workload: Workload | None
    """The workload that is replayed."""
    data: Path | None
    """The FileStorage with the records of its objects."""
    speed: float
    """The speed as a multiple of the recorded one, 0 for as fast as possible."""
    include_mapping: bool
    timeout: float
    """Seconds after which a worker counts as hanging."""
    open_timeout: float
    """Seconds in which a contender has to open."""
    python: str
    gevent: bool
    affinity: str
    """The numbers of CPUs, separated by commas; empty for all."""
    hooks: Sequence[str]
    memory: str | None
    """``--tracemalloc`` or ``--track-memory`` if memory is measured in place of time."""
    inherit_environ: Sequence[str]
    copy_env: bool
    locale: bool


def parse(arguments: Sequence[str]) -> Options:
    """Make options of a command line.

    :raises UserError: if an argument is wrong or contradicts another one
    :raises SystemExit: after ``--help``
    """
    given = run_parser().parse_intermixed_args(spelled_out(arguments))
    _check_combinations(given)
    for option, value in {"--speed": given.speed, "--data": given.data}.items():
        if value and given.workload is None:
            raise UserError(f"{option} needs --workload")
    uri, path, words = _uri_file_and_benchmarks(given.words)
    names = [name for word in words for name in _named_together(word)]
    chosen = _chosen_benchmarks(names, given.exclude, replays=given.workload is not None)
    _check_benchmarks(given, chosen)
    threads = given.threads or ("shared" if given.gevent else None)
    has_file = uri is None and path != EMBEDDED
    sweep = Sweep(
        concurrency=_flat(given.concurrency) or [2 if has_file or threads else 1],
        objects=_flat(given.object_counts) or [1000],
        object_sizes=_flat(given.object_size) or [300],
        rates=_flat(given.rate) or [0.0],
        base=_parameters(given, threads),
    )
    _check_rates(names, sweep)
    return _make(
        Options,
        given,
        path=path,
        uri=uri,
        benchmarks=chosen,
        variants=VariantOptions(environments_of_words(given.against), _definitions(given)),
        sweep=sweep,
        default_concurrency=not given.concurrency,
        effort=_effort(given),
        run=_make(RunOptions, given, arguments=arguments, zapped=()),
        verbose=given.verbose and not given.quiet,
        show=[name for name in ("metadata", "dump", "stats", "hist") if getattr(given, name)],
        include_mapping=given.include_mapping in {"true", "yes", "on"},
        affinity=default_affinity() if given.affinity is None else given.affinity,
        memory=next(iter(given.memory), None),
    )


def _make(kind: type[T], given: argparse.Namespace, **computed: Any) -> T:
    """Make a dataclass of the arguments that its fields are named after, and of computed ones."""
    names = {field.name for field in fields(kind)} - {*computed}
    return kind(**{name: getattr(given, name) for name in names}, **computed)


def _check_combinations(given: argparse.Namespace) -> None:
    files = {"-o": given.output, "--append": given.append, "--resume": given.resume}
    for named in ([option for option, path in files.items() if path], given.memory):
        if len(set(named)) > 1:
            raise UserError(f"{' and '.join(named)}: give one of them")
    if (given.btree_leaf_size or given.btree_internal_size) and not given.btrees:
        raise UserError("--btree-leaf-size and --btree-internal-size need --btrees")
    if given.gevent and importlib.util.find_spec("gevent") is None:
        raise UserError("--gevent: gevent is not installed; install it: pip install gevent")
    _check_where_clients_are(given)
    _check_pace(given)
    here = {"--python": given.python != sys.executable, "--leaks": given.leaks}
    here |= dict.fromkeys(given.memory, True)
    if given.against:
        _refuse(here, "is about this Python; leave it out with --against")
    if given.hosts is not None:
        if given.log and given.log not in LEVELS:
            raise UserError("--log: a file is on this host alone; name a level with --hosts")
        here |= {"--profile": bool(given.profiles), "--against": bool(given.against)}
        here |= {"--affinity": bool(given.affinity), "--hook": bool(given.hooks)}
        _refuse(here, "is about this host; leave it out with --hosts")


def _check_pace(given: argparse.Namespace) -> None:
    paces = {
        "--rate": bool(given.rate),
        "--latency-limit": bool(given.latency_limit.percentile),
        "--speed": bool(given.speed),
    }
    chosen = [option for option, is_given in paces.items() if is_given]
    if len(chosen) > 1:
        raise UserError(f"{' and '.join(chosen)}: give one of them")
    if chosen and chosen != ["--speed"]:
        _refuse(
            {"--loops": bool(given.loops), **dict.fromkeys(given.memory, True)},
            f"cannot be combined with {chosen[0]}, which needs many iterations and their times",
        )
    elif given.arrivals == "even":
        raise UserError("--arrivals needs --rate or --latency-limit")


def _check_where_clients_are(given: argparse.Namespace) -> None:
    if given.threads or given.gevent:
        return
    if given.leaks:
        raise UserError(
            "--leaks looks at the objects of one process, and each client would be another; "
            "add --threads"
        )
    for option in given.memory:
        raise UserError(
            f"{option} measures the worker, and the clients would be other processes; add --threads"
        )


def _refuse(options: dict[str, bool], reason: str) -> None:
    for option, is_given in options.items():
        if is_given:
            raise UserError(f"{option} {reason}")


def _uri_file_and_benchmarks(words: Sequence[str]) -> tuple[str | None, Path, Sequence[str]]:
    if not words:
        return None, EMBEDDED, ()
    first = words[0]
    if exists(first):
        if holds_results(Path(first)):
            raise UserError(
                f"{first} holds results, not a configuration; "
                f"to print it: zodbshootout show {first}"
            )
        return None, Path(first), words[1:]
    if is_uri(first):
        return first.strip(), Path(scheme_of(first.strip())), words[1:]
    if {"all", *benchmarks()} & set(_named_together(first)):
        return None, EMBEDDED, words
    _check_is_no_other_word(first, words[1:])
    return None, Path(first), words[1:]


def _check_is_no_other_word(first: str, others: Sequence[str]) -> None:
    """Refuse words that cannot have been meant as the name of a file.

    :raises UserError: if *first* is similar to a command or a benchmark, or ``last`` or ``run``
    """
    if first == LAST:
        raise UserError(f"{LAST} stands for results; to print them: zodbshootout show {LAST}")
    if first == "run":
        raise UserError(f"there is no command 'run'; type: zodbshootout {' '.join(others)}")
    if close := close_to(first, COMMANDS):
        raise UserError(f"no such file or command: {first!r}; did you mean {close[0]}?")
    if close_to(first, benchmarks()):
        raise UserError(
            f"no such file or benchmark: {first!r}; {suggestion(first, list(benchmarks()))}"
        )


def _named_together(word: str) -> list[str]:
    """Return the benchmarks that commas separate in a word, or the word if it has none."""
    names = word.split(",")
    return names if any(name in benchmarks() for name in names) else [word]


def _chosen_benchmarks(
    names: Sequence[str], excluded: Sequence[str], *, replays: bool
) -> list[str]:
    for name in names:
        _check_is_benchmark(name)
    if REPLAY in names and not replays:
        raise UserError(
            f"{REPLAY}: add --workload PATH, a recorded workload; how to record one: "
            f"{project_url('Documentation')}en/latest/recording.html"
        )
    wanted = set(benchmarks()) if "all" in names else set(names)
    if replays:
        wanted.add(REPLAY)
    elif not names:
        wanted |= set(DEFAULT)
    else:
        wanted.discard(REPLAY)
    chosen = [name for name in benchmarks() if name in wanted and name not in excluded]
    if not chosen:
        raise UserError("no benchmark is left to measure; name one")
    return chosen


def _check_is_benchmark(name: str) -> None:
    if name == "all" or name in benchmarks():
        return
    if is_uri(name):
        raise UserError(
            f"{Mask(of_uri(name))(name)}: give one URI, before the benchmarks; to compare "
            "several, list them in a file as <zodburi NAME> sections"
        )
    if exists(name) or name.endswith(".conf"):
        raise UserError(f"{name}: give one FILE, before the benchmarks")
    raise UserError(f"unknown benchmark {name!r}; {suggestion(name, ['all', *benchmarks()])}")


def _check_benchmarks(given: argparse.Namespace, chosen: Sequence[str]) -> None:
    """Refuse options that need benchmarks which are not chosen."""
    if given.zap is not None and ZAPPED_BEFORE not in chosen:
        raise UserError(
            f"--zap destroys data right before {ZAPPED_BEFORE}, which is not among the benchmarks; "
            f"add it, or leave out --zap"
        )
    if given.restart and not any(benchmarks()[name].cold for name in chosen):
        cold = [name for name, benchmark in benchmarks().items() if benchmark.cold]
        raise UserError(
            "--restart-servers restarts them before cold reads, which are not among the "
            f"benchmarks; there are {', '.join(cold)}"
        )


def _check_rates(names: Sequence[str], sweep: Sweep) -> None:
    """Refuse a rate for a named benchmark that cannot have any."""
    for name in (name for name in names if name != "all"):
        reasons = [benchmarks()[name].rate_refusal(parameters) for parameters in sweep.parameters()]
        if all(reasons):
            raise UserError(f"{reasons[0]}; leave it out: -{name}")


def _flat(given: Sequence[Sequence[N]]) -> list[N]:
    return list(dict.fromkeys(number for numbers in given for number in numbers))


def _parameters(given: argparse.Namespace, threads: str | None) -> Parameters:
    unit = ClientKind.PROCESS
    if threads:
        unit = ClientKind.GREENLET if given.gevent else ClientKind.THREAD
    return Parameters(
        CrewShape(1, unit, shared=threads == "shared"),
        mapping=MappingType[given.btrees or "PERSISTENT_MAPPING"],
        leaf_size=given.btree_leaf_size,
        internal_size=given.btree_internal_size,
        blobs=given.blobs,
        compressibility=given.compressibility,
        min_objects=given.min_objects,
        seed=given.seed,
        even_arrivals=given.arrivals == "even",
        limit=given.latency_limit,
    )


def _definitions(given: argparse.Namespace) -> dict[str, Sequence[str]]:
    definitions: dict[str, Sequence[str]] = {}
    for name, values in given.define:
        if name in definitions:
            raise UserError(f"--define: {name} is given twice; separate its values by commas")
        definitions[name] = values
    if given.against and any(len(values) > 1 for values in definitions.values()):
        raise UserError("--define with several values and --against: give one of them")
    return definitions


def _effort(given: argparse.Namespace) -> Effort:
    """Return the effort; ``--fast`` and the like override numbers, as in pyperf."""
    # Loops cannot be calibrated by memory.
    loops = given.loops or (1 if given.memory else 0)
    runs = given.processes or PROCESSES
    effort = Effort(runs, given.values, given.warmups, loops, given.min_time)
    if given.debug_single_value:
        effort = replace(effort, processes=1, values=1, warmups=0, loops=1, min_time=1e-9)
    elif given.processes is None and (given.precision or not given.values):
        return _until_precise(effort, given)
    elif given.rigorous:
        effort = replace(effort, processes=2 * PROCESSES)
    elif given.fast:
        effort = replace(effort, run_time=RUN_TIME / 3)
    limits = {"--precision": bool(given.precision), "--at-most": bool(given.at_most)}
    _refuse(limits, "cannot be combined with -p, with -n alone, or with --debug-single-value")
    return effort


def _until_precise(effort: Effort, given: argparse.Namespace) -> Effort:
    precision, seconds = PRECISION, SECONDS_OF_A_CELL
    if given.rigorous:
        precision, seconds = RIGOROUS, 4 * SECONDS_OF_A_CELL
    elif given.fast:
        seconds /= 3
    return replace(
        effort,
        processes=MIN_RUNS_FOR_PRECISION,
        run_time=SHORT_RUN_TIME,
        precision=given.precision or precision,
        limit=60 * (given.at_most or 0),
        cell_limit=seconds,
    )
