"""The arguments of the command line: which there are, and how they are told apart.

pyperf's own parser is the base, so that its options are the ones it has, under the names and with
the checks it has.  Ours are added to it.
"""

from __future__ import annotations

import argparse
import functools
import re
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

import pyperf

from zodbshootout.cli import argument_values
from zodbshootout.client.benchmarks import DEFAULT, benchmarks
from zodbshootout.client.specification import COMPRESSIBILITY
from zodbshootout.crews.profiling import PROFILERS
from zodbshootout.errors import UserError, close_to
from zodbshootout.scheduling.interleaved_run import RUN_TIME

PRECISION = 0.05
"""Half of the width of a figure's interval that ends the measuring, unless told otherwise."""
RIGOROUS = 0.02
"""The same with ``--rigorous``."""
SECONDS_OF_A_CELL = 8.0
"""What a cell takes at most, on average, unless told otherwise; four times that is rigorous."""
MIN_RUNS = 4
"""Runs of a cell where a precision is to be reached: fewer say too little of how runs differ."""
SHORT_RUN_TIME = 0.8
"""Seconds that the slices of such a run take for each contender: more runs say more than long
ones."""
PROCESSES = 3
"""Runs of a cell where the number of values is given, and not that of runs."""
VALUES = 0
"""Values of a run, unless told otherwise: as many as fit into the time that a run may take."""
WARMUPS = 0
"""Values of a run that do not count, unless told otherwise: before the first value every client has
done several iterations already, to calibrate."""
MIN_TIME = 0.05
"""Seconds that a value takes at least, unless told otherwise: many short ones in turn say more than
a few long ones about contenders on a machine whose speed changes."""
TIMEOUT = 1800.0
"""Seconds after which a worker counts as hanging, unless told otherwise."""
OPEN_TIMEOUT = 60.0
"""Seconds that a contender has to be opened in, unless told otherwise: ZEO's client waits 30."""
RETRIES = 1
"""How often a run is made again in which a process has crashed, unless told otherwise."""
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

OPTIONAL_VALUES = {
    "--threads": (("shared", "unique"), "shared"),
    "--btrees": (("IO", "OO"), "IO"),
    "--include-mapping": (("true", "yes", "on", "false", "no", "off"), "true"),
}
"""Options whose value may be left out: what it can be, and what it is then."""
NOT_OURS = {
    "pipe", "worker", "worker_task", "calibrate_loops", "recalibrate_loops",
    "calibrate_warmups", "recalibrate_warmups", "compare_to", "python_names",
}  # fmt: skip
"""What pyperf has for its workers, and what would bypass the way contenders are compared."""
ASK, FORCE = "ask", "force"
"""What ``--zap`` means without a value, and the value that is no contender."""


_UNKNOWN = re.compile(r"unrecognized arguments: (?P<option>-[^\s=]+)")


def raise_usage_errors(parser: argparse.ArgumentParser) -> None:
    """Have a parser raise what it has to say, in place of printing the usage and exiting."""

    def error(message: str) -> NoReturn:
        raise UserError(_explained(message, parser))

    parser.error = error  # type: ignore[method-assign]


def _explained(message: str, parser: argparse.ArgumentParser) -> str:
    """Return a message of a parser's, with what may be meant by an option that there is not."""
    found = _UNKNOWN.match(message)
    if found is None:
        return message
    options = [
        name
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        for name in action.option_strings
    ]
    close = close_to(found["option"], options)
    advice = f"did you mean {' or '.join(close)}?" if close else f"see {parser.prog} --help"
    return f"unknown option {found['option']}; {advice}"


