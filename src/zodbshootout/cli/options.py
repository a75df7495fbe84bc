"""The checked options of a run."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from zodbshootout.cli.gate import Requirement
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
from zodbshootout.client.storage_types.zodburi import scheme_of
from zodbshootout.config.configuration import EMBEDDED
from zodbshootout.config.pythons import environments_of_words
from zodbshootout.config.sample_files import samples
from zodbshootout.config.uri import is_uri
from zodbshootout.contenders.releases import releases_and_commits
from zodbshootout.contenders.variants import VariantOptions
from zodbshootout.errors import UserError, close_to, suggestion
from zodbshootout.model.parameters import PARAMETERS, SWEPT, with_values
from zodbshootout.model.quantities import ITERATIONS, THROUGHPUT
from zodbshootout.model.specification import (
    RESTARTS,
    ClientKind,
    CrewShape,
    MappingType,
    Parameters,
)
from zodbshootout.model.titles import ENVIRONMENT, RELEASE, RTT
from zodbshootout.recording.recorded import Workload
from zodbshootout.results.files import holds_results
from zodbshootout.scheduling.calibration import RUN_TIME, Effort
from zodbshootout.scheduling.orders import ZAPPED_BEFORE
from zodbshootout.scheduling.plan import RunOptions, Sweep
from zodbshootout.workers.variables import default_affinity

REPLAY = "replay"
"""The benchmark that needs a workload."""
COPY = "copy"
"""The benchmark that copies a FileStorage."""
_MEMORY = "--tracemalloc --track-memory"
_OF_THIS_PYTHON = f"--python --leaks {_MEMORY}"
_ALTERNATIVES = ("-o --append --resume", _MEMORY, "--rate --latency-limit --speed")
"""Groups of options; a run can have one option of each."""
_NEEDS = (
    ("--btree-leaf-size --btree-internal-size", "--btrees", "needs --btrees"),
    ("--grown", "--btrees", "needs --btrees and --min-objects"),
    ("--grown", "--min-objects", "needs --btrees and --min-objects"),
    ("--leaks", "--threads --gevent",
     "counts the objects of one process, but clients are separate processes; add --threads"),
    (_MEMORY, "--threads --gevent",
     "measures the worker, but clients are separate processes; add --threads"),
    ("--during", "--rate",
     "needs --rate: latencies before, during and after an operation are compared at the same load"),
    ("--fail-above", "--against", "needs --against"),
    ("--confirm", "--fail-above", "needs --fail-above, whose findings it confirms"),
    ("--speed", "--workload", "needs --workload"),
)  # fmt: skip
"""Tuples ``(options, needed, message)``: each of *options* needs at least one of *needed*.
The text of an error consists of the given option and *message*."""
_CONTRADICTIONS = (
    ("--blobs", "--grown", "cannot be combined with --blobs"),
    ("--rate", f"--loops {_MEMORY}",
     "cannot be combined with --rate, which needs many timed iterations"),
    ("--latency-limit", f"--loops {_MEMORY}",
     "cannot be combined with --latency-limit, which needs many timed iterations"),
    ("--for", "--precision --at-most -p -n --rigorous --fast --debug-single-value",
     "cannot be combined with --for, which sets the duration"),
    ("--for", "--resume --append",
    "cannot continue a run with --for: its clients have ended; repeat it with -o and another file"),
    ("--for", f"--latency-limit {_MEMORY}",
     "cannot be combined with --for, which measures a steady load over time"),
    ("--during", "--for --hosts --grown -n -w", "cannot be combined with --during"),
    ("--against", _OF_THIS_PYTHON, "applies to this Python only; leave it out with --against"),
    ("--require", _MEMORY, "cannot be combined with --require"),
    ("--hosts", f"--profile --against --affinity --hook {_OF_THIS_PYTHON}",
     "applies to this host only; leave it out with --hosts"),
)  # fmt: skip
"""Tuples ``(option, others, message)``: *option* excludes each of *others*.  The text of an
error consists of the excluded option and *message*."""
T = TypeVar("T", "Options", RunOptions)
N = TypeVar("N", int, float)


@dataclass(frozen=True)
class Options:
    """The options of a run; :attr:`run` has those that scheduling needs."""

    files: Sequence[Path | str]
    """Configuration files, as paths, and ZODB URIs, as strings."""
    private: bool
    """Whether contenders have private data instead of the data that the files name."""
    benchmarks: Sequence[str]
    only: Sequence[str]
    variants: VariantOptions
    """The environments of ``--against``, the values of ``--define`` and the times of ``--rtt``."""
    fail_above: float | None
    """The slowdown that ``--fail-above`` accepts, as a fraction; ``None`` without this option."""
    confirm: bool | None
    """Whether findings of ``--fail-above`` are measured again; ``None``, the default, means yes."""
    requirements: Sequence[Requirement]
    hosts: str | None
    """The value of ``--hosts``, which says where the clients run."""
    sweep: Sweep
    default_concurrency: bool
    """Whether the number of clients is the default, because ``-c`` is not given."""
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
    """pyperf's reports to print: ``metadata``, ``dump``, ``stats``, ``hist``."""
    workload: Workload | None
    data: tuple[Path, Path | None] | None
    """The FileStorage for ``copy`` or the replay, and its blob directory, if any."""
    speed: float
    """The speed of the replay as a multiple of the recorded speed; 0 for as fast as possible."""
    include_mapping: bool
    timeout: float
    """Seconds after which a worker counts as hanging."""
    python: str
    gevent: bool
    affinity: str
    """The CPUs of the workers, as numbers separated by commas; empty for all."""
    hooks: Sequence[str]
    memory: str | None
    """``--tracemalloc`` or ``--track-memory`` if memory is measured instead of time."""
    inherit_environ: Sequence[str]
    copy_env: bool
    locale: bool

    @property
    def paths(self) -> list[Path]:
        """The configuration files among :attr:`files`."""
        return [file for file in self.files if isinstance(file, Path)]

    @property
    def stem(self) -> str:
        """A stem for result files: the stem of the first path or, if a URI is first, its scheme."""
        first = self.files[0]
        return first.stem if isinstance(first, Path) else scheme_of(first)


