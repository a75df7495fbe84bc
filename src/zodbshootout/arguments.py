"""The arguments of the command line: which there are, and how they are told apart.

pyperf's own parser is the base, so that its options are the ones it has, under the names and with
the checks it has.  Ours are added to it.
"""

from __future__ import annotations

import argparse
import difflib
import functools
import math
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

import pyperf

from zodbshootout.client.benchmarks.registry import DEFAULT, benchmarks
from zodbshootout.client.data.records import smallest_record
from zodbshootout.client.parameters import COMPRESSIBILITY
from zodbshootout.config.uri import is_uri
from zodbshootout.crews.profiling import PROFILERS
from zodbshootout.engine.turns import RUN_TIME

PRECISION = 0.05
"""Half of the width of a figure's interval that ends the measuring, unless told otherwise."""
RIGOROUS = 0.02
"""The same with ``--rigorous``."""
SECONDS_OF_A_CELL = 8.0
"""What a cell takes at most, on average, unless told otherwise; four times that is rigorous."""
FEWEST_RUNS = 4
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
TIMEOUT = 1800
"""Seconds after which a worker counts as hanging, unless told otherwise."""
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

SMALLEST_NODE = 2

_OPTIONAL_VALUES = {
    "--threads": (("shared", "unique"), "shared"),
    "--btrees": (("IO", "OO"), "IO"),
    "--include-mapping": (("true", "yes", "on", "false", "no", "off"), "true"),
}
NOT_OURS = {
    "pipe", "worker", "worker_task", "calibrate_loops", "recalibrate_loops",
    "calibrate_warmups", "recalibrate_warmups", "compare_to", "python_names",
}  # fmt: skip
"""What pyperf has for its workers, and what would bypass the way contenders are compared."""
ASK, FORCE = "ask", "force"
"""What ``--zap`` means without a value, and the value that is no contender."""
_LONELY_EXCLUSION = re.compile(r"-[a-z][a-zA-Z_]{2,}")


class UsageError(Exception):
    """What is wrong with the command line, in one line."""


def raise_usage_error(message: str) -> NoReturn:
    """Raise what a parser has to say, in place of printing the usage and exiting."""
    raise UsageError(message)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(_count(part) for part in text.split(","))


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return number


def _node_size(text: str) -> int:
    size = _count(text)
    if size < SMALLEST_NODE:
        raise argparse.ArgumentTypeError(f"a node of a BTree holds at least {SMALLEST_NODE}")
    return size


def _part(text: str) -> float:
    try:
        part = float(text)
    except ValueError:
        part = -1.0
    if not 0 <= part <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return part


def percentage(text: str) -> float:
    """Return the part that a number of per cent is, written with or without the sign."""
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage, such as 2%")
    return number / 100


def _sizes(text: str) -> tuple[int, ...]:
    sizes = _counts(text)
    if min(sizes) < smallest_record():
        raise argparse.ArgumentTypeError(
            f"a stored object takes at least {smallest_record()} bytes, not {min(sizes)}"
        )
    return sizes


@functools.cache
def parser() -> argparse.ArgumentParser:
    """Return the parser.  pyperf allows one Runner in a process, so there is one parser, too."""
    base: argparse.ArgumentParser = pyperf.Runner(warmups=WARMUPS).argparser
    base.conflict_handler = "resolve"  # our --profile takes the place of pyperf's
    # Instead of printing the usage and exiting:
    base.error = raise_usage_error  # type: ignore[method-assign]
    base.prog = "zodbshootout"
    base.usage = (
        "zodbshootout [FILE|URI] [BENCHMARK ...] [-BENCHMARK ...] [option ...]\n"
        "       zodbshootout show FILE ... [option ...]\n"
        "       zodbshootout compare BASE NEW [option ...]"
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
    "processes": "make so many runs of each cell, each in new processes, whatever the precision",
    "loops": "iterations of a value for each client (default: 0, which chooses them by measuring)",
    "timeout": f"seconds that one worker may be at work (default: {TIMEOUT})",
    "output": "write all results to FILENAME, and those of each contender to a directory beside "
    "it whose name ends in .d (default: a dated file in the user's data directory)",
    "append": "add the results to those in FILENAME and in the directory beside it",
    "warmups": f"values of a run that are measured first and do not count (default: {WARMUPS})",
    "values": "values of a run; the contenders measure them in turn (default: as many as fit into "
    f"{SHORT_RUN_TIME:g} seconds for each contender, with -p {RUN_TIME:g}, 3 to 100)",
    "min_time": f"seconds that a value should take at least (default: {MIN_TIME})",
    "rigorous": f"--precision {100 * RIGOROUS:g}%%, and four times as much time; with -p or -n "
    f"{2 * PROCESSES} runs",
    "fast": "a third of the time",
    "affinity": "CPUs that the workers may use (default: all that this process may use)",
    "hook": "use the given pyperf hook (repeatable)",
    "tracemalloc": "measure the memory that Python allocates, in place of time (threads only)",
    "track_memory": "measure the memory of the worker, in place of time (threads only)",
}
"""Where we differ from pyperf, or have more to say."""