@functools.cache
def parser() -> argparse.ArgumentParser:
    """Return the parser.  pyperf allows one Runner in a process, so there is one parser, too."""
    base: argparse.ArgumentParser = pyperf.Runner(warmups=WARMUPS).argparser
    base.conflict_handler = "resolve"  # our --profile takes the place of pyperf's
    raise_usage_errors(base)
    base.prog = "zodbshootout"
    base.usage = (
        "zodbshootout [FILE|URI] [BENCHMARK ...] [-BENCHMARK ...] [option ...]\n"
        "       zodbshootout show FILE ... [option ...]\n"
        "       zodbshootout compare BASE NEW [option ...]\n"
        "       zodbshootout compare FILE --contender A B [option ...]\n"
        "       zodbshootout report FILE ... -o PAGE [option ...]"
    )
    base.description = (
        "Measure and compare ZODB storages.  FILE lists the contenders in ZConfig format; "
        "without it an embedded default is measured, which needs nothing installed or started.  "
        "A ZODB URI, such as file:///tmp/x.fs or zeo://localhost:8100, is one contender.  The "
        "benchmarks write to these databases."
    )
    base.epilog = (
        f"Benchmarks: {', '.join(benchmarks())}.  By default the first {len(DEFAULT)} of them run; "
        "all runs every one, and -cold leaves one out. "
        "Exit status: 0 all was measured that is supported, 1 compare --fail-above found a "
        "slowdown, 2 bad usage or configuration, "
        "3 some cells failed or nothing was measured, 130 interrupted."
    )
    base.allow_abbrev = False
    base.add_argument(
        "--version", action="version", version=f"zodbshootout {version('zodbshootout')}"
    )
    for action in base._actions:
        if action.dest in NOT_OURS:
            action.help = argparse.SUPPRESS
    base.set_defaults(processes=None, timeout=TIMEOUT, values=VALUES, min_time=MIN_TIME)
    _describe_differences(base)
    _add_selection(base)
    _add_data(base)
    _add_database(base)
    _add_crew(base)
    _add_effort(base)
    _add_run(base)
    _put_last(base, "pyperf's options")
    return base


def _put_last(base: argparse.ArgumentParser, title: str) -> None:
    """Have ``--help`` list the options that came with the parser after ours."""
    base._optionals.title = title
    base._action_groups.remove(base._optionals)
    base._action_groups.append(base._optionals)


_DIFFERENCES = {
    "processes": "runs of each cell, each in new processes; replaces --precision",
    "loops": "iterations of each client for a value (default: 0, calibrate)",
    "timeout": f"time limit of a worker, in seconds (default: {TIMEOUT:g})",
    "output": "write all results to FILENAME, and those of each contender to a directory beside "
    "it whose name ends in .d (default: a dated file in the user's data directory)",
    "append": "add the results to those in FILENAME and in the directory beside it",
    "warmups": f"values at the beginning of a run that are not counted (default: {WARMUPS})",
    "values": "values of a run, which the contenders take in turn (default: as many as fit into "
    f"{SHORT_RUN_TIME:g} seconds for each contender, with -p {RUN_TIME:g}, 3 to 100)",
    "min_time": f"minimum time of a value, in seconds (default: {MIN_TIME})",
    "rigorous": f"--precision {100 * RIGOROUS:g}%% and four times the time; with -p or -n, "
    f"{2 * PROCESSES} runs",
    "fast": "use a third of the time",
    "affinity": "CPUs that the workers may use (default: all that this process may use)",
    "hook": "use the given pyperf hook (repeatable)",
    "verbose": "print each step, and what storages print",
    "quiet": "print no progress; tables, the names of files and errors are still printed",
    "debug_single_value": "measure a single value of one iteration, to try a configuration",
    "dump": "print all values as well, as pyperf dump does",
    "metadata": "print the metadata as well, as pyperf show --metadata does",
    "hist": "print a histogram of the values as well, as pyperf hist does",
    "stats": "print statistics as well, as pyperf stats does",
    "inherit_environ": "environment variables, separated by commas, that the workers inherit",
    "copy_env": "pass all environment variables to the workers",
    "locale": "do not pass LANG and LC_* to the workers",
    "python": "the Python that runs the workers (default: the one that runs zodbshootout)",
    "help": "print this help and exit",
    "version": "print the version and exit",
    "tracemalloc": "measure the memory that Python allocates, in place of time (threads only)",
    "track_memory": "measure the memory of the worker, in place of time (threads only)",
}
"""Where we differ from pyperf, or have more to say."""


