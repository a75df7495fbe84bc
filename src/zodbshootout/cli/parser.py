"""The parser of the command line of a run.

Options of pyperf are declared here under the names that pyperf's manual gives them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any, NoReturn

from zodbshootout.cli import values
from zodbshootout.client.benchmarks import DEFAULT, benchmarks
from zodbshootout.client.specification import COMPRESSIBILITY
from zodbshootout.errors import UserError, close_to
from zodbshootout.scheduling.calibration import RUN_TIME

PRECISION = 0.05
"""Half of the width of a figure's interval, as a part of the figure, that ends the measuring."""
RIGOROUS = 0.02
"""The same with ``--rigorous``."""
SECONDS_OF_A_CELL = 8.0
"""Seconds that a cell takes at most, on average; ``--rigorous`` allows four times as many."""
MIN_RUNS = 4
"""Runs of a cell if a precision is to be reached: fewer say too little about how runs differ."""
SHORT_RUN_TIME = 0.8
"""Seconds that the slices of a run take for each contender if a precision is to be reached: many
short runs say more than a few long ones."""
PROCESSES = 3
"""Runs of a cell if only the number of values is given."""
MIN_TIME = 0.05
"""Seconds that a value takes at least: many short values in turn compare contenders better than a
few long ones if the speed of the machine changes."""
TIMEOUT = 1800.0
"""Seconds after which a worker counts as hanging."""
OPEN_TIMEOUT = 60.0
"""Seconds in which a contender has to open; ZEO's client gives up after 30."""
RETRIES = 1
"""How often a run is repeated if one of its processes crashes."""


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors, and names the options that a misspelt one resembles."""

    def __init__(self, **texts: Any) -> None:
        super().__init__(allow_abbrev=False, **texts)

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (-[^\s=]+)", message)
        if unknown is None:
            raise UserError(message)
        close = close_to(unknown[1], self.option_names)
        advice = f"did you mean {' or '.join(close)}?" if close else f"see {self.prog} --help"
        raise UserError(f"unknown option {unknown[1]}; {advice}")

    @property
    def option_names(self) -> list[str]:
        """The names of the options that ``--help`` lists."""
        self.color = False  # Python 3.14 colours the names
        listed = re.findall(r"^  (-.*?)(?:  |$)", self.format_help(), re.MULTILINE)
        return [name for names in listed for name in re.findall(r"(?<![\w-])-[\w-]+", names)]


Option = tuple[Sequence[str], Mapping[str, Any]]


def option(names: str, metavar: str | None, text: str, **how: Any) -> Option:
    """Declare an option with a value."""
    return names.split(), {"metavar": metavar, "help": text, **how}


def several(names: str, metavar: str, text: str, **how: Any) -> Option:
    """Declare an option that can be repeated."""
    return option(names, metavar, text, action="append", default=[], **how)


def flag(names: str, text: str, **how: Any) -> Option:
    """Declare an option without a value."""
    return names.split(), {"action": "store_true", "help": text, **how}


OPTIONS: Mapping[str, Sequence[Option]] = {
    "what is measured": [
        several(
            "--only", "NAME",
            "measure only the contender of that name; several as NAME,NAME,... or in repeated "
            "options",
            type=str.lower,
        ),
        option(
            "--include-mapping", None,
            "add a MappingStorage as a contender (true without a value; default: false)",
            choices=("true", "yes", "on", "false", "no", "off"),
        ),
        flag(
            "--list",
            "print the cells that would be measured and an estimate of the time, and exit",
            dest="list_only",
        ),
    ],
    "objects": [
        several(
            "--object-counts", "N",
            "objects that each client writes or reads in an iteration (default: 1000); several as "
            "N,N,... or N..N, or in repeated options",
            type=values.counts,
        ),
        several(
            "-s --object-size", "BYTES",
            "bytes of a stored record (default: 300); several as BYTES,BYTES,... or "
            "BYTES..BYTES, or in repeated options",
            type=values.record_sizes,
        ),
        option(
            "--btrees", None,
            "keep the objects in a BTree instead of a PersistentMapping (IO without a value)",
            choices=("IO", "OO"),
        ),
        option(
            "--btree-leaf-size", "N",
            "maximum number of keys in a leaf of that BTree (default: that of BTrees)",
            type=values.node_size, default=0,
        ),
        option(
            "--btree-internal-size", "N",
            "maximum number of children of an inner node of that BTree (default: that of BTrees)",
            type=values.node_size, default=0,
        ),
        flag("--blobs", "keep the objects' content in blobs of --object-size bytes"),
        option(
            "--compressibility", "PART",
            "fraction of the content that compression can remove, from 0 to 1 "
            f"(default: {COMPRESSIBILITY})",
            type=values.part, default=COMPRESSIBILITY,
        ),
        option(
            "--seed", None,
            "seed of the generator of the objects' content (default: 0)",
            type=values.whole, default=0,
        ),
    ],
    "the databases": [
        option(
            "--min-objects", "N",
            "fill each database with at least N objects besides those of the benchmarks",
            type=values.count, default=0,
        ),
        several(
            "--may-write", "NAME",
            "write to the database of that contender even if it holds data of others; several as "
            "NAME,NAME,... or in repeated options",
            type=str.lower,
        ),
        flag("--pack", "pack each database before measuring it"),
        flag(
            "--restart-servers",
            "restart private servers before each value of a cold benchmark, so that their own "
            "caches are empty, too; a value then has as few iterations as possible",
            dest="restart",
        ),
        option(
            "--zap", "[force|NAME,...]",
            "DESTROY ALL DATA of a database before each run of add; asks for each database first, "
            "unless contenders are named, or force names them all",
        ),
    ],
    "concurrency": [
        several(
            "-c --concurrency", "N",
            "number of concurrent clients, which are processes unless --threads or --gevent is "
            "given (default: 2 with one of these or with FILE, otherwise 1); several as N,N,... or "
            "N..N, or in repeated options",
            type=values.crew_sizes,
        ),
        option(
            "--hosts", "WHERE",
            "run the clients on the workers of a Dask cluster: the address of its scheduler, a "
            "file that describes it, or local:N for N workers on this host",
        ),
        option(
            "--threads", None,
            "clients are threads, which share one DB (shared, also without a value) or have one "
            "each (unique)",
            choices=("shared", "unique"),
        ),
        flag("--gevent", "clients are greenlets of a process patched by gevent; implies --threads"),
    ],
    "how long it takes": [
        option(
            "--precision", "PERCENT",
            "measure until half of the 95%% confidence interval of each figure, and of its ratio "
            f"to the baseline, is at most PERCENT of it (default: {100 * PRECISION:g}%%)",
            type=values.percentage,
        ),
        option(
            "--at-most", "MINUTES",
            "stop measuring after MINUTES and mark the figures that missed the precision "
            f"(default: {SECONDS_OF_A_CELL:g} seconds for each cell)",
            type=values.minutes,
        ),
    ],
    "the run and its output": [
        option(
            "--resume", "FILENAME",
            "continue an interrupted run: measure what FILENAME lacks, and write to it",
            type=values.result_file,
        ),
        option(
            "--label", "TEXT", "store TEXT in the metadata of the results", default="",
        ),
        several(
            "--against", "WHAT",
            "measure each contender a second time, with WHAT: a requirement such as "
            "RelStorage==4.2.0, a checkout, a wheel, a Python or a virtual environment; can be "
            "repeated",
        ),
        option(
            "--baseline", "NAME",
            "compare the others with that contender below the table (default: the first)",
            type=str.lower,
        ),
        option(
            "--report", "PAGE",
            "write a report with charts to this file at the end, as zodbshootout report does",
            type=Path,
        ),
        option(
            "--open-timeout", "SECONDS",
            "time limit for opening each contender before anything is measured (default: "
            f"{OPEN_TIMEOUT:g})",
            type=values.seconds, default=OPEN_TIMEOUT,
        ),
        option(
            "--retries", "N",
            "repeat a run up to N times if one of its processes crashes; the table says so "
            f"(default: {RETRIES})",
            type=values.count_or_none, default=RETRIES,
        ),
        flag("--fail-fast", "stop at the first cell that fails"),
        option(
            "--profile", "DIR",
            "write profiles of the clients to DIR, one for each contender and benchmark; the "
            "figures are lower then",
            type=values.profile_directory, dest="profiles",
        ),
        option(
            "--profiler", None,
            "the profiler; there is only one",
            choices=("cprofile",),
        ),
        flag(
            "--leaks",
            "after each value, list the classes that have more objects than before (threads only)",
        ),
        option(
            "--log", "[LEVEL|FILE]",
            "log what storages do: from LEVEL on (INFO without a value), or as a ZConfig logging "
            "FILE says",
            type=values.log,
        ),
    ],
    "pyperf's options": [
        flag("-h --help", "print this help and exit", action="help"),
        flag(
            "--rigorous",
            f"--precision {100 * RIGOROUS:g}%% and four times the time; with -p or -n, "
            f"{2 * PROCESSES} runs",
        ),
        flag("--fast", "use a third of the time"),
        flag(
            "--debug-single-value",
            "measure a single value of one iteration, to try a configuration",
        ),
        option(
            "-p --processes", None,
            "runs of each cell, each in new processes; replaces --precision",
            type=values.count,
        ),
        option(
            "-n --values", None,
            "values of a run, which the contenders take in turn (default: as many as fit into "
            f"{SHORT_RUN_TIME:g} seconds for each contender, with -p {RUN_TIME:g}, 3 to 100)",
            type=values.count, default=0,
        ),
        option(
            "-w --warmups", None,
            "values at the beginning of a run that are not counted (default: 0)",
            type=values.count_or_none, default=0,
        ),
        option(
            "-l --loops", None,
            "iterations of each client for a value (default: 0, calibrate)",
            type=values.count_or_none, default=0,
        ),
        flag("-v --verbose", "print each step, and what storages print"),
        flag(
            "-q --quiet",
            "print no progress; tables, the names of files and errors are still printed",
        ),
        option(
            "-o --output", "FILENAME",
            "write all results to FILENAME, and those of each contender to a directory beside it "
            "whose name ends in .d (default: a dated file in the user's data directory)",
            type=values.result_file,
        ),
        option(
            "--append", "FILENAME",
            "add the results to those in FILENAME and in the directory beside it",
            type=values.result_file,
        ),
        option(
            "--min-time", None,
            f"minimum time of a value, in seconds (default: {MIN_TIME})",
            type=values.seconds, default=MIN_TIME,
        ),
        option(
            "--timeout", None,
            f"time limit of a worker, in seconds (default: {TIMEOUT:g})",
            type=values.seconds, default=TIMEOUT,
        ),
        flag("-d --dump", "print all values as well, as pyperf dump does"),
        flag("--metadata -m", "print the metadata as well, as pyperf show --metadata does"),
        flag("--hist -g", "print a histogram of the values as well, as pyperf hist does"),
        flag("--stats -t", "print statistics as well, as pyperf stats does"),
        option(
            "--affinity", "CPU_LIST",
            "CPUs that the workers may use (default: all that this process may use)",
            type=values.affinity,
        ),
        option(
            "--inherit-environ", "VARS",
            "environment variables, separated by commas, that the workers inherit",
            type=values.words, default=(),
        ),
        flag("--copy-env", "pass all environment variables to the workers"),
        flag(
            "--no-locale", "do not pass LANG and LC_* to the workers",
            action="store_false", dest="locale",
        ),
        option(
            "--python", None,
            "the Python that runs the workers (default: the one that runs zodbshootout)",
            type=values.python, default=sys.executable,
        ),
        several(
            "--hook", "HOOK", "use the given pyperf hook (repeatable)",
            choices=sorted(entry_points(group="pyperf.hook").names), dest="hooks",
        ),
        flag(
            "--tracemalloc",
            "measure the memory that Python allocates, in place of time (threads only)",
            action="append_const", const="--tracemalloc", dest="memory", default=[],
        ),
        flag(
            "--track-memory",
            "measure the memory of the worker, in place of time (threads only)",
            action="append_const", const="--track-memory", dest="memory", default=[],
        ),
        flag(
            "--version", "print the version and exit",
            action="version", version=f"zodbshootout {version('zodbshootout')}",
        ),
    ],
}  # fmt: skip
"""The options of a run, by the groups that ``--help`` shows."""


def run_parser() -> Parser:
    """Return the parser of a run's arguments."""
    parser = Parser(
        prog="zodbshootout",
        usage="zodbshootout [FILE|URI] [BENCHMARK ...] [-BENCHMARK ...] [option ...]\n"
        "       zodbshootout show FILE ... [option ...]\n"
        "       zodbshootout compare BASE NEW [option ...]\n"
        "       zodbshootout compare FILE --contender A B [option ...]\n"
        "       zodbshootout report FILE ... -o PAGE [option ...]",
        description="Measure and compare ZODB storages.  FILE lists the contenders in ZConfig "
        "format; without it an embedded default is measured, which needs nothing installed or "
        "started.  A ZODB URI, such as file:///tmp/x.fs or zeo://localhost:8100, is one contender. "
        " The benchmarks write to these databases.",
        epilog=f"Benchmarks: {', '.join(benchmarks())}.  By default the first {len(DEFAULT)} of "
        "them run; all runs every one, and -cold leaves one out.  Exit status: 0 all was measured "
        "that is supported, 1 compare --fail-above found a slowdown, 2 bad usage or configuration, "
        "3 some cells failed or nothing was measured, 70 a defect of zodbshootout, 130 "
        "interrupted.",
        add_help=False,
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--exclude", action="append", default=[], help=argparse.SUPPRESS)
    for title, options in OPTIONS.items():
        group = parser.add_argument_group(title)
        for names, how in options:
            group.add_argument(*names, **how)
    return parser
