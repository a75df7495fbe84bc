"""The options of a run, which stay what the user has typed."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from zodbshootout.cli import values
from zodbshootout.cli.arguments import flag, given_by, option, several
from zodbshootout.cli.gate import Requirement
from zodbshootout.cli.show import BASELINE
from zodbshootout.client.storage_types.zodburi import scheme_of
from zodbshootout.config.configuration import EMBEDDED
from zodbshootout.config.pythons import Environment, environments_of_words
from zodbshootout.contenders.releases import releases_and_commits
from zodbshootout.contenders.variants import VariantOptions
from zodbshootout.errors import UserError
from zodbshootout.model.parameters import PARAMETERS, SWEPT, with_values
from zodbshootout.model.specification import (
    COMPRESSIBILITY,
    GARBAGE,
    OPERATIONS,
    REVISIONS,
    ClientKind,
    CrewShape,
    LatencyLimit,
    MappingType,
    Parameters,
)
from zodbshootout.model.titles import ENVIRONMENT, RELEASE, RTT
from zodbshootout.plugins import entries
from zodbshootout.recording.recorded import Workload
from zodbshootout.scheduling.calibration import RUN_TIME, Effort
from zodbshootout.scheduling.plan import RunOptions, Sweep

N = TypeVar("N", int, float)

PRECISION = 0.05
"""The default of ``--precision``: half the confidence interval as a fraction of the figure."""
RIGOROUS = 0.02
SECONDS_OF_A_CELL = 8.0
"""Seconds that the command may spend on a cell, on average; four times that with ``--rigorous``."""
MIN_RUNS_FOR_PRECISION = 8
"""Minimum number of runs with ``--precision``: fewer runs say too little about their spread.
By Student's t, an interval is 4.3 standard errors wide on either side with three runs, and 2.4 with
eight."""
SHORT_RUN_TIME = 0.8
"""Seconds for which a run with ``--precision`` measures each contender.  Such a run is short,
because many short runs say more than a few long ones."""
PROCESSES = 3
"""Runs of a cell if ``-n`` is given without ``-p`` or ``--precision``."""

_FILES = "-o --append --resume"
_LOAD = "--rate --latency-limit --speed"
_MEMORY = "--tracemalloc --track-memory"
_OF_THIS_PYTHON = f"--python --leaks {_MEMORY}"
_ONE_PROCESS = "--threads --gevent"
EFFORT_IS_FIXED = "cannot be combined with -p, with -n alone, or with --debug-single-value"
_OF_WORKER = {
    _ONE_PROCESS: "measures the worker, but clients are separate processes; add --threads"
}
_OF_GROWN = dict.fromkeys(("--btrees", "--min-objects"), "needs --btrees and --min-objects")


def _distinct(option: str, given: Sequence[Sequence[N]]) -> list[N]:
    """Return the numbers of an option that can be repeated; refuse a number that occurs twice."""
    numbers = [number for numbers in given for number in numbers]
    for number in numbers:
        if numbers.count(number) > 1:
            raise UserError(
                f"{option}: {number:.12g} is given twice, but would be one row of the table; give "
                "it once"
            )
    return numbers


def _definitions(
    option: str, given: Sequence[tuple[str, Sequence[str]]]
) -> dict[str, Sequence[str]]:
    definitions: dict[str, Sequence[str]] = {}
    for name, listed in given:
        if name in definitions:
            raise UserError(f"{option}: {name} is given twice; separate its values by commas")
        if len(listed) > 1 and name in {RTT, RELEASE, ENVIRONMENT}:
            raise UserError(f"{option}: {name} has a meaning in results; rename the definition")
        definitions[name] = listed
    return definitions


def _environments(_: str, words: Sequence[str]) -> Sequence[Environment]:
    return environments_of_words(words, releases_and_commits)


def _is_on(_: str, word: str) -> bool:
    return word in {"true", "yes", "on"}


@dataclass(frozen=True)
class Options(RunOptions, VariantOptions):
    """The options of a run, as typed.

    The fields with records are those that a user can give, in the order and the groups of
    ``--help``.  The layers below see those which their own classes of options declare.
    """

    files: Sequence[Path | str] = (EMBEDDED,)
    """Configuration files, as paths, and ZODB URIs, as strings."""
    benchmarks: Sequence[str] = ()
    # fmt: off
    only: Sequence[str] = several("--only NAME", group="what is measured", type=str.lower,
        help="measure only the contender of that name; several as NAME,NAME,... or by "
        "repeating the option")
    workload: Workload | None = option("--workload PATH", type=values.workload,
        help="replay the workload in PATH, which is a directory, a file or the name of an "
        "installed workload, such as plone; other benchmarks are measured only if named")
    speed: float = option("--speed FACTOR", 0.0, type=values.speed, one_of=_LOAD,
        needs={"--workload": "needs --workload"},
        help="start the transactions of --workload at their recorded times, FACTOR times as "
        "fast (default: one right after another); the figures are mean latencies")
    rate: Sequence[float] = several("--rate RATE", type=values.rates, made=_distinct, one_of=_LOAD,
        excludes={f"--loops {_MEMORY}":
            "cannot be combined with --rate, which needs many timed iterations"},
        help="let all clients together start RATE iterations per second (for replay, "
        "transactions) at random times; the figures are latencies since the scheduled starts; "
        "by default, a client starts an iteration when its previous one ends; several as "
        "RATE,RATE,... or by repeating the option; 20..200 is 20,40,80,160,200")
    during: str = option("--during OPERATION", "", choices=OPERATIONS,
        needs={"--rate": "needs --rate: latencies before, during and after an operation are "
            "compared at the same load"},
        excludes={"--for --hosts --grown -n -w": "cannot be combined with --during"},
        help="measure the latencies at --rate before, during and after an operation: pack (of "
        "a database with --min-objects, --revisions and --garbage), copy (of the database, to "
        "a FileStorage), restart (private servers are killed and started again) or "
        "restart:clean (they are stopped without killing, and started again)")
    latency_limit: LatencyLimit = option(
        "--latency-limit LIMIT", LatencyLimit(), type=values.latency_limit, one_of=_LOAD,
        excludes={f"--loops {_MEMORY}":
            "cannot be combined with --latency-limit, which needs many timed iterations"},
        help="find the highest rate at which a percentile of the latencies stays within a "
        "time, such as p99=50ms")
    data: tuple[Path, Path | None] | None = option(
        "--data DATA_FS[,BLOB_DIR]", type=values.file_storage,
        help="for copy, the FileStorage to copy (default: made-up objects); for --workload, a "
        "FileStorage whose objects fill the database (default: made-up objects of the recorded "
        "sizes); the FileStorage is only read")
    definitions: Mapping[str, Sequence[str]] = several(
        "--define NAME=VALUE", {}, type=values.definition, made=_definitions,
        help="set NAME to VALUE, overriding its %%define in FILE; with NAME=VALUE,VALUE,... "
        "measure each contender that uses NAME, once per value (write a comma in a value as "
        "\\,); if repeated for several names, measure every combination")
    rtts: Sequence[float] = several("--rtt TIME", type=values.rtts, made=_distinct,
        help="for each of these round-trip times between client and server, measure each "
        "contender that has a server; several as TIME,TIME,...; 0 adds no delay")
    include_mapping: bool = option("--include-mapping", False, choices=values.SWITCHES, made=_is_on,
        takes=values.SWITCHES.__contains__, without_value="true",
        help="add a MappingStorage as a contender (true without a value; default: false)")
    private: bool = flag("--private",
        help="use the settings of FILE with other data: the run creates files, or a database "
        "in a server, for each contender, and removes them; nothing that FILE names is opened")
    list_only: bool = flag("--list",
        help="open every contender, print which cells can and cannot be measured and how long "
        "that would take, and exit")

    object_counts: Sequence[int] = several(
        "--object-counts N", group="objects", type=values.counts, made=_distinct,
        help="objects that each client writes or reads per iteration, such as 500 or 10k "
        "(default: 100); several as N,N,... or N..N, or by repeating the option")
    object_size: Sequence[int] = several(
        "-s --object-size BYTES", type=values.record_sizes, made=_distinct,
        help="bytes of a stored record, such as 300, 1k or 1MB (default: 300); several as "
        "BYTES,BYTES,... or BYTES..BYTES, or by repeating the option")
    btrees: str | None = option("--btrees", choices=values.MAPPINGS,
        takes=values.MAPPINGS.__contains__, without_value="IO",
        help="keep the objects in a BTree instead of a PersistentMapping (IO without a value)")
    btree_leaf_size: int = option(
        "--btree-leaf-size N", 0, type=values.node_size, needs={"--btrees": "needs --btrees"},
        help="maximum number of keys in a leaf of the BTree of --btrees (default: that of the "
        "package BTrees)")
    btree_internal_size: int = option(
        "--btree-internal-size N", 0, type=values.node_size, needs={"--btrees": "needs --btrees"},
        help="maximum number of children of an inner node of the BTree of --btrees (default: "
        "that of the package BTrees)")
    grown: bool = flag("--grown", needs=_OF_GROWN,
        help="put all objects into one BTree of --btrees, with the benchmarks' objects spread "
        "among those of --min-objects")
    blobs: bool = flag("--blobs", excludes={"--grown": "cannot be combined with --blobs"},
        help="keep the objects' content in blobs of --object-size bytes")
    compressibility: float = option("--compressibility PART", COMPRESSIBILITY, type=values.fraction,
        help="fraction of the content that compression can remove, from 0 to 1 (default: "
        f"{COMPRESSIBILITY})")
    seed: int = option("--seed", 0, type=values.whole,
        help="seed of the generator of the objects' content (default: 0)")

    min_objects: Sequence[int] = several(
        "--min-objects N", group="the databases", type=values.counts_or_zeros, made=_distinct,
        help="fill each database with at least N objects besides those of the benchmarks, "
        "such as 100k or 10M (default: 0); several as N,N,... or by repeating the option, "
        "measured from the smallest to the largest")
    revisions: int = option("--revisions N", REVISIONS, type=values.count,
        help="revisions of each object, for benchmarks that use or pack old revisions "
        f"(default: {REVISIONS})")
    garbage: float = option("--garbage PERCENT", GARBAGE, type=values.garbage,
        help="percentage of a database's objects that are unreachable when it is packed "
        f"(default: {100 * GARBAGE:g}%%)")
    may_write: Sequence[str] = several("--may-write NAME", type=str.lower,
        help="write to the database of that contender even if it holds other data; several as "
        "NAME,NAME,... or by repeating the option")
    pack: bool = flag("--pack", help="pack each database before measuring it")
    zap: str | None = option(
        "--zap [force|NAME,...]", takes=values.is_value_of_zap, without_value=values.ASK,
        help="DESTROY ALL DATA of a database before each run of add; zodbshootout asks about "
        "each database first, unless its contender is named or the value is force")

    concurrency: Sequence[int] = several(
        "-c --concurrency N", group="concurrency", type=values.crew_sizes, made=_distinct,
        help="number of concurrent clients, which are processes unless --threads or --gevent "
        "is given (default: 2 with one of these options or with FILE, otherwise 1); several "
        "as N,N,... or N..N, or by repeating the option")
    hosts: str | None = option("--hosts WHERE",
        excludes={f"--profile --against --affinity --hook {_OF_THIS_PYTHON}":
            "applies to this host only; leave it out with --hosts"},
        help="run the clients on the workers of a Dask cluster; WHERE is the address of its "
        "scheduler, a scheduler file of Dask, or local:N for N workers on this host")
    threads: str | None = option("--threads", type=values.sharing, choices=values.SHARINGS,
        takes=values.is_value_of_threads, without_value="shared",
        help="run clients as threads, which share one DB (shared, or without a value) "
        "or have a DB each (unique)")
    gevent: bool = flag("--gevent", package="gevent",
        help="run clients as greenlets of a process patched by gevent; implies --threads")

    precision: float | None = option(
        "--precision PERCENT", group="how long it takes", type=values.percentage,
        help="measure until half of the 95%% confidence interval of each figure, and of its "
        f"ratio to the baseline, is at most PERCENT (default: {100 * PRECISION:g}%%)")
    at_most: float = option("--at-most MINUTES", 0.0, type=values.minutes,
        help="stop measuring after MINUTES (or a time such as 30s or 1h), and mark the "
        f"figures that missed the precision (default: {SECONDS_OF_A_CELL:g} seconds for each "
        "cell)")
    duration: float = option("--for MINUTES", 0.0, type=values.minutes,
        excludes={
            "--precision --at-most -p -n --rigorous --fast --debug-single-value":
                "cannot be combined with --for, which sets the duration",
            "--resume --append": "cannot continue a run with --for: its clients have ended; "
                "repeat it with -o and another file",
            f"--latency-limit {_MEMORY}":
                "cannot be combined with --for, which measures a steady load over time",
        },
        help="keep the clients, servers and databases of each benchmark open for MINUTES (or "
        "a time such as 90s or 2h), and show what changes over time; replaces --precision")

    resume: Path | None = option(
        "--resume FILENAME", group="the run and its output", type=values.result_file,
        one_of=_FILES,
        help="continue an interrupted run: measure what FILENAME lacks, and write to it")
    label: str = option("--label TEXT", "", help="store TEXT in the metadata of the results")
    against: Sequence[Environment] = several("--against WHAT", made=_environments,
        excludes={_OF_THIS_PYTHON: "applies to this Python only; leave it out with --against"},
        help="measure each contender a second time, with WHAT: a requirement such as "
        "RelStorage==4.2.0, requirements such as 'ZEO==5.4.1 ZODB<6', a checkout, a wheel, a "
        "Python or a virtual environment; 'RelStorage>=4' stands for all releases that satisfy "
        "it, and ./RelStorage@v4.2..HEAD for this range of commits (repeatable)")
    fail_above: float | None = option(
        "--fail-above PERCENT", type=values.limit, needs={"--against": "needs --against"},
        help="exit with status 1 if a contender takes more than PERCENT longer with WHAT of "
        "--against than with the installed packages, or has no figure with WHAT; see "
        "zodbshootout compare --help")
    confirm: bool = flag("--confirm",
        needs={"--fail-above": "needs --fail-above, whose findings it confirms"},
        help="measure the findings of --fail-above a second time, and report those that are "
        "confirmed (default)")
    no_confirm: bool = flag("--no-confirm",
        help="report the findings of --fail-above without measuring them again")
    requirements: Sequence[Requirement] = several("--require LIMIT", type=Requirement.parsed,
        excludes={_MEMORY: "cannot be combined with --require"},
        help="exit with status 1 if a benchmark has no figure or breaks a limit, such as "
        "'update p99 <= 50ms', 'update trips <= 12' or 'zeo: cold objects >= 10k' (repeatable)")
    baseline: str | None = given_by(BASELINE)
    report: Path | None = option("--report PAGE", type=Path,
        help="write a report with charts to this file at the end, as zodbshootout report does")
    retries: int = option("--retries N", 1, type=values.count_or_zero,
        help="repeat a run up to N times if one of its processes crashes; the table counts "
        "repeated runs (default: 1)")
    fail_fast: bool = flag("--fail-fast", help="stop at the first cell that fails")
    profiles: Path | None = option("--profile DIR", type=values.profile_directory,
        help="write profiles of the clients to DIR, one for each contender and benchmark; "
        "profiling slows the clients down")
    leaks: bool = flag("--leaks", package="objgraph",
        needs={_ONE_PROCESS: "counts the objects of one process, but clients are separate "
            "processes; add --threads"},
        help="after each value, list the classes that have more objects than before (threads "
        "only)")
    log: str | None = option("--log [LEVEL|FILE]", type=values.log,
        takes=values.is_value_of_log, without_value="INFO",
        help="print what storages log at LEVEL or above (INFO without a value), or configure "
        "logging with a ZConfig FILE")

    rigorous: bool = flag("--rigorous", group="pyperf's options",
        help=f"like --precision {100 * RIGOROUS:g}%% with four times the default time limit; "
        f"with -p or -n, {2 * PROCESSES} runs")
    fast: bool = flag("--fast", help="use a third of the time")
    debug_single_value: bool = flag(
        "--debug-single-value", excludes={"--precision --at-most": EFFORT_IS_FIXED},
        help="measure a single value of one iteration, to try a configuration")
    processes: int | None = option(
        "-p --processes", type=values.count, excludes={"--precision --at-most": EFFORT_IS_FIXED},
        help="runs of each cell, each in new processes; replaces --precision")
    number_of_values: int = option("-n --values VALUES", 0, type=values.count,
        help="values of a run; after each value, the next contender takes its turn (default: 3 "
        f"to 100, as many as fit into {SHORT_RUN_TIME:g} seconds for each contender; with -p, "
        f"into {RUN_TIME:g} seconds)")
    warmups: int = option("-w --warmups", 0, type=values.count_or_zero,
        help="values that are discarded at the start of a run (default: 0)")
    loops: int = option("-l --loops", 0, type=values.count_or_zero,
        help="iterations of each client per value (default: 0, calibrated)")
    verbose: bool = flag("-v --verbose", help="print each step, and what storages print")
    quiet: bool = flag("-q --quiet",
        help="print no progress; tables, errors and the names of files are still printed")
    output: Path | None = option("-o --output FILENAME", type=values.result_file, one_of=_FILES,
        help="write all results to FILENAME, and those of each contender to a file in "
        "the .d directory beside it (default: a dated file in the user's data directory)")
    append: Path | None = option("--append FILENAME", type=values.result_file, one_of=_FILES,
        help="add the results to those in FILENAME and in the directory beside it")
    # On a machine whose speed drifts, many short interleaved values compare contenders better than
    # a few long ones.
    min_time: float = option("--min-time", 0.01, type=values.seconds,
        help="minimum time of a value, in seconds (default: 0.01)")
    timeout: float = option("--timeout", 1800.0, type=values.seconds,
        help="time limit of a worker, in seconds (default: 1800)")
    dump: bool = flag("-d --dump", help="print all values as well, as pyperf dump does")
    metadata: bool = flag(
        "--metadata -m", help="print the metadata as well, as pyperf show --metadata does")
    hist: bool = flag(
        "--hist -g", help="print a histogram of the values as well, as pyperf hist does")
    stats: bool = flag("--stats -t", help="print statistics as well, as pyperf stats does")
    affinity: str | None = option("--affinity CPU_LIST", type=values.affinity,
        help="CPUs that the workers may use (default: all that this process may use)")
    inherit_environ: Sequence[str] = option("--inherit-environ VARS", (), type=values.words,
        help="environment variables, separated by commas, that the workers inherit")
    copy_env: bool = flag("--copy-env", help="pass all environment variables to the workers")
    no_locale: bool = flag("--no-locale", help="do not pass LANG and LC_* to the workers")
    python: str = option("--python", sys.executable, type=values.python,
        help="the Python that runs the workers (default: the one that runs zodbshootout)")
    hooks: Sequence[str] = several(
        "--hook HOOK", choices=sorted(entry.name for entry in entries("pyperf.hook")),
        help="use the given pyperf hook (repeatable)")
    tracemalloc: bool = flag("--tracemalloc", one_of=_MEMORY, needs=_OF_WORKER,
        help="measure the memory that Python allocates, not time (threads only)")
    track_memory: bool = flag("--track-memory", one_of=_MEMORY, needs=_OF_WORKER,
        help="measure the memory of the worker, not time (threads only)")
    # fmt: on

    @property
    def paths(self) -> list[Path]:
        """The configuration files among :attr:`files`."""
        return [file for file in self.files if isinstance(file, Path)]

    @property
    def stem(self) -> str:
        """A stem for result files: the stem of the first path or, if a URI is first, its scheme."""
        first = self.files[0]
        return first.stem if isinstance(first, Path) else scheme_of(first)

    @property
    def memory(self) -> str | None:
        """The option that lets the run measure memory instead of time, if it is given."""
        given = {"--tracemalloc": self.tracemalloc, "--track-memory": self.track_memory}
        return next((name for name, is_given in given.items() if is_given), None)

    @cached_property
    def sweep(self) -> Sweep:
        """The values of all parameters, with 1 or 2 as the default number of clients."""
        unit = ClientKind.PROCESS
        if self.threads or self.gevent:
            unit = ClientKind.GREENLET if self.gevent else ClientKind.THREAD
        has_file = any(path != EMBEDDED for path in self.paths)
        clients = 1 if unit is ClientKind.PROCESS and not has_file else 2
        shared = unit is not ClientKind.PROCESS and self.threads != "unique"
        typed = {
            one: getattr(self, one.option.replace("-", "_"))
            for one in PARAMETERS
            if one.option and one.option not in {"btrees", "threads", "hosts", "rtt"}
        }
        base = Parameters(
            CrewShape(clients, unit, shared=shared),
            mapping=MappingType[self.btrees or "PERSISTENT_MAPPING"],
        )
        return Sweep(
            {one: typed.pop(one) or [one.of(base)] for one in SWEPT}, with_values(base, typed)
        )

    @cached_property
    def effort(self) -> Effort:
        """How much to measure: numbers of runs and values, or a precision.

        As in pyperf, ``--rigorous`` and ``--debug-single-value`` override ``-p``.
        """
        # Calibration needs times, which a run that measures memory lacks.
        loops = self.loops or (1 if self.memory else 0)
        runs = self.processes or PROCESSES
        effort = Effort(runs, self.number_of_values, self.warmups, loops, self.min_time)
        if self.duration:
            return replace(effort, processes=1, duration=self.duration)
        if self.debug_single_value:
            return replace(effort, processes=1, values=1, warmups=0, loops=1, min_time=1e-9)
        if self.processes is None and (self.precision or not self.number_of_values):
            return self._until_precise(effort)
        if self.rigorous:
            return replace(effort, processes=2 * PROCESSES)
        return replace(effort, run_time=RUN_TIME / 3) if self.fast else effort

    def _until_precise(self, effort: Effort) -> Effort:
        precision, seconds = PRECISION, SECONDS_OF_A_CELL
        if self.rigorous:
            precision, seconds = RIGOROUS, 4 * SECONDS_OF_A_CELL
        elif self.fast:
            seconds /= 3
        return replace(
            effort,
            processes=MIN_RUNS_FOR_PRECISION,
            run_time=SHORT_RUN_TIME,
            precision=self.precision or precision,
            limit=self.at_most,
            cell_limit=seconds,
        )
