"""What a command takes: its options as records, and the parser that reads them.

The options of a command are the fields of a frozen dataclass.  The default of a field is the record
of an option, see :func:`option`.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import Any, Generic, NoReturn, TypeVar

from zodbshootout.errors import UserError, close_to

T = TypeVar("T")

COMMANDS = {
    "show": ("show", "ShowOptions"),
    "compare": ("compare", "CompareOptions"),
    "report": ("report", "ReportOptions"),
    "sample": ("sample", "SampleOptions"),
    "workload": ("workload", "WorkloadOptions"),
    "workload make": ("make_workload", "MakeOptions"),
}
"""For each command except a run, its module, which has a function ``run``, and its options' class.
"""


@dataclass(frozen=True)
class Option:
    """All that is known of an option, or of an argument that has no names.

    The messages in :attr:`needs` and :attr:`excludes` follow the name of the refused option.  The
    names of several options are one text, with blanks between them.
    """

    names: Sequence[str]
    default: Any
    for_argparse: Mapping[str, Any]
    """What :meth:`argparse.ArgumentParser.add_argument` gets: the type, the help and so on."""
    group: str = ""
    """The title of the group that begins with this option in the help."""
    made: Callable[[str, Any], Any] = lambda _, value: value
    """Returns the value of the field, for the option's name and what argparse has read."""
    one_of: str = ""
    """This option and those of which it excludes each."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """For options of which one has to be given, the message if none is given."""
    excludes: Mapping[str, str] = field(default_factory=dict)
    """For options that are refused beside this one, the message."""
    package: str = ""
    """The package that the option needs; the extra that installs it has the option's name."""
    without_value: str = ""
    """The value of an option that is given without a value, if this is possible."""
    takes: Callable[[str], bool] = lambda _: False
    """Returns whether a word is a value, if the option can be given without one."""

    def add_to(self, parser: argparse.ArgumentParser | argparse._ArgumentGroup, name: str) -> None:
        """Let a parser read the option, for the field *name*; it omits an option without value."""
        how: dict[str, Any] = {"default": argparse.SUPPRESS, **self.for_argparse}
        if self.names:
            parser.add_argument(*self.names, dest=name, **how)
        else:
            parser.add_argument(name, **how)


_OF_RECORD = {one.name for one in fields(Option)}


def record(words: str, default: Any = None, **what: Any) -> Option:
    """Return the record of an option.

    *words* are the names of the option and then, if it has a value, the metavar.  *what* has
    attributes of the record, and what argparse gets.
    """
    names = [word for word in words.split() if word.startswith("-")]
    metavar = tuple(words.split()[len(names) :])
    own = {name: what.pop(name) for name in _OF_RECORD & {*what}}
    if metavar:
        what["metavar"] = metavar if len(metavar) > 1 else metavar[0]
    return Option(names, default, what, **own)


def given_by(one: Option) -> Any:
    """Return a field for the value of an option."""
    return field(default_factory=lambda: one.default, metadata={"option": one})


def option(words: str, default: Any = None, **what: Any) -> Any:
    """Return a field for the value of an option; see :func:`record`."""
    return given_by(record(words, default, **what))


def several(words: str, default: Any = (), **what: Any) -> Any:
    """Return a field for the values of an option that can be repeated."""
    return option(words, default, action="append", **what)


def flag(words: str, **what: Any) -> Any:
    """Return a field for an option without a value: whether it is given."""
    return option(words, default=False, action="store_true", **what)


def records_of(kind: type) -> dict[str, Option]:
    """Return the records of a command's options, by the names of their fields, in their order."""
    known = {one.name: one.metadata["option"] for one in fields(kind) if one.metadata}
    return {name: known[name] for name in kind.__annotations__ if name in known}


class Parser(argparse.ArgumentParser, Generic[T]):
    """A parser of a command's options.

    It raises errors instead of exiting, and suggests options for a misspelt one.
    """

    def __init__(self, kind: type[T], **how: Any) -> None:
        super().__init__(allow_abbrev=False, **how)
        self.kind, self.records = kind, records_of(kind)
        place: Any = self
        for name, one in self.records.items():
            place = self.add_argument_group(one.group) if one.group else place
            one.add_to(place, name)

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

    def options(self, arguments: Sequence[str]) -> T:
        """Return the options in the arguments of a command.

        :raises UserError: if an option is wrong or contradicts another one
        """
        return self.made(self.given(arguments))

    def given(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Return what is typed for the options that are given, by the names of their fields.

        :raises UserError: if an option is wrong or contradicts another one
        """
        given = vars(self.parse_intermixed_args(self.spelled_out(arguments)))
        self._check([one for name, one in self.records.items() if name in given])
        return given

    def made(self, given: Mapping[str, Any], **more: Any) -> T:
        """Return the options with the values of their fields.

        :raises UserError: if the values of an option do not go together
        """
        made = {
            name: one.made(one.names[-1], given[name]) if one.names else given[name]
            for name, one in self.records.items()
            if name in given
        }
        return self.kind(**made, **more)

    def spelled_out(self, arguments: Sequence[str]) -> list[str]:
        """Give a value to each option that may be without one, and is.

        argparse would take the next word, so ``--threads FILE`` becomes ``--threads=shared FILE``.
        """
        optional = {one.names[0]: one for one in self.records.values() if one.without_value}
        rewritten, rest = list[str](), list(arguments)
        while rest:
            word = rest.pop(0)
            if one := optional.get(word):
                value = rest.pop(0) if rest and one.takes(rest[0]) else one.without_value
                word = f"{word}={value}"
            rewritten.append(word)
        return rewritten

    def _check(self, records: Collection[Option]) -> None:
        """Check that the packages of given options are there, and that none contradicts another."""
        names = {name for one in records for name in one.names}
        refusals = chain(
            (
                f"{one.names[0]}: {one.package} is not installed; "
                f"install it: pip install 'zodbshootout[{one.names[0][2:]}]'"
                for one in records
                if one.package and importlib.util.find_spec(one.package) is None
            ),
            (
                f"{' and '.join(alike)}: give one of them"
                for one in records
                if len(alike := [name for name in one.one_of.split() if name in names]) > 1
            ),
            (
                f"{one.names[0]} {message}"
                for one in records
                for needed, message in one.needs.items()
                if names.isdisjoint(needed.split())
            ),
            (
                f"{name} {message}"
                for one in records
                for refused, message in one.excludes.items()
                for name in refused.split()
                if name in names
            ),
        )
        if refusal := next(refusals, None):
            raise UserError(refusal)
