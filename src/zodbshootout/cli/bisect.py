"""``zodbshootout bisect``: find the commit that changed a benchmark's speed or cost."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from zodbshootout.cli import run as cli_run
from zodbshootout.cli.options import Options, checked
from zodbshootout.cli.output import Streams, console_on
from zodbshootout.cli.parser import (
    PRECISION,
    SHORT_RUN_TIME,
    Parser,
    add_run_arguments,
    run_parser,
)
from zodbshootout.cli.values import count, default_directory, result_file, spelled_out
from zodbshootout.config.pythons import Environment, environments_of_words
from zodbshootout.contenders.releases import commit_of, releases_and_commits
from zodbshootout.contenders.suspects import Suspects, good_commit
from zodbshootout.errors import (
    ALL_MEASURED,
    INTERRUPTED,
    SOME_FAILED,
    UserError,
    errors_of_files,
)
from zodbshootout.model.costs import BY_NAME, NUMBER
from zodbshootout.model.outcome import State
from zodbshootout.model.wording import counted
from zodbshootout.reports.headings import row_titles
from zodbshootout.reports.releases import change
from zodbshootout.results.bisection import Finding, Step, read_steps, step_at, write_steps
from zodbshootout.results.files import read_results
from zodbshootout.results.result import CellResult
from zodbshootout.results.sequential import LOOKS, Rule, boundary_for
from zodbshootout.scheduling.bisection import Decision, Search, name_of

_LEFT_OUT = (
    "--list", "--against", "--fail-above", "--confirm", "--no-confirm", "--append",
    "--resume", "--report", "--hosts", "--for", "--during", "--precision", "--at-most",
    "--rigorous", "--fast", "--debug-single-value", "-p", "--python", "--leaks", "--tracemalloc",
    "--track-memory", "--profile", "--profiler", "--baseline", "--label", "--fail-fast", "-o",
    "--dump", "--metadata", "--hist", "--stats", "--version", "--zap", "-h",
)  # fmt: skip
"""Options of a run that ``bisect`` does not accept: it sets them itself, or has no use for them."""
_WITHOUT = (State.FAILED, State.UNSUPPORTED)
_NO_LIMIT = 1e9
"""A time limit in seconds that no step reaches: what ends a step is its number of runs."""


def run(parser: Parser, words: Sequence[str], streams: Streams) -> int:
    """Search for a commit, print it, and return the exit status.

    :raises UserError: if the search is impossible, or the good or bad commit cannot be measured
    """
    with ExitStack() as stack:
        with errors_of_files():
            given = parser.parse_intermixed_args(spelled_out(words))
            place = TemporaryDirectory(prefix="zodbshootout-", ignore_cleanup_errors=True)
            directory = Path(stack.enter_context(place))
            typed = {name: v for name, v in vars(given).items() if v != parser.get_default(name)}
            bisection = _Bisection(given, typed, _options(given, words), directory, streams)
        try:
            bisection.search.run()
        except KeyboardInterrupt:
            streams.complain(
                f"interrupted; repeat the command to continue: its steps are in {bisection.file}"
            )
            return INTERRUPTED
        return streams.status_after(bisection.answer())


def _options(given: argparse.Namespace, words: Sequence[str]) -> Options:
    """Return the options that the runs of all steps share."""
    defaults = vars(run_parser().parse_args([]))
    options = checked(argparse.Namespace(**{**defaults, **vars(given)}), words)
    variants, sweep = options.variants, options.sweep.values
    several = [
        *("--define" for values in variants.definitions.values() if len(values) > 1),
        *(f"--{one.option}" for one, values in sweep.items() if len(values) > 1),
        *(["--rtt"] if len(variants.rtts) > 1 else []),
    ]
    if several:
        raise UserError(f"{several[0]} has several values; with bisect it can have only one")
    return options


@dataclass
class _Bisection:
    given: argparse.Namespace
    typed: Mapping[str, object]
    """The arguments whose values differ from the defaults."""
    options: Options
    directory: Path
    streams: Streams

    def __post_init__(self) -> None:
        given = self.given
        self.good = good_commit(given.checkout, given.good)
        self.bad = commit_of(given.checkout, given.bad, "--bad")
        self.suspects = Suspects.of(given.checkout, self.good, self.bad, self.directory)
        self.cost = BY_NAME.get(given.metric)
        self.question = self._question()
        self.file = given.output or _default_file(self.question)
        steps = read_steps(self.file, self.question)
        write_steps(self.file, self.question, steps)  # fail now if the file is not writable
        if steps:
            self.streams.complain(f"continuing after {counted(len(steps), 'step')}: {self.file}")
        is_exact = self.cost is not None and self.cost.unit == NUMBER
        looks = {*LOOKS, given.processes, *([1] if is_exact else [])}
        within = sorted(look for look in looks if look <= given.processes)
        self.search = Search(self.suspects, self._measured, self._keep, within, steps)

    def _question(self) -> Mapping[str, Any]:
        """Return everything that the answer depends on, as JSON-compatible values."""
        others = {"good", "bad", "output", "quiet", "verbose", "log"}
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in self.options.paths]
        question = {
            "arguments": {name: v for name, v in self.typed.items() if name not in others},
            "configurations": digests,
            "good": self.good,
            "bad": self.bad,
        }
        return dict(json.loads(json.dumps(question, default=str)))

    def answer(self) -> int:
        """Print the answer; return the exit status."""
        left, steps = self.search.first_bad, self.search.steps
        names = {commit: self.suspects.subject(commit) for commit in left}
        if not left:
            self.streams.say(f"good and bad do not differ significantly: {steps[0].sentence}")
            return SOME_FAILED
        if len(left) == 1:
            self.streams.say(f"first bad commit: {names[left[0]]}")
        else:
            self.streams.say(f"first bad commit: one of {len(left)} that cannot be told apart")
        for commit in left:
            step = step_at(steps, commit)
            listed = f"{names[commit]}: " if len(left) > 1 else ""
            self.streams.say(f"  {listed}{step.sentence if step else 'not measured'}")
        if error := sum(step.error for step in steps):
            self.streams.say(f"the probability that this is wrong is at most {error:.1%}")
        self.streams.say(f"Steps: {self.file}")
        return ALL_MEASURED if len(left) == 1 else SOME_FAILED

    def _keep(self, steps: Sequence[Step]) -> None:
        with errors_of_files():
            write_steps(self.file, self.question, steps)
        step = steps[-1]
        name = self.suspects.subject(step.commit)
        self.streams.say(f"[{len(steps)}] {step.finding.value}: {name}: {step.sentence}")

    def _measured(self, commit: str, rule: Rule, first: Step | None) -> Step:
        """Measure a commit and the good commit by turns until the rule decides."""
        good, candidate = map(self._environment, (self.good, commit))
        figure = first.figure if first else ""
        decision = Decision(rule, f"@{candidate.name}", self.cost, figure)
        results = self._run(good, candidate, decision, first)
        pair = decision.pair
        if pair is None or decision.is_changed is None:
            reason = self._reason(results, decision, first)
            return Step(commit, Finding.SKIPPED, rule.error if pair else 0.0, reason)
        (title,) = row_titles([pair.base])
        return Step(
            commit,
            Finding.BAD if decision.is_changed else Finding.GOOD,
            rule.error if pair.speed.log.variance else 0.0,
            f"{title}{change(pair)}",
            name_of(pair),
            pair.base.cell.contender,
            pair.base.cell.benchmark,
            boundary_for(pair.speed),
        )

    def _reason(self, results: Sequence[CellResult], decision: Decision, first: Step | None) -> str:
        """Return why a step was not decided; raise an error if --good or --bad is unusable."""
        of_good, of_candidate = (
            next((one.reason for one in side if one.state in _WITHOUT), "")
            for side in decision.sides(results)
        )
        if of_good:
            raise UserError(f"--good cannot be measured: {of_good}", SOME_FAILED)
        if decision.pair is None and not of_candidate:
            of_candidate = f"it has no {self.given.metric or 'figure'}"
        if of_candidate and first is None:
            raise UserError(f"--bad cannot be measured: {of_candidate}", SOME_FAILED)
        if of_candidate or decision.pair is None:
            return of_candidate
        (title,) = row_titles([decision.pair.base])
        runs = counted(decision.pair.speed.runs, "run")
        return f"{title}{change(decision.pair)}, undecided after {runs}"

    def _environment(self, commit: str) -> Environment:
        (environment,) = environments_of_words(
            [f"{self.given.checkout}@{commit}"], releases_and_commits
        )
        return environment

    def _run(
        self, good: Environment, candidate: Environment, decision: Decision, first: Step | None
    ) -> list[CellResult]:
        options = self.options
        if first is not None:
            options = replace(options, only=[first.contender], benchmarks=[first.benchmark])
        place = Path(self.directory, candidate.name.replace(os.sep, "-"))
        place.mkdir()
        effort = replace(
            options.effort,
            processes=decision.rule.looks[0],
            run_time=SHORT_RUN_TIME,
            precision=PRECISION,
            limit=_NO_LIMIT,
        )
        options = replace(
            options,
            output=place / "step.json",
            effort=effort,
            variants=replace(options.variants, base=good, against=[candidate]),
            run=replace(options.run, rounds=decision.rounds),
        )
        with Path(os.devnull).open("w", encoding="utf-8") as devnull:
            status = cli_run.run(options, replace(self.streams, out=console_on(devnull)))
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        results = read_results(place / "step.json")
        has_failed = any(result.state in _WITHOUT for result in results)
        if status == SOME_FAILED and decision.is_changed is None and not has_failed:
            raise UserError("the run was stopped; repeat the command to continue", SOME_FAILED)
        return results


def _default_file(question: Mapping[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()
    try:
        return default_directory() / f"bisect-{digest[:12]}.json"
    except RuntimeError as error:  # the user has no home directory
        raise UserError(f"steps cannot be written: {error}; name a file with -o") from None


def add_arguments(parser: Parser) -> None:
    """Add the usage, the description and the arguments of the command to its parser."""
    parser.usage = (
        "zodbshootout bisect [FILE|URI ...] [BENCHMARK ...] --good A --checkout DIR [option ...]"
    )
    parser.description = (
        "Find the commit that made a benchmark slower or faster, or that changed a cost.  Each "
        "step measures a commit in turn with the good commit."
    )
    parser.epilog = (
        "Exit status: 0 one commit was found; 3 several are left, or good or bad cannot be "
        "measured; 2 bad usage; 130 interrupted: repeat the command to continue."
    )
    search = parser.add_argument_group("the search")
    search.add_argument(
        "--checkout", type=Path, required=True, metavar="DIR",
        help="the git checkout of the package; nothing is written to it",
    )  # fmt: skip
    search.add_argument(
        "--good", required=True, metavar="A", help="a commit before the change: a tag or a hash"
    )
    search.add_argument(
        "--bad", default="HEAD", metavar="B", help="a commit after the change (default: HEAD)"
    )
    search.add_argument(
        "--metric", choices=list(BY_NAME), metavar="COST",
        help="search for a change of this cost instead of the speed (zodbshootout compare --help "
        "lists the costs); round trips are exact, so one run decides",
    )  # fmt: skip
    search.add_argument(
        "-p", "--processes", type=count, default=LOOKS[-1],
        help="maximum number of runs in a step; a commit that is still undecided is skipped "
        "(default: %(default)s)",
    )  # fmt: skip
    search.add_argument(
        "-o", "--output", type=result_file, metavar="FILENAME",
        help="file for the steps, from which the same command continues (default: a file in the "
        "user's data directory)",
    )  # fmt: skip
    add_run_arguments(parser, _LEFT_OUT)
