"""The parser of the command line of a run.

pyperf's options are declared here under the names that pyperf's manual gives them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from zodbshootout.cli import values
from zodbshootout.cli.gate import Requirement
from zodbshootout.client.benchmarks import DEFAULT, benchmarks
from zodbshootout.errors import UserError, close_to
from zodbshootout.model.specification import (
    COMPRESSIBILITY,
    GARBAGE,
    OPERATIONS,
    REVISIONS,
    LatencyLimit,
)
from zodbshootout.plugins import entries
from zodbshootout.scheduling.calibration import RUN_TIME

PRECISION = 0.05
"""The default of ``--precision``: half the confidence interval as a fraction of the figure."""
RIGOROUS = 0.02
SECONDS_OF_A_CELL = 8.0
"""Seconds that the command may spend on a cell, on average; four times that with ``--rigorous``."""
MIN_RUNS_FOR_PRECISION = 4
"""Minimum number of runs with ``--precision``: fewer runs say too little about their spread."""
SHORT_RUN_TIME = 0.8
"""Seconds for which a run with ``--precision`` measures each contender.  Such a run is short,
because many short runs say more than a few long ones."""
PROCESSES = 3
"""Runs of a cell if ``-n`` is given without ``-p`` or ``--precision``."""


class Parser(argparse.ArgumentParser):
    """A parser that raises errors instead of exiting, and suggests options for a misspelt one."""

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (-[^\s=]+)", message)
        if unknown is None:
            raise UserError(message)
        close = close_to(unknown[1], self.option_names)
        advice = f"did you mean {' or '.join(close)}?" if close else f"see {self.prog} --help"
        raise UserError(f"unknown option {unknown[1]}; {advice}")

    @property
    def option_names(self) -> list[str]:
        """The names of the options that are in the help."""
        shown = (action for action in self._actions if action.help != argparse.SUPPRESS)
        return [name for action in shown for name in action.option_strings]

    def given_in(self, arguments: argparse.Namespace) -> frozenset[str]:
        """Return all names of the options whose values in *arguments* are not the defaults."""
        given = (action for action in self._actions if _is_given(action, arguments))
        return frozenset(name for action in given for name in action.option_strings)


def _is_given(action: argparse.Action, arguments: argparse.Namespace) -> bool:
    value = getattr(arguments, action.dest, action.default)
    if action.const is None:
        return bool(value != action.default)
    return action.const in value if isinstance(value, list) else value is action.const


Option = tuple[Sequence[str], Mapping[str, Any]]


def option(words: str, **how: Any) -> Option:
    """Declare an option; *words* are its names and, at the end, its metavar, if any."""
    names = [word for word in words.split() if word.startswith("-")]
    metavar = {"metavar": words.rsplit(maxsplit=1)[-1]} if len(names) < len(words.split()) else {}
    return names, {**metavar, **how}


def several(words: str, **how: Any) -> Option:
    """Declare an option that can be repeated."""
    return option(words, action="append", default=[], **how)


def flag(words: str, *, action: str = "store_true", **how: Any) -> Option:
    """Declare an option without a value."""
    return option(words, action=action, **how)


OPTIONS: Mapping[str, Sequence[Option]] = {
    "what is measured": [
        several(
            "--only NAME", type=str.lower,
            help="measure only the contender of that name; several as NAME,NAME,... or by "
            "repeating the option",
        ),
        option(
            "--workload PATH", type=values.workload,
            help="replay the workload in PATH, which is a directory, a file or the name of an "
            "installed workload, such as plone; other benchmarks are measured only if named",
        ),
        option(
            "--speed FACTOR", type=values.speed, default=0.0,
            help="start the transactions of --workload at their recorded times, FACTOR times as "
            "fast (default: one right after another); the figures are mean latencies",
        ),
        several(
            "--rate RATE", type=values.rates,
            help="let all clients together start RATE iterations per second (for replay, "
            "transactions) at random times; the figures are latencies since the scheduled starts; "
            "by default, a client starts an iteration when its previous one ends; several as "
            "RATE,RATE,... or by repeating the option; 20..200 is 20,40,80,160,200",
        ),
        option(
            "--during OPERATION", choices=OPERATIONS, default="",
            help="measure the latencies at --rate before, during and after an operation: pack (of "
            "a database with --min-objects, --revisions and --garbage), copy (of the database, to "
            "a FileStorage), restart (private servers are killed and started again) or "
            "restart:clean (they are stopped without killing, and started again)",
        ),
        option(
            "--latency-limit LIMIT", type=values.latency_limit, default=LatencyLimit(),
            help="find the highest rate at which a percentile of the latencies stays within a "
            "time, such as p99=50ms",
        ),
        option(
            "--data DATA_FS[,BLOB_DIR]", type=values.file_storage,
            help="for copy, the FileStorage to copy (default: made-up objects); for --workload, a "
            "FileStorage whose objects fill the database (default: made-up objects of the recorded "
            "sizes); the FileStorage is only read",
        ),
        several(
            "--define NAME=VALUE", type=values.definition,
            help="set NAME to VALUE, overriding its %%define in FILE; with NAME=VALUE,VALUE,... "
            "measure each contender that uses NAME, once per value (write a comma in a value as "
            "\\,); if repeated for several names, measure every combination",
        ),
        several(
            "--rtt TIME", type=values.rtts,
            help="for each of these round-trip times between client and server, measure each "
            "contender that has a server; several as TIME,TIME,...; 0 adds no delay",
        ),
        option(
            "--include-mapping", choices=values.SWITCHES,
            help="add a MappingStorage as a contender (true without a value; default: false)",
        ),
        flag(
            "--private",
            help="use the settings of FILE with other data: the run creates files, or a database "
            "in a server, for each contender, and removes them; nothing that FILE names is opened",
        ),
        flag(
            "--list", dest="list_only",
            help="open every contender, print which cells can and cannot be measured and how long "
            "that would take, and exit",
        ),
    ],
    "objects": [
        several(
            "--object-counts N", type=values.counts,
            help="objects that each client writes or reads per iteration, such as 500 or 10k "
            "(default: 1000); several as N,N,... or N..N, or by repeating the option",
        ),
        several(
            "-s --object-size BYTES", type=values.record_sizes,
            help="bytes of a stored record, such as 300, 1k or 1MB (default: 300); several as "
            "BYTES,BYTES,... or BYTES..BYTES, or by repeating the option",
        ),
        option(
            "--btrees", choices=values.MAPPINGS,
            help="keep the objects in a BTree instead of a PersistentMapping (IO without a value)",
        ),
        option(
            "--btree-leaf-size N", type=values.node_size, default=0,
            help="maximum number of keys in a leaf of the BTree of --btrees (default: that of the "
            "package BTrees)",
        ),
        option(
            "--btree-internal-size N", type=values.node_size, default=0,
            help="maximum number of children of an inner node of the BTree of --btrees (default: "
            "that of the package BTrees)",
        ),
        flag(
            "--grown",
            help="put all objects into one BTree of --btrees, with the benchmarks' objects spread "
            "among those of --min-objects",
        ),
        flag("--blobs", help="keep the objects' content in blobs of --object-size bytes"),
        option(
            "--compressibility PART", type=values.fraction, default=COMPRESSIBILITY,
            help="fraction of the content that compression can remove, from 0 to 1 (default: "
            "%(default)s)",
        ),
        option(
            "--seed", type=values.whole, default=0,
            help="seed of the generator of the objects' content (default: 0)",
        ),
    ],
    "the databases": [
        several(
            "--min-objects N", type=values.counts_or_zeros,
            help="fill each database with at least N objects besides those of the benchmarks, "
            "such as 100k or 10M (default: 0); several as N,N,... or by repeating the option, "
            "measured from the smallest to the largest",
        ),
        option(
            "--revisions N", type=values.count, default=REVISIONS,
            help="revisions of each object, for benchmarks that use or pack old revisions "
            "(default: %(default)s)",
        ),
        option(
            "--garbage PERCENT", type=values.garbage, default=GARBAGE,
            help="percentage of a database's objects that are unreachable when it is packed "
            f"(default: {100 * GARBAGE:g}%%)",
        ),
        several(
            "--may-write NAME", type=str.lower,
            help="write to the database of that contender even if it holds other data; several as "
            "NAME,NAME,... or by repeating the option",
        ),
        flag("--pack", help="pack each database before measuring it"),
        option(
            "--zap [force|NAME,...]",
            help="DESTROY ALL DATA of a database before each run of add; zodbshootout asks about "
            "each database first, unless its contender is named or the value is force",
        ),
    ],
    "concurrency": [
        several(
            "-c --concurrency N", type=values.crew_sizes,
            help="number of concurrent clients, which are processes unless --threads or --gevent "
            "is given (default: 2 with one of these options or with FILE, otherwise 1); several "
            "as N,N,... or N..N, or by repeating the option",
        ),
        option(
            "--hosts WHERE",
            help="run the clients on the workers of a Dask cluster; WHERE is the address of its "
            "scheduler, a scheduler file of Dask, or local:N for N workers on this host",
        ),
        option(
            "--threads", choices=values.SHARINGS,
            help="run clients as threads, which share one DB (shared, or without a value) "
            "or have a DB each (unique)",
        ),
        flag(
            "--gevent",
            help="run clients as greenlets of a process patched by gevent; implies --threads",
        ),
    ],
    "how long it takes": [
        option(
            "--precision PERCENT", type=values.percentage,
            help="measure until half of the 95%% confidence interval of each figure, and of its "
            f"ratio to the baseline, is at most PERCENT (default: {100 * PRECISION:g}%%)",
        ),
        option(
            "--at-most MINUTES", type=values.minutes,
            help="stop measuring after MINUTES (or a time such as 30s or 1h), and mark the "
            f"figures that missed the precision (default: {SECONDS_OF_A_CELL:g} seconds for each "
            "cell)",
        ),
        option(
            "--for MINUTES", type=values.minutes, dest="duration",
            help="keep the clients, servers and databases of each benchmark open for MINUTES (or "
            "a time such as 90s or 2h), and show what changes over time; replaces --precision",
        ),
    ],
    "the run and its output": [
        option(
            "--resume FILENAME", type=values.result_file,
            help="continue an interrupted run: measure what FILENAME lacks, and write to it",
        ),
        option("--label TEXT", help="store TEXT in the metadata of the results", default=""),
        several(
            "--against WHAT",
            help="measure each contender a second time, with WHAT: a requirement such as "
            "RelStorage==4.2.0, requirements such as 'ZEO==5.4.1 ZODB<6', a checkout, a wheel, a "
            "Python or a virtual environment; 'RelStorage>=4' stands for all releases that satisfy "
            "it, and ./RelStorage@v4.2..HEAD for this range of commits (repeatable)",
        ),
        option(
            "--fail-above PERCENT", type=values.limit,
            help="exit with status 1 if a contender takes more than PERCENT longer with WHAT of "
            "--against than with the installed packages, or has no figure with WHAT; see "
            "zodbshootout compare --help",
        ),
        flag(
            "--confirm", default=None,
            help="measure the findings of --fail-above a second time, and report those that are "
            "confirmed (default)",
        ),
        flag(
            "--no-confirm", action="store_false", dest="confirm",
            help="report the findings of --fail-above without measuring them again",
        ),
        several(
            "--require LIMIT", type=Requirement.parsed, dest="requirements",
            help="exit with status 1 if a benchmark has no figure or breaks a limit, such as "
            "'update p99 <= 50ms', 'update trips <= 12' or 'zeo: cold objects >= 10k' (repeatable)",
        ),
        option(
            "--baseline NAME",
            help="compare the other contenders with NAME (default: with the first)",
        ),
        option(
            "--report PAGE", type=Path,
            help="write a report with charts to this file at the end, as zodbshootout report does",
        ),
        option(
            "--retries N", type=values.count_or_zero, default=1,
            help="repeat a run up to N times if one of its processes crashes; the table counts "
            "repeated runs (default: %(default)s)",
        ),
        flag("--fail-fast", help="stop at the first cell that fails"),
        option(
            "--profile DIR", type=values.profile_directory, dest="profiles",
            help="write profiles of the clients to DIR, one for each contender and benchmark; "
            "profiling slows the clients down",
        ),
        flag(
            "--leaks",
            help="after each value, list the classes that have more objects than before (threads "
            "only)",
        ),
        option(
            "--log [LEVEL|FILE]", type=values.log,
            help="print what storages log at LEVEL or above (INFO without a value), or configure "
            "logging with a ZConfig FILE",
        ),
    ],
    "pyperf's options": [
        flag("-h --help", help="print this help and exit", action="help"),
        flag(
            "--rigorous",
            help=f"like --precision {100 * RIGOROUS:g}%% with four times the default time limit; "
            f"with -p or -n, {2 * PROCESSES} runs",
        ),
        flag("--fast", help="use a third of the time"),
        flag(
            "--debug-single-value",
            help="measure a single value of one iteration, to try a configuration",
        ),
        option(
            "-p --processes", type=values.count,
            help="runs of each cell, each in new processes; replaces --precision",
        ),
        option(
            "-n --values", type=values.count, default=0,
            help="values of a run; after each value, the next contender takes its turn (default: 3 "
            f"to 100, as many as fit into {SHORT_RUN_TIME:g} seconds for each contender; with -p, "
            f"into {RUN_TIME:g} seconds)",
        ),
        option(
            "-w --warmups", type=values.count_or_zero, default=0,
            help="values that are discarded at the start of a run (default: 0)",
        ),
        option(
            "-l --loops", type=values.count_or_zero, default=0,
            help="iterations of each client per value (default: 0, calibrated)",
        ),
        flag("-v --verbose", help="print each step, and what storages print"),
        flag(
            "-q --quiet",
            help="print no progress; tables, errors and the names of files are still printed",
        ),
        option(
            "-o --output FILENAME", type=values.result_file,
            help="write all results to FILENAME, and those of each contender to a file in "
            "the .d directory beside it (default: a dated file in the user's data directory)",
        ),
        option(
            "--append FILENAME", type=values.result_file,
            help="add the results to those in FILENAME and in the directory beside it",
        ),
        option(
            # On a machine whose speed drifts, many short interleaved values compare contenders
            # better than a few long ones.
            "--min-time", type=values.seconds, default=0.05,
            help="minimum time of a value, in seconds (default: %(default)s)",
        ),
        option(
            "--timeout", type=values.seconds, default=1800.0,
            help="time limit of a worker, in seconds (default: %(default)g)",
        ),
        flag("-d --dump", help="print all values as well, as pyperf dump does"),
        flag("--metadata -m", help="print the metadata as well, as pyperf show --metadata does"),
        flag("--hist -g", help="print a histogram of the values as well, as pyperf hist does"),
        flag("--stats -t", help="print statistics as well, as pyperf stats does"),
        option(
            "--affinity CPU_LIST", type=values.affinity,
            help="CPUs that the workers may use (default: all that this process may use)",
        ),
        option(
            "--inherit-environ VARS", type=values.words, default=(),
            help="environment variables, separated by commas, that the workers inherit",
        ),
        flag("--copy-env", help="pass all environment variables to the workers"),
        flag(
            "--no-locale", action="store_false", dest="locale",
            help="do not pass LANG and LC_* to the workers",
        ),
        option(
            "--python", type=values.python, default=sys.executable,
            help="the Python that runs the workers (default: the one that runs zodbshootout)",
        ),
        several(
            "--hook HOOK", choices=sorted(entry.name for entry in entries("pyperf.hook")),
            dest="hooks",
            help="use the given pyperf hook (repeatable)",
        ),
        flag(
            "--tracemalloc", dest="memory", default=[],
            action="append_const", const="--tracemalloc",
            help="measure the memory that Python allocates, not time (threads only)",
        ),
        flag(
            "--track-memory", dest="memory", default=[],
            action="append_const", const="--track-memory",
            help="measure the memory of the worker, not time (threads only)",
        ),
        flag(
            "--version", action="version", version=f"zodbshootout {version('zodbshootout')}",
            help="print the version and exit",
        ),
    ],
}  # fmt: skip
"""The options of a run, by their groups in ``--help``."""


EXAMPLES = {
    "zodbshootout": "measure four storages, in three minutes",
    "zodbshootout sample": "list samples; their names can be FILE",
    "zodbshootout my.conf -c 4 --threads": "measure those of a file, with four threads",
    "zodbshootout my.conf add cold --only a,b": "two benchmarks of two contenders",
    "zodbshootout compare last --contender a b": "which of the two is faster?",
    "zodbshootout report last -o page.html": "a page with charts of the newest results",
}
"""Commands for ``--help``, with their descriptions."""


def _description() -> str:
    examples = [f"  {command:43}{purpose}" for command, purpose in EXAMPLES.items()]
    lines = [
        f"  {name:22}{(benchmark.__doc__ or '').strip().partition(chr(10))[0]}"
        for name, benchmark in benchmarks().items()
    ]
    return "\n".join(
        [
            "Measure and compare ZODB storages.",
            "",
            *examples,
            "",
            "FILE lists the contenders in ZConfig format, or is an application's zope.conf, or a",
            "name that zodbshootout sample lists.  Without FILE, zodbshootout measures an embedded",
            "default, which needs nothing installed or started.",
            "A ZODB URI, such as file:///tmp/x.fs or zeo://localhost:8100, is one contender.  The",
            "benchmarks write to these databases.",
            "",
            f"benchmarks ({len(DEFAULT)} by default; all runs every one, -cold leaves one out):",
            *lines,
        ]
    )


COMMANDS = ("show", "compare", "report", "sample", "workload", "help")
"""Words that name a command if they come first."""


def completion_parser() -> Parser:
    """Return the parser from which shtab generates the completion of shells."""
    return run_parser(help="a command or a benchmark", choices=[*COMMANDS, "all", *benchmarks()])


def run_parser(**words: Any) -> Parser:
    """Return a run's parser.

    For the positional arguments, ``add_argument`` gets *words* as keyword arguments.
    """
    parser = Parser(
        prog="zodbshootout",
        usage="zodbshootout [FILE|URI ...] [BENCHMARK ...] [-BENCHMARK ...] [option ...]\n"
        "       zodbshootout show|compare|report|workload FILE ... [option ...]\n"
        "       zodbshootout sample [NAME]",
        description=_description(),
        epilog="Exit status: 0 everything supported was measured, 1 --fail-above found a\n"
        "slowdown or a limit of --require was broken, 2 bad usage or configuration,\n"
        "3 some cells failed or nothing was measured, 70 a defect of zodbshootout,\n"
        "130 interrupted.\n\n"
        "Completion in bash (or zsh): pip install 'zodbshootout[completion]', then source\n"
        "what this prints:\n"
        "  shtab -s bash --prog zodbshootout zodbshootout.cli.parser.completion_parser",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("words", nargs="*", **{"help": argparse.SUPPRESS, **words})
    parser.add_argument("--exclude", action="append", default=[], help=argparse.SUPPRESS)
    for title, options in OPTIONS.items():
        group = parser.add_argument_group(title)
        for names, how in options:
            group.add_argument(*names, **how)
    return parser
