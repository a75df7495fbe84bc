"""A configuration as a tree of its sections and keys, as ZConfig's parser finds them.

ZConfig itself needs the packages that define a file's section types, and the values of all names.
The tree is made without these.  It shows which servers a file has, which names the file refers to
and which values are secret.  Afterwards the run passes each section of the tree either to ZConfig
or, as text, to another Python.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

import ZConfig
from ZConfig.cfgparser import ZConfigParser
from ZConfig.loader import BaseLoader
from ZConfig.substitution import isname, substitute

from zodbshootout.config.references import marked, references, replaced, unmarked
from zodbshootout.errors import UserError

_TYPE = re.compile(r"[\w.-]+(?=[\s/]|$)")
"""The type of a section."""
_KEY_AND_VALUE = re.compile(r"(?P<key>[^\s()]+)\s*(?P<value>\S.*)?$")


class Position(NamedTuple):
    """A line of a file."""

    path: Path
    """The file, as a relative path if the user gave a relative path."""
    number: int
    """The line number, counted from 1."""

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"


class Line(NamedTuple):
    """A line of a section's text, and its place in a file."""

    text: str
    place: Position


class Key(NamedTuple):
    """A line with a key, a definition or a directive; :attr:`name` is empty for a directive."""

    name: str
    written: str
    """The value as it is written in the file."""
    resolved: str
    """The value, with each reference to a definition replaced by the defined value.

    There are marks around the defined values; see :func:`~zodbshootout.config.references.marked`.
    References to names that the run defines, such as ``$scratch``, and to environment variables
    are not replaced.
    """
    place: Position

    @property
    def value(self) -> str:
        """The value as in :attr:`resolved`, without marks."""
        return unmarked(self.resolved)


class Import(NamedTuple):
    """An ``%import``."""

    package: str
    place: Position

    @property
    def line(self) -> Line:
        return Line(f"%import {self.package}", self.place)


POOLER = "pgbouncer"
"""The type of sections of poolers."""


@dataclass(frozen=True, eq=False)
class Section:
    """A section, and its content."""

    type: str
    """The section's type, in lower case; the name is in lower case, too."""
    name: str
    place: Position
    items: list[Item] = field(default_factory=list)
    """The keys, inner sections and imports in the section, in file order."""
    end: list[Position] = field(default_factory=list)
    """A list with the place of the section's end; empty if the section has no end."""
    imports: tuple[Import, ...] = ()
    """The imports that the section needs.  An import that is inside of the section may be missing
    here, but is in :attr:`all_imports`."""
    environment: str = ""
    """The environment whose Python reads the section; empty for the command's own Python."""
    sql: tuple[str, ...] = ()
    """The SQL statements to execute after the storage has created its tables."""

    @property
    def is_server(self) -> bool:
        """Whether the section describes a server: the types of servers end in this word.

        A pooler, which is called by its own name, is a server to its clients.
        """
        return self.type.endswith("server") or self.type == POOLER

    @property
    def keys(self) -> Iterator[Key]:
        """The section's own keys, without those of inner sections."""
        return (item for item in self.items if isinstance(item, Key))

    @property
    def sections(self) -> Iterator[Section]:
        """The direct inner sections."""
        return (item for item in self.items if isinstance(item, Section))

    def walk(self) -> Iterator[Section]:
        """Yield this section and all within it, outermost first."""
        yield self
        for section in self.sections:
            yield from section.walk()

    def key(self, name: str) -> Key | None:
        """Return the section's own key whose name in lower case is *name*, or ``None``."""
        return next((key for key in self.keys if key.name.lower() == name), None)

    @cached_property
    def names(self) -> frozenset[str]:
        """The run's names that the section's values use, directly or through definitions."""
        values = (key.value for section in self.walk() for key in section.keys)
        return frozenset(name for value in values for name in references(value))

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The section's lines, from the first to the last."""
        return tuple(self._lines())

    @property
    def start(self) -> str:
        """The section's first line."""
        return f"<{self.type} {self.name}>" if self.name else f"<{self.type}>"

    def _lines(self) -> Iterator[Line]:
        yield Line(self.start, self.place)
        for item in self.items:
            if isinstance(item, Section):
                yield from item.lines
            elif isinstance(item, Key):
                yield Line(f"{item.name} {item.value}".rstrip(), item.place)
        yield Line(f"</{self.type}>", (self.end or [self.place])[0])

    @property
    def all_imports(self) -> tuple[Import, ...]:
        """The imports that the section needs, outside of it and inside."""
        inside = (
            item for section in self.walk() for item in section.items if isinstance(item, Import)
        )
        return tuple(dict.fromkeys((*self.imports, *inside)))

    @property
    def whole(self) -> str:
        """The section's text, readable without the rest of the file.

        The text still refers to :attr:`names` and to environment variables.
        """
        return "".join(f"{line.text}\n" for line in self._whole())

    @property
    def storage(self) -> str:
        """The text of the inner sections except ``<settings>``: the storages of a server."""
        inner = (section for section in self.sections if section.type != "settings")
        return "".join(f"{line.text}\n" for section in inner for line in section.lines)

    def line(self, number: int) -> Position:
        """Return the place of line *number* of :attr:`whole`, counted from 1."""
        return self._whole()[number - 1].place

    def mistake(self, flaw: str, wrong: str = "") -> UserError:
        """Return an error about a *flaw*, placed at the first line that begins with *wrong*.

        If there is no such line, the place is the section's first line.
        """
        words = f"{wrong} ".lower()
        lines = (line for line in self.lines if f"{line.text} ".lower().startswith(words))
        return UserError(f"{next(lines, self.lines[0]).place}: {flaw}")

    def _whole(self) -> list[Line]:
        return [*(item.line for item in self.all_imports), *self.lines]