def _describe_differences(base: argparse.ArgumentParser) -> None:
    for action in base._actions:
        action.help = _DIFFERENCES.get(action.dest, action.help)
        if action.dest == "hook":
            action.metavar = "HOOK"


def _add_selection(base: argparse.ArgumentParser) -> None:
    group = base.add_argument_group("what is measured")
    group.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    group.add_argument("--exclude", action="append", default=[], help=argparse.SUPPRESS)
    group.add_argument(
        "--only", metavar="NAME", action="append", default=[],
        help="measure only the contender of that name (repeatable)",
    )  # fmt: skip
    group.add_argument(
        "--include-mapping", choices=_OPTIONAL_VALUES["--include-mapping"][0],
        help="add a MappingStorage as a contender: true without a value (default: false)",
    )  # fmt: skip
    group.add_argument(
        "--list", action="store_true", dest="list_only",
        help="print what would be measured and how long that might take, and measure nothing",
    )  # fmt: skip


def _add_data(base: argparse.ArgumentParser) -> None:
    group = base.add_argument_group("objects")
    group.add_argument(
        "--object-counts", metavar="N", type=_counts, action="append",
        help="objects that each client writes or reads in an iteration (default: 1000); "
        "several as N,N,... or in repeated options",
    )  # fmt: skip
    group.add_argument(
        "-s", "--object-size", metavar="BYTES", type=_sizes, action="append",
        help="bytes of a stored record (default: 300); several as BYTES,BYTES,... or in repeated "
        "options",
    )  # fmt: skip
    group.add_argument(
        "--btrees", choices=("IO", "OO"),
        help="hold the objects in a BTree rather than a PersistentMapping: IO without a value",
    )  # fmt: skip
    group.add_argument(
        "--btree-leaf-size", metavar="N", type=_node_size, default=0,
        help="keys in a leaf of that BTree, at most (default: as BTrees has it)",
    )  # fmt: skip
    group.add_argument(
        "--btree-internal-size", metavar="N", type=_node_size, default=0,
        help="children of an inner node of that BTree, at most (default: as BTrees has it)",
    )  # fmt: skip
    group.add_argument(
        "--blobs", action="store_true",
        help="keep the objects' content in blobs of --object-size bytes",
    )  # fmt: skip
    group.add_argument(
        "--compressibility", metavar="PART", type=_part, default=COMPRESSIBILITY,
        help="part of the content that compression takes away, from 0 to 1 "
        f"(default: {COMPRESSIBILITY})",
    )  # fmt: skip
    group.add_argument(
        "--seed", type=int, default=0,
        help="what the objects' content is generated from (default: 0)",
    )  # fmt: skip


def _add_database(base: argparse.ArgumentParser) -> None:
    group = base.add_argument_group("the databases")
    group.add_argument(
        "--min-objects", metavar="N", type=_count, default=0,
        help="have at least N objects in each database beside those of the benchmarks",
    )  # fmt: skip
    group.add_argument("--pack", action="store_true", help="pack each database before measuring it")
    group.add_argument(
        "--restart-servers", action="store_true",
        help="restart private servers right before each value of a benchmark that reads cold, so "
        "that their own caches are empty, too; a value then has as few iterations as possible",
    )  # fmt: skip
    group.add_argument(
        "--zap", metavar="[force|NAME,...]",
        help="DESTROY ALL DATA of a database right before each run of add.  It asks for each "
        "database first; with force it destroys all without asking, with names the named ones",
    )  # fmt: skip


