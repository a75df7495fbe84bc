"""What the records of options say about each other: every relation is kept, with its message.

``REWRITE_GOLDENS=1 pytest tests/cli/test_records.py`` writes the list of all relations anew.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from zodbshootout.cli.arguments import COMMANDS
from zodbshootout.cli.main import parser_of
from zodbshootout.cli.parser import run_parser
from zodbshootout.errors import UserError

RELATIONS = Path(__file__).with_name("relations.txt")
RECORDS = run_parser().records.values()
BY_NAME = {name: one for one in RECORDS for name in one.names}
VALUES = {
    "--workload": "plone", "--latency-limit": "p99=1s", "--affinity": "0",
    "--require": "add p99<=1s", "--python": sys.executable,
}  # fmt: skip
"""Values of options that neither take 9 nor have choices."""


def alone(name: str) -> list[str]:
    """Return an option with a value, if it takes one."""
    how = BY_NAME[name].for_argparse
    if how.get("action") == "store_true":
        return [name]
    return [name, next(iter(how.get("choices", ())), VALUES.get(name, "9"))]


def with_needed(name: str, *missing: str) -> list[str]:
    """Return an option with those that it needs, apart from those *missing*."""
    needed = [one.split()[0] for one in BY_NAME[name].needs if one not in missing]
    return [*alone(name), *(word for other in needed for word in with_needed(other))]


def refusals() -> Iterator[tuple[list[str], str]]:
    """Yield options with the message that refuses them."""
    for one in RECORDS:
        name = one.names[0] if one.names else ""
        for needed, message in one.needs.items():
            yield with_needed(name, needed), f"{name} {message}"
        for refused, message in one.excludes.items():
            for other in refused.split():
                yield [*with_needed(name), *with_needed(other)], f"{other} {message}"
        for other in one.one_of.partition(f"{name} ")[2].split():
            both = [*with_needed(name), *with_needed(other)]
            yield both, f"{name} and {other}: give one of them"


@pytest.mark.parametrize(("words", "message"), list(refusals()))
def test_options_that_do_not_go_together_are_refused(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        run_parser().given(words)
    assert str(caught.value) == message
    assert "\n" not in message


def relations(command: str) -> Iterator[str]:
    """Yield a line for each relation of a command's options."""
    for field, one in parser_of(command).records.items():
        name = one.names[0] if one.names else field
        yield from (f"{command}: {name} needs {other}" for other in one.needs)
        yield from (f"{command}: {name} excludes {other}" for other in one.excludes)
        if one.one_of:
            yield f"{command}: {name} is one of {one.one_of}"


def test_the_relations_are_those_of_the_list() -> None:
    lines = [line for command in ("run", *COMMANDS) for line in relations(command)]
    if os.environ.get("REWRITE_GOLDENS"):
        RELATIONS.write_text("".join(f"{line}\n" for line in lines))
    assert lines == RELATIONS.read_text().splitlines()


@pytest.mark.parametrize("command", ["run", *COMMANDS])
def test_relations_are_those_of_options_of_the_same_command(command: str) -> None:
    parser = parser_of(command)
    for one in parser.records.values():
        related = " ".join([one.one_of, *one.needs, *one.excludes]).split()
        assert {*related} <= {*parser.option_names}