Item: TypeAlias = "Key | Section | Import"
"""A part of a section."""


@dataclass(frozen=True, eq=False)
class Tree:
    """The content of a configuration, including the files that it includes."""

    root: Section
    """A section without a type, which contains the outermost sections."""
    definitions: list[Key] = field(default_factory=list)
    directives: list[Key] = field(default_factory=list)
    """The ``%include`` and ``%import`` directives."""
    errors: list[ZConfig.ConfigurationError] = field(default_factory=list)
    """The errors of ZConfig's parser; after each, the parser continued on the next line."""

    @property
    def keys(self) -> Iterator[Key]:
        """All definitions, directives and keys."""
        yield from self.definitions
        yield from self.directives
        for section in self.root.walk():
            yield from section.keys

    def around(self, place: Position) -> tuple[Section, ...]:
        """Return the sections that contain a line, outermost first.

        The first and the last line of a section belong to it.
        """
        return next(self._paths(self.root, place), ())

    def _paths(self, section: Section, place: Position) -> Iterator[tuple[Section, ...]]:
        """Yield each chain of nested sections around a line, the longest chain first."""
        for inner in section.sections:
            yield from ((inner, *path) for path in self._paths(inner, place))
            own = {item.place for item in inner.items if isinstance(item, (Key, Import))}
            is_within = inner.place.path == place.path and inner.place.number <= place.number
            ends = inner.end and inner.end[0].number < place.number
            if place in own or (is_within and not ends):
                yield (inner,)


def read_tree(text: str, path: Path, definitions: Mapping[str, str] | None = None) -> Tree:
    """Return the tree of a file with this *text*; *definitions* replace the file's own."""
    return _Loader(path, definitions or {}).tree_of(text)


def path_of(url: str) -> Path:
    """Return the path of a file, given ZConfig's URL for it."""
    return Path(url2pathname(urlsplit(url).path))


class _Loader(BaseLoader):  # type: ignore[misc]
    """The ``context`` of ZConfig's parsers: it opens files, and collects what the parsers find."""

    def __init__(self, path: Path, definitions: Mapping[str, str]) -> None:
        super().__init__()
        self.path = path
        self.tree = Tree(Section("", "", Position(path, 0)))
        self.section = self.tree.root
        """The section being read."""
        self.place = Position(path, 0)
        """The line being read."""
        self.at_end = False
        """Whether the file being read has no more lines."""
        self.fixed = frozenset(definitions)
        """The names whose definitions in the file are ignored."""
        self._values: dict[str, str] = {}
        """The values of definitions, by name, with marks around each value."""
        self._open: list[str] = []
        """The URLs of the file being read and of the files that include it."""
        for name, value in definitions.items():
            self.define(name, value)

    def tree_of(self, text: str) -> Tree:
        self.loadFile(io.StringIO(text), self.path.absolute().as_uri())
        return self.tree

    def shown(self, url: str) -> Path:
        """Return the path of a file; it is relative if the user gave a relative path."""
        if url == self.path.absolute().as_uri():
            return self.path
        path = path_of(url)
        return path if self.path.is_absolute() else Path(os.path.relpath(path))

    def loadResource(self, resource: Any) -> None:  # noqa: N802
        parser, around = _Parser(resource, self), self.section
        self._open.append(resource.url)
        self.at_end = False
        while not self.at_end:
            try:
                parser.parse(self.section)
            except ZConfig.ConfigurationError as error:  # continue on the next line
                self.tree.errors.append(error)
        self.at_end = False
        self._open.pop()
        self.section = around

    def includeConfiguration(self, _section: Any, url: str, _defines: Any) -> None:  # noqa: N802
        place = self.place
        if url in self._open:
            raise ZConfig.ConfigurationSyntaxError(
                "the file includes itself, directly or through another file", *place
            )
        try:
            resource = self.openResource(self.normalizeURL(url))
        except ZConfig.ConfigurationError as error:
            error.url, error.lineno = place
            error.message = error.message.replace(str(path_of(url)), str(self.shown(url)))
            raise
        except Exception as error:  # importing the file's package may raise anything
            raise ZConfig.ConfigurationSyntaxError(
                f"cannot include {url}: {type(error).__name__}: {error}", *place
            ) from error
        with resource:
            self.loadResource(resource)

    def importSchemaComponent(self, pkgname: str) -> None:  # noqa: N802
        self.section.items.append(Import(pkgname, self.place))

    def startSection(self, parent: Section, type_: str, name: str | None) -> Section:  # noqa: N802
        section = Section(type_, name or "", self.place)
        parent.items.append(section)
        self.section = section
        return section

    def endSection(self, parent: Section, type_: str, name: str | None, section: Section) -> None:  # noqa: N802, ARG002
        section.end.append(self.place)
        self.section = parent

    def key(self, name: str, written: str) -> Key:
        return Key(name, written, self.resolve(written), self.place)

    def resolve(self, value: str) -> str:
        return replaced(value, self._values)

    def define(self, name: str, value: str) -> None:
        """Record a definition; the first definition of a name counts."""
        key = self.key(name, value)
        self.tree.definitions.append(key)
        self._values.setdefault(name, marked(key.resolved))


