"""A run's command line: its help, and its words, which become :class:`Options`."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
from collections.abc import Sequence
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any

from zodbshootout.cli.arguments import COMMANDS, Parser
from zodbshootout.cli.options import EFFORT_IS_FIXED, Options
from zodbshootout.cli.output import project_url
from zodbshootout.cli.values import LAST, LEVELS, exists
from zodbshootout.client.benchmarks import DEFAULT, benchmarks, rate_refusal
from zodbshootout.config.configuration import EMBEDDED
from zodbshootout.config.sample_files import samples
from zodbshootout.config.uri import is_uri
from zodbshootout.errors import UserError, close_to, suggestion
from zodbshootout.model.quantities import ITERATIONS, THROUGHPUT
from zodbshootout.model.specification import RESTARTS
from zodbshootout.results.files import holds_results
from zodbshootout.scheduling.orders import ZAPPED_BEFORE

REPLAY = "replay"
"""The benchmark that needs a workload."""
COPY = "copy"
"""The benchmark that copies a FileStorage."""
_NUMERIC = {"-c", "-s", "-p", "-n", "-w", "-l"}
"""Short options whose value never begins with a letter."""
_FIRST_WORDS = [*dict.fromkeys(name.split()[0] for name in COMMANDS), "help"]
NOT_AVAILABLE = {
    "--compare-to": "use --against PYTHON",
    "--python-names": "use --against PYTHON",
    **dict.fromkeys(
        ("--pipe", "--worker", "--worker-task", "--calibrate-loops", "--recalibrate-loops",
         "--calibrate-warmups", "--recalibrate-warmups"),
        "pyperf passes it to its own workers",
    ),
}  # fmt: skip
"""The options of pyperf that zodbshootout refuses, with advice or the reason."""


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


class _RunParser(Parser[Options]):
    """A parser that reads ``-cold`` as a benchmark to leave out, not as ``-c old``."""

    def spelled_out(self, arguments: Sequence[str]) -> list[str]:
        excluding = {f"-{name}": f"--exclude={name}" for name in benchmarks()}
        words = [excluding.get(word, word) for word in super().spelled_out(arguments)]
        for word in words:
            _check_option(word)
        return words


def run_parser(**words: Any) -> Parser[Options]:
    """Return a run's parser.

    For the positional arguments, ``add_argument`` gets *words* as keyword arguments.
    """
    parser = _RunParser(
        Options,
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
    )
    parser.add_argument("words", nargs="*", **{"help": argparse.SUPPRESS, **words})
    parser.add_argument("--exclude", action="append", default=[], help=argparse.SUPPRESS)
    parser.add_argument(
        "--version", action="version", version=f"zodbshootout {version('zodbshootout')}",
        help="print the version and exit",
    )  # fmt: skip
    return parser


def completion_parser() -> Parser[Options]:
    """Return the parser from which shtab generates the completion of shells."""
    words = [*_FIRST_WORDS, "all", *benchmarks()]
    return run_parser(help="a command or a benchmark", choices=words)


def parse(arguments: Sequence[str]) -> Options:
    """Return the options in a run's command line.

    :raises UserError: if an argument is wrong or contradicts another one
    :raises SystemExit: after ``--help``
    """
    parser = run_parser()
    given = parser.given(arguments)
    files, words = _files_and_benchmarks(given["words"])
    names = [name for word in words for name in _split_benchmarks(word)]
    chosen = _chosen_benchmarks(names, given["exclude"], replays="workload" in given)
    options = parser.made(given, files=files, benchmarks=chosen, arguments=arguments)
    _check_values(options)
    _check_benchmarks(options)
    _check_data(options)
    _check_requirements(options)
    _check_rates(options, names)
    return options


def _check_values(options: Options) -> None:
    """Refuse values that are wrong only beside those of other options."""
    if options.hosts is not None and options.log and options.log not in LEVELS:
        raise UserError("--log: with --hosts, name a level; other hosts lack the file")
    if options.number_of_values and options.at_most and not options.precision:
        raise UserError(f"--at-most {EFFORT_IS_FIXED}")
    for option, lists in {
        "--define": options.definitions.values(), "--rtt": [options.rtts]
    }.items():  # fmt: skip
        if options.against and any(len(values) > 1 for values in lists):
            raise UserError(f"{option} has several values; with --against, give only one")


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
    if first in _FIRST_WORDS:
        command = shlex.join(["zodbshootout", first, *others])
        raise UserError(f"{first} is a command; put it first: {command}")
    if close := close_to(first, [*_FIRST_WORDS, *samples()]):
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
    several = {name for name, benchmark in benchmarks().items() if not benchmark.traits.alone}
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


def _check_benchmarks(options: Options) -> None:
    """Refuse options that the chosen benchmarks do not allow."""
    emptied = any(
        name == ZAPPED_BEFORE or benchmarks()[name].traits.empties for name in options.benchmarks
    )
    if options.zap is not None and not emptied:
        raise UserError(
            f"--zap destroys data right before {ZAPPED_BEFORE}, which is not among the benchmarks; "
            f"add it, or leave out --zap"
        )
    alone = [name for name in options.benchmarks if benchmarks()[name].traits.alone]
    numbered = [name for name in options.benchmarks if benchmarks()[name].traits.numbered]
    if options.during in RESTARTS and numbered:
        raise UserError(
            f"--during {options.during}: clients of {numbered[0]} depend on each other's "
            f"transactions, so a client cannot repeat its own; leave out {numbered[0]}"
        )
    if options.during and alone:
        raise UserError(f"--during: {benchmarks()[alone[0]].traits.alone}; leave out {alone[0]}")


def _check_data(options: Options) -> None:
    """Refuse a FileStorage or a blob directory that no benchmark would use."""
    if options.data is None or COPY in options.benchmarks:
        return
    if options.workload is None:
        raise UserError(f"--data needs --workload, or the benchmark {COPY}")
    if options.data[1] is not None:
        raise UserError(
            f"--data: {REPLAY} makes blobs of the recorded sizes; leave out the directory "
            f"{options.data[1]}"
        )


def _check_requirements(options: Options) -> None:
    """Refuse limits on figures that the run does not measure."""
    for one in options.requirements:
        if one.benchmark not in {*benchmarks(), *options.benchmarks}:
            advice = suggestion(one.benchmark, options.benchmarks)
            raise UserError(f"--require: unknown benchmark {one.benchmark!r}; {advice}")
        if one.benchmark not in options.benchmarks:
            raise UserError(f"--require: {one.benchmark} is not measured; add it to the benchmarks")
        if one.quantity in {THROUGHPUT, ITERATIONS} and (options.rate or options.speed):
            raise UserError(
                f"--require: {one.text}: a run at a rate measures latencies; require p99, "
                "for example"
            )


def _check_rates(options: Options, names: Sequence[str]) -> None:
    """Refuse a named benchmark that cannot run at any of the rates."""
    sweep = options.sweep.parameters()
    for name in (name for name in names if name != "all"):
        reasons = [rate_refusal(benchmarks()[name], parameters) for parameters in sweep]
        if all(reasons):
            raise UserError(f"{reasons[0]}; leave it out: -{name}")


def _check_option(word: str) -> None:
    option = word.partition("=")[0]
    if option in NOT_AVAILABLE:
        raise UserError(f"{option} is not available: {NOT_AVAILABLE[option]}")
    if option.startswith("--benchmark"):
        raise UserError(f"unknown option {option}; name benchmarks without it, as in 'add cold'")
    if re.fullmatch(r"-[a-z][a-zA-Z_]{2,}", word):
        close = difflib.get_close_matches(word[1:], benchmarks())
        if close or word[:2] in _NUMERIC:
            meant = " or ".join(f"-{name}" for name in close)
            advice = f"did you mean {meant}?" if close else f"there are {', '.join(benchmarks())}"
            raise UserError(f"unknown benchmark {word[1:]!r} in {word!r}; {advice}")