_VALUES = {
    "processes": argument_values.count,
    "values": argument_values.count,
    "warmups": argument_values.count_or_none,
    "loops": argument_values.count_or_none,
    "timeout": argument_values.seconds,
    "min_time": argument_values.seconds,
}
"""What pyperf's options have for values; what is wrong with them is told in our words."""


def _describe_differences(base: argparse.ArgumentParser) -> None:
    for action in base._actions:
        action.help = _DIFFERENCES.get(action.dest, action.help)
        action.type = _VALUES.get(action.dest, action.type)
        if action.dest == "hook":
            action.metavar = "HOOK"


def _add_selection(base: argparse.ArgumentParser) -> None:
    group = base.add_argument_group("what is measured")
    group.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    group.add_argument("--exclude", action="append", default=[], help=argparse.SUPPRESS)
    group.add_argument(
        "--only", metavar="NAME", action="append", default=[],
        help="measure only the contender of that name; several as NAME,NAME,... or in repeated "
        "options",
    )  # fmt: skip
    group.add_argument(
        "--include-mapping", choices=OPTIONAL_VALUES["--include-mapping"][0],
        help="add a MappingStorage as a contender (true without a value; default: false)",
    )  # fmt: skip
    group.add_argument(
        "--list", action="store_true", dest="list_only",
        help="print the cells that would be measured and an estimate of the time, and exit",
    )  # fmt: skip


def _add_data(base: argparse.ArgumentParser) -> None:
    group = base.add_argument_group("objects")
    group.add_argument(
        "--object-counts", metavar="N", type=argument_values.counts, action="append",
        help="objects that each client writes or reads in an iteration (default: 1000); "
        "several as N,N,... or N..N, or in repeated options",
    )  # fmt: skip
    group.add_argument(
        "-s", "--object-size", metavar="BYTES", type=argument_values.record_sizes, action="append",
        help="bytes of a stored record (default: 300); several as BYTES,BYTES,... or "
        "BYTES..BYTES, or in repeated options",
    )  # fmt: skip
    group.add_argument(
        "--btrees", choices=("IO", "OO"),
        help="keep the objects in a BTree instead of a PersistentMapping (IO without a value)",
    )  # fmt: skip
    group.add_argument(
        "--btree-leaf-size", metavar="N", type=argument_values.node_size, default=0,
        help="maximum number of keys in a leaf of that BTree (default: that of BTrees)",
    )  # fmt: skip
    group.add_argument(
        "--btree-internal-size", metavar="N", type=argument_values.node_size, default=0,
        help="maximum number of children of an inner node of that BTree (default: that of BTrees)",
    )  # fmt: skip
    group.add_argument(
        "--blobs", action="store_true",
        help="keep the objects' content in blobs of --object-size bytes",
    )  # fmt: skip
    group.add_argument(
        "--compressibility", metavar="PART", type=argument_values.part, default=COMPRESSIBILITY,
        help="fraction of the content that compression can remove, from 0 to 1 "
        f"(default: {COMPRESSIBILITY})",
    )  # fmt: skip
    group.add_argument(
        "--seed", type=argument_values.whole, default=0,
        help="seed of the generator of the objects' content (default: 0)",
    )  # fmt: skip


def _add_database(base: argparse.ArgumentParser) -> None:
    group = base.add_argument_group("the databases")
    group.add_argument(
        "--min-objects", metavar="N", type=argument_values.count, default=0,
        help="fill each database with at least N objects besides those of the benchmarks",
    )  # fmt: skip
    group.add_argument(
        "--may-write", metavar="NAME", action="append", default=[],
        help="write to the database of that contender even if it holds data of others; several as "
        "NAME,NAME,... or in repeated options",
    )  # fmt: skip
    group.add_argument("--pack", action="store_true", help="pack each database before measuring it")
    group.add_argument(
        "--restart-servers", action="store_true",
        help="restart private servers before each value of a cold benchmark, so that their own "
        "caches are empty, too; a value then has as few iterations as possible",
    )  # fmt: skip
    group.add_argument(
        "--zap", metavar="[force|NAME,...]",
        help="DESTROY ALL DATA of a database before each run of add; asks for each database first, "
        "unless contenders are named, or force names them all",
    )  # fmt: skip