class _Parser(ZConfigParser):  # type: ignore[misc]
    """A parser that reports to its loader as it reads."""

    __slots__ = ()

    def nextline(self) -> Any:
        done, line = super().nextline()
        path = self.context.shown(self.url)
        self.context.place, self.context.at_end = Position(path, self.lineno), done
        if done and self.stack:
            self._complain_of_open_sections()
        return done, line

    def _complain_of_open_sections(self) -> None:
        opened = self.context.section
        self.context.place = opened.place
        ends = " and ".join(f"</{type_}>" for type_, _, _ in reversed(self.stack))
        self.error(f"{opened.start} is not closed; write {ends} at its end")

    def start_section(self, section: Section, rest: str) -> Any:
        if not _TYPE.match(rest):  # XML or HTML
            self.error("malformed section header")
        return super().start_section(section, rest)

    def end_section(self, section: Section, rest: str) -> Any:
        type_ = rest.strip().lower()
        if not _TYPE.fullmatch(type_):  # do not repeat it
            self.error("malformed section header")
        opened = [type_ for type_, _, _ in self.stack]
        if type_ not in opened:
            self.error(f"</{type_}> closes nothing: no <{type_}> is open; write <{type_}> above")
        if type_ != section.type:
            self.error(
                f"</{type_}> cannot close {section.start}, which begins on line "
                f"{section.place.number}; write </{section.type}> above it"
            )
        return super().end_section(section, rest)

    def handle_key_value(self, section: Section, rest: str) -> None:
        pair = _KEY_AND_VALUE.match(rest)
        if pair is None:
            self.error("malformed configuration data")
        assert pair is not None
        section.items.append(self.context.key(pair["key"], pair["value"] or ""))

    def handle_define(self, section: Section, rest: str) -> None:  # noqa: ARG002
        name, *value = rest.split(None, 1)
        name, text = name.lower(), "".join(value)
        if name in self.context.fixed:
            return
        earlier = {key.name: key.written for key in self.context.tree.definitions}
        self.context.define(name, text)
        if not isname(name):
            self.error("a name begins with a letter, and has letters, digits and _")
        if earlier.get(name, text) != text:
            self.error(f"cannot redefine {name!r}")

    def handle_import(self, section: Section, rest: str) -> None:
        self.context.tree.directives.append(self.context.key("", rest))
        if len(rest.split()) > 1:
            self.error("%import takes one package; write a line for each")
        super().handle_import(section, rest)

    def handle_include(self, section: Section, rest: str) -> None:
        self.context.tree.directives.append(self.context.key("", rest))
        super().handle_include(section, rest)

    def replace(self, text: str) -> str:
        try:
            return str(substitute(unmarked(self.context.resolve(text)), {}))
        except (ZConfig.SubstitutionReplacementError, ZConfig.SubstitutionSyntaxError) as error:
            error.url, error.lineno = self.context.place  # ZConfig may omit the place
            raise

    def error(self, message: str) -> None:
        raise ZConfig.ConfigurationSyntaxError(message, *self.context.place)