def parse(arguments: Sequence[str]) -> Options:
    """Parse a command line.

    :raises UserError: if an argument is wrong or contradicts another one
    :raises SystemExit: after ``--help``
    """
    return checked(run_parser().parse_intermixed_args(spelled_out(arguments)), arguments)


def checked(given: argparse.Namespace, arguments: Sequence[str]) -> Options:
    """Return the checked options of a parsed command line.

    :raises UserError: if an option is wrong or contradicts another one
    """
    _check_combinations(given)
    files, words = _files_and_benchmarks(given.words)
    names = [name for word in words for name in _split_benchmarks(word)]
    chosen = _chosen_benchmarks(names, given.exclude, replays=given.workload is not None)
    _check_benchmarks(given, chosen)
    _check_data(given, chosen)
    _check_requirements(given, chosen)
    threads = given.threads or ("shared" if given.gevent else None)
    has_file = any(isinstance(file, Path) and file != EMBEDDED for file in files)
    sweep = _sweep(given, threads, clients=2 if has_file or threads else 1)
    _check_rates(names, sweep)
    return _make(
        Options,
        given,
        files=files,
        benchmarks=chosen,
        variants=VariantOptions(
            environments_of_words(given.against, releases_and_commits),
            _definitions(given),
            _rtts(given),
        ),
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
    """Return an instance of *kind*: some fields from *computed*, the others from *given*."""
    names = {field.name for field in fields(kind)} - {*computed}
    return kind(**{name: getattr(given, name) for name in names}, **computed)


def _check_combinations(given: argparse.Namespace) -> None:
    options = run_parser().given_in(given)
    _check_packages(options)
    for alternatives in _ALTERNATIVES:
        several = [option for option in alternatives.split() if option in options]
        if len(several) > 1:
            raise UserError(f"{' and '.join(several)}: give one of them")
    for dependent, needed, reason in _NEEDS:
        if options.isdisjoint(needed.split()):
            _refuse(options, dependent, reason)
    for option, others, reason in _CONTRADICTIONS:
        if option in options:
            _refuse(options, others, reason)
    if given.hosts is not None and given.log and given.log not in LEVELS:
        raise UserError("--log: with --hosts, name a level; other hosts lack the file")


def _refuse(options: Collection[str], refused: str, reason: str) -> None:
    """If the user gave an option in *refused*, raise an error with its name and the *reason*."""
    for option in refused.split():
        if option in options:
            raise UserError(f"{option} {reason}")


def _check_packages(options: Collection[str]) -> None:
    for option, package in {"--gevent": "gevent", "--leaks": "objgraph"}.items():
        if option in options and importlib.util.find_spec(package) is None:
            raise UserError(
                f"{option}: {package} is not installed; "
                f"install it: pip install 'zodbshootout[{option[2:]}]'"
            )


def _files_and_benchmarks(words: Sequence[str]) -> tuple[Sequence[Path | str], Sequence[str]]:
    """Return the files and URIs at the beginning of *words*, and the rest of *words*."""
    files = [_file_or_uri(word) for word in takewhile(_is_file_or_uri, words)]
    if files:
        if len(set(files)) < len(files):
            raise UserError("a FILE is given twice; give it once")
        return files, words[len(files) :]
    if not words or {"all", *benchmarks()} & set(_split_benchmarks(words[0])):
        return [EMBEDDED], words
    _check_may_be_file(words[0], words[1:])
    return [Path(words[0])], words[1:]


def _is_file_or_uri(word: str) -> bool:
    looks_like_file = os.sep in word or word.endswith(".conf")
    return looks_like_file or exists(word) or is_uri(word) or word in samples()


def _file_or_uri(word: str) -> Path | str:
    if not exists(word) and word in samples():
        return samples()[word]
    if is_uri(word) and not exists(word):
        return word.strip()
    if exists(word) and holds_results(Path(word)):
        raise UserError(
            f"{word} holds results, not a configuration; to print it: zodbshootout show {word}"
        )
    return Path(word)


def _check_may_be_file(first: str, others: Sequence[str]) -> None:
    """Refuse a *first* word that resembles a command or a benchmark, not a file."""
    if first == LAST:
        raise UserError(f"{LAST} stands for results; to print them: zodbshootout show {LAST}")
    if first == "run":
        raise UserError(f"there is no command 'run'; type: zodbshootout {' '.join(others)}")
    if first in COMMANDS:
        command = shlex.join(["zodbshootout", first, *others])
        raise UserError(f"{first} is a command; put it first: {command}")
    if close := close_to(first, [*COMMANDS, *samples()]):
        raise UserError(f"no such file or command: {first!r}; did you mean {close[0]}?")
    if close_to(first, benchmarks()):
        raise UserError(
            f"no such file or benchmark: {first!r}; {suggestion(first, list(benchmarks()))}"
        )


def _split_benchmarks(word: str) -> list[str]:
    """Split a list of benchmarks at its commas; leave any other word whole."""
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
    several = {name for name, benchmark in benchmarks().items() if not benchmark.alone}
    wanted = {*names, *(several if "all" in names else ())} - {"all"}
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
    if exists(name) or is_uri(name) or name in samples():
        raise UserError(f"{name}: put it before the benchmarks")
    if name.endswith(".conf"):
        raise UserError(f"no such file: {name}")
    raise UserError(f"unknown benchmark {name!r}; {suggestion(name, ['all', *benchmarks()])}")


def _check_benchmarks(given: argparse.Namespace, chosen: Sequence[str]) -> None:
    """Refuse options that the chosen benchmarks do not allow."""
    emptied = any(name == ZAPPED_BEFORE or benchmarks()[name].empties for name in chosen)
    if given.zap is not None and not emptied:
        raise UserError(
            f"--zap destroys data right before {ZAPPED_BEFORE}, which is not among the benchmarks; "
            f"add it, or leave out --zap"
        )
    alone = [name for name in chosen if benchmarks()[name].alone]
    numbered = [name for name in chosen if benchmarks()[name].numbered]
    if given.during in RESTARTS and numbered:
        raise UserError(
            f"--during {given.during}: clients of {numbered[0]} depend on each other's "
            f"transactions, so a client cannot repeat its own; leave out {numbered[0]}"
        )
    if given.during and alone:
        raise UserError(f"--during: {benchmarks()[alone[0]].alone}; leave out {alone[0]}")


def _check_data(given: argparse.Namespace, chosen: Sequence[str]) -> None:
    """Refuse a FileStorage or a blob directory that no benchmark would use."""
    if given.data is None or COPY in chosen:
        return
    if given.workload is None:
        raise UserError(f"--data needs --workload, or the benchmark {COPY}")
    if given.data[1] is not None:
        raise UserError(
            f"--data: {REPLAY} makes blobs of the recorded sizes; leave out the directory "
            f"{given.data[1]}"
        )


def _check_requirements(given: argparse.Namespace, chosen: Sequence[str]) -> None:
    """Refuse limits on figures that the run does not measure."""
    for one in given.requirements:
        if one.benchmark not in {*benchmarks(), *chosen}:
            advice = suggestion(one.benchmark, chosen)
            raise UserError(f"--require: unknown benchmark {one.benchmark!r}; {advice}")
        if one.benchmark not in chosen:
            raise UserError(f"--require: {one.benchmark} is not measured; add it to the benchmarks")
        if one.quantity in {THROUGHPUT, ITERATIONS} and (given.rate or given.speed):
            raise UserError(
                f"--require: {one.text}: a run at a rate measures latencies; require p99, "
                "for example"
            )


def _check_rates(names: Sequence[str], sweep: Sweep) -> None:
    """Refuse a named benchmark that cannot run at any of the rates."""
    for name in (name for name in names if name != "all"):
        reasons = [benchmarks()[name].rate_refusal(parameters) for parameters in sweep.parameters()]
        if all(reasons):
            raise UserError(f"{reasons[0]}; leave it out: -{name}")


def _distinct(option: str, given: Sequence[Sequence[N]]) -> list[N]:
    """Return the numbers of a repeatable option; refuse a number that occurs twice."""
    numbers = [number for numbers in given for number in numbers]
    for number in numbers:
        if numbers.count(number) > 1:
            raise UserError(
                f"{option}: {number:.12g} is given twice, but would be one row of the table; give "
                "it once"
            )
    return numbers


def _sweep(given: argparse.Namespace, threads: str | None, clients: int) -> Sweep:
    """Return the values of all parameters, with *clients* as the default number of clients."""
    unit = ClientKind.PROCESS
    if threads:
        unit = ClientKind.GREENLET if given.gevent else ClientKind.THREAD
    typed = {
        **{name.replace("_", "-"): value for name, value in vars(given).items()},
        "btrees": MappingType[given.btrees or "PERSISTENT_MAPPING"],
    }
    fixed = {
        one: typed[one.option]
        for one in PARAMETERS
        if one.option and one not in SWEPT and one.option not in {"threads", "hosts", "rtt"}
    }
    base = Parameters(CrewShape(clients, unit, shared=threads == "shared"))
    return Sweep(
        {one: _distinct(f"--{one.option}", typed[one.option]) or [one.of(base)] for one in SWEPT},
        with_values(base, fixed),
    )


def _definitions(given: argparse.Namespace) -> dict[str, Sequence[str]]:
    definitions: dict[str, Sequence[str]] = {}
    for name, values in given.define:
        if name in definitions:
            raise UserError(f"--define: {name} is given twice; separate its values by commas")
        if len(values) > 1 and name in {RTT, RELEASE, ENVIRONMENT}:
            raise UserError(f"--define: {name} has a meaning in results; rename the definition")
        definitions[name] = values
    if given.against and any(len(values) > 1 for values in definitions.values()):
        raise UserError("--define has several values; with --against it can have only one")
    return definitions


def _rtts(given: argparse.Namespace) -> Sequence[float]:
    rtts = _distinct("--rtt", given.rtt)
    if len(rtts) > 1 and given.against:
        raise UserError("--rtt has several values; with --against, give only one")
    return rtts


def _effort(given: argparse.Namespace) -> Effort:
    """Return how much to measure: numbers of runs and values, or a precision.

    As in pyperf, ``--rigorous`` and ``--debug-single-value`` override ``-p``.
    """
    # Calibration needs times, which a run that measures memory lacks.
    loops = given.loops or (1 if given.memory else 0)
    runs = given.processes or PROCESSES
    effort = Effort(runs, given.values, given.warmups, loops, given.min_time)
    if given.duration:
        return replace(effort, processes=1, duration=60 * given.duration)
    if given.debug_single_value:
        effort = replace(effort, processes=1, values=1, warmups=0, loops=1, min_time=1e-9)
    elif given.processes is None and (given.precision or not given.values):
        return _until_precise(effort, given)
    elif given.rigorous:
        effort = replace(effort, processes=2 * PROCESSES)
    elif given.fast:
        effort = replace(effort, run_time=RUN_TIME / 3)
    reason = "cannot be combined with -p, with -n alone, or with --debug-single-value"
    _refuse(run_parser().given_in(given), "--precision --at-most", reason)
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