def _add_crew(base: argparse.ArgumentParser) -> None:
    group = base.add_argument_group("concurrency")
    group.add_argument(
        "-c", "--concurrency", metavar="N", type=argument_values.crew_sizes, action="append",
        help="number of concurrent clients, which are processes unless --threads or --gevent is "
        "given (default: 2 with one of these or with FILE, otherwise 1); several as N,N,... or "
        "N..N, or in repeated options",
    )  # fmt: skip
    group.add_argument(
        "--hosts", metavar="WHERE",
        help="run the clients on the workers of a Dask cluster: the address of its scheduler, a "
        "file that describes it, or local:N for N workers on this host",
    )  # fmt: skip
    group.add_argument(
        "--threads", choices=("shared", "unique"),
        help="clients are threads, which share one DB (shared, also without a value) or have one "
        "each (unique)",
    )  # fmt: skip
    group.add_argument(
        "--gevent", action="store_true",
        help="clients are greenlets of a process patched by gevent; implies --threads",
    )  # fmt: skip


def _add_effort(base: argparse.ArgumentParser) -> None:
    group = base.add_argument_group("how long it takes")
    group.add_argument(
        "--precision", metavar="PERCENT", type=argument_values.percentage,
        help="measure until half of the 95%% confidence interval of each figure, and of its ratio "
        f"to the baseline, is at most PERCENT of it (default: {100 * PRECISION:g}%%)",
    )  # fmt: skip
    group.add_argument(
        "--at-most", metavar="MINUTES", type=argument_values.minutes,
        help="stop measuring after MINUTES and mark the figures that missed the precision "
        f"(default: {SECONDS_OF_A_CELL:g} seconds for each cell)",
    )  # fmt: skip


def _add_run(base: argparse.ArgumentParser) -> None:
    group = base.add_argument_group("the run and its output")
    group.add_argument(
        "--resume", metavar="FILENAME",
        help="continue an interrupted run: measure what FILENAME lacks, and write to it",
    )  # fmt: skip
    group.add_argument(
        "--label", metavar="TEXT", default="",
        help="store TEXT in the metadata of the results",
    )  # fmt: skip
    group.add_argument(
        "--against", metavar="WHAT", action="append", default=[],
        help="measure each contender a second time, with WHAT: a requirement such as "
        "RelStorage==4.2.0, a checkout, a wheel, a Python or a virtual environment; can be "
        "repeated",
    )  # fmt: skip
    group.add_argument(
        "--baseline", metavar="NAME",
        help="compare the others with that contender below the table (default: the first)",
    )  # fmt: skip
    group.add_argument(
        "--report", metavar="PAGE", type=Path,
        help="write a report with charts to this file at the end, as zodbshootout report does",
    )  # fmt: skip
    group.add_argument(
        "--open-timeout", metavar="SECONDS", type=argument_values.seconds, default=OPEN_TIMEOUT,
        help="time limit for opening each contender before anything is measured (default: "
        f"{OPEN_TIMEOUT:g})",
    )  # fmt: skip
    group.add_argument(
        "--retries", metavar="N", type=argument_values.count_or_none, default=RETRIES,
        help="repeat a run up to N times if one of its processes crashes; the table says so "
        f"(default: {RETRIES})",
    )  # fmt: skip
    group.add_argument("--fail-fast", action="store_true", help="stop at the first cell that fails")
    group.add_argument(
        "--profile", metavar="DIR", type=Path,
        help="write profiles of the clients to DIR, one for each contender and benchmark; the "
        "figures are lower then",
    )  # fmt: skip
    group.add_argument(
        "--profiler", choices=PROFILERS, default=PROFILERS[0],
        help=f"the profiler (default: {PROFILERS[0]})",
    )  # fmt: skip
    group.add_argument(
        "--leaks", action="store_true",
        help="after each value, list the classes that have more objects than before (threads only)",
    )  # fmt: skip
    group.add_argument(
        "--log", metavar="[LEVEL|FILE]",
        help="log what storages do: from LEVEL on (INFO without a value), or as a ZConfig logging "
        "FILE says",
    )  # fmt: skip