def _add_crew(base: argparse.ArgumentParser) -> None:
    group = base.add_argument_group("concurrency")
    group.add_argument(
        "-c", "--concurrency", metavar="N", type=_counts, action="append",
        help="clients that run at the same time, processes unless told otherwise (default: 2 with "
        "FILE, --threads or --gevent, otherwise 1); several as N,N,... or in repeated options",
    )  # fmt: skip
    group.add_argument(
        "--threads", choices=("shared", "unique"),
        help="clients are threads, which share one DB (shared, or without a value) or have one "
        "each (unique)",
    )  # fmt: skip
    group.add_argument(
        "--gevent", action="store_true",
        help="clients are greenlets, in a process that gevent has patched; implies --threads",
    )  # fmt: skip


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes")
    return minutes


def _add_effort(base: argparse.ArgumentParser) -> None:
    group = base.add_argument_group("how long it takes")
    group.add_argument(
        "--precision", metavar="PERCENT", type=percentage,
        help="measure each row until half of the 95%% interval of every figure, and of its ratio "
        f"to that of the baseline, is that small (default: {100 * PRECISION:g}%%)",
    )  # fmt: skip
    group.add_argument(
        "--at-most", metavar="MINUTES", type=_minutes,
        help="measure no longer, and mark what has missed the precision (default: "
        f"{SECONDS_OF_A_CELL:g} seconds for each cell)",
    )  # fmt: skip


def _add_run(base: argparse.ArgumentParser) -> None:
    group = base.add_argument_group("the run and its output")
    group.add_argument(
        "--label", metavar="TEXT", default="",
        help="note in the results what this run is about",
    )  # fmt: skip
    group.add_argument(
        "--baseline", metavar="NAME",
        help="compare the others with that contender below the table (default: the first)",
    )  # fmt: skip
    group.add_argument("--fail-fast", action="store_true", help="stop at the first cell that fails")
    group.add_argument(
        "--profile", metavar="DIR", type=Path,
        help="write a profile of the clients to this directory, for each contender and benchmark; "
        "the timings suffer",
    )  # fmt: skip
    group.add_argument(
        "--profiler", choices=PROFILERS, default=PROFILERS[0],
        help=f"what makes the profile (default: {PROFILERS[0]})",
    )  # fmt: skip
    group.add_argument(
        "--leaks", action="store_true",
        help="tell after each value of which classes there are more objects than before "
        "(threads only)",
    )  # fmt: skip
    group.add_argument(
        "--log", metavar="[LEVEL|FILE]",
        help="log what storages do, from this level on (INFO without a value), or as a ZConfig "
        "logging file says",
    )  # fmt: skip


def separated(arguments: Sequence[str]) -> list[str]:
    """Rewrite the arguments that argparse would take for something else.

    ``-cold`` is not ``-c old``, and ``--threads FILE`` not ``--threads=FILE``.
    """
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        following = rest[0] if rest else None
        if word in _OPTIONAL_VALUES:
            choices, default = _OPTIONAL_VALUES[word]
            words.append(f"{word}={rest.pop(0) if following in choices else default}")
        elif word == "--zap":
            words.append(f"--zap={rest.pop(0) if _belongs_to_zap(following) else ASK}")
        elif word == "--log":
            words.append(f"--log={rest.pop(0) if _belongs_to_log(following) else 'INFO'}")
        elif word[1:] in benchmarks() and word.startswith("-"):
            words.append(f"--exclude={word[1:]}")
        else:
            _reject_misspelt_exclusion(word)
            words.append(word)
    return words


def _belongs_to_zap(word: str | None) -> bool:
    """Say whether an argument after ``--zap`` is its value, and no file, URI or benchmark."""
    if word is None or word.startswith("-") or word in {"all", *benchmarks()}:
        return False
    return not (is_uri(word) or Path(word).is_file())


def _belongs_to_log(word: str | None) -> bool:
    """Say whether an argument after ``--log`` is its value: a level or a logging file."""
    if word is None or word.startswith("-"):
        return False
    if word.upper() in LEVELS:
        return True
    return Path(word).is_file() and _configures_logging(Path(word))


def _configures_logging(path: Path) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace")
    return re.search(r"^\s*<(eventlog|logger)\b", text, re.MULTILINE) is not None


def _reject_misspelt_exclusion(word: str) -> None:
    if not _LONELY_EXCLUSION.fullmatch(word):
        return
    close = difflib.get_close_matches(word[1:], benchmarks())
    if close:
        meant = " or ".join(f"-{name}" for name in close)
        raise UsageError(f"unknown benchmark {word[1:]!r} in {word!r}; did you mean {meant}?")
