"""Reading a configuration such that its text can be told as well as what it means.

What ZConfig makes of a section does not say which values the file has from a name of the run, such
as ``$main_port``, for these are replaced when it is read.  This loader notes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ZConfig
from ZConfig.cfgparser import ZConfigParser
from ZConfig.loader import CompositeHandler, ConfigLoader
from ZConfig.substitution import substitute

_START = re.compile(r"^\s*<(?P<type>[^\s/>]+)[^>]*?(?P<empty>/)?>\s*$")
_KEY_AND_VALUE = re.compile(r"(?P<key>[^\s()]+)\s*(?P<value>\S.*)?")
_HEADER = re.compile(r"(?P<type>[^\s()/]+)(?:\s+(?P<name>[^\s()]*[^\s()/]))?")
_DEFINITION = re.compile(r"\s*%define\s+(?P<name>\w+)")
_REFERENCE = re.compile(
    r"\$(?:\$|\{(?P<braced>[a-z_]\w*)\}|(?P<bare>[a-z_]\w*))", re.IGNORECASE | re.ASCII
)
"""What ``$`` begins in ZConfig's language, but for the environment's variables."""


@dataclass
class SectionText:
    """A section as it stands in a file, with what the file itself defines in its place."""

    imports: list[str] = field(default_factory=list)
    """The lines of the file that import types of sections that stand in :attr:`lines`."""
    lines: list[str] = field(default_factory=list)
    """The lines of the outermost section, with those of all others that it holds."""
    names: set[str] = field(default_factory=set)
    """The names of the run that stand in these lines, be it by way of what the file defines."""
    values: dict[str, list[str]] = field(default_factory=dict)
    """What stands for each attribute of this section itself, or ``attribute.key`` of a mapping."""

    @property
    def whole(self) -> str:
        """The outermost section, such that it can be read without the rest of the file.

        It refers to :attr:`names`, and to variables of the environment.
        """
        return "".join(f"{line}\n" for line in (*self.imports, *self.lines))

    def within(self) -> SectionText:
        """Return the text of a section in this one."""
        return SectionText(self.imports, self.lines, self.names)

    def by_name(self, attribute: str, number: int = 0) -> str | None:
        """Return a value with ``$name`` for what the run has named, ``None`` if it has nothing.

        *number* counts the values of an attribute that has several.
        """
        texts = self.values.get(attribute, ())
        text = texts[number] if number < len(texts) else ""
        asked = _Asked()
        shown: str = substitute(text, asked)
        return shown if asked.names else None


@dataclass(frozen=True)
class OutsideSection:
    """A section that another Python is to read, as it stands in a file."""

    type: str
    name: str
    environment: str
    """What the file calls that Python."""
    url: str
    """Which file it is in, and from which line on."""
    first_line: int
    lines: Sequence[str]
    """Its lines, with what the file itself defines in its place, and none for the environment."""
    imports: Sequence[tuple[str, str, int]]
    """The lines before it that import types of sections, each with its file and its place there."""
    names: frozenset[str]
    """The names of the run that stand in it."""

    @property
    def whole(self) -> str:
        """The section, such that it can be read without the rest of the file."""
        return "".join(f"{line}\n" for line in [*(each[0] for each in self.imports), *self.lines])

    def value(self, key: str, names: Mapping[str, str]) -> str:
        """Return the value of a *key* that stands in no inner section, empty where it has none."""
        for word, value, types in keys_in(self.lines):
            if len(types) == 1 and word.lower() == key:
                return str(substitute(value, names))
        return ""

    def place(self, line: int) -> tuple[str, int]:
        """Return in which file, and in which line, a *line* of :attr:`whole` stands, from 1 on."""
        if line <= len(self.imports):
            _, url, number = self.imports[line - 1]
            return url, number
        return self.url, self.first_line + line - len(self.imports) - 1


def lines_in_sections(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return each line with the types of the sections that it belongs to, outermost first.

    The lines with which a section starts and ends belong to it.
    """
    stack: list[str] = []
    for line in text.splitlines():
        start = _START.match(line)
        end = line.lstrip().startswith("</")
        if start and not end:
            stack.append(start["type"].lower())
        yield line, tuple(stack)
        if stack and (end or (start and start["empty"])):
            stack.pop()


def keys_in(lines: Iterable[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Return each key, its value, and the types of the sections that it stands in."""
    for line, types in lines_in_sections("\n".join(lines)):
        found = _KEY_AND_VALUE.match(line.strip())
        if found is not None and not found["key"].startswith(("#", "<", "%")):
            yield found["key"], found["value"] or "", types


def with_names(text: str) -> str:
    """Return *text* with ``$name`` for each name in it, and ``$`` for ``$$``."""
    shown: str = substitute(text, _Asked())
    return shown


class _Asked:
    """What ZConfig takes for a mapping; it notes the names that are asked for."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def get(self, name: str) -> str:
        self.names.add(name)
        return f"${name}"


class TextLoader(ConfigLoader):  # type: ignore[misc]
    """A loader that defines names of the run and keeps the texts of sections.

    What it overrides is what ZConfig's parser calls and what its documentation names.
    """

    def __init__(self, schema: Any, names: Mapping[str, str]) -> None:
        super().__init__(schema)
        self.texts: dict[Any, SectionText] = {}
        """By the matcher of each section, which what ZConfig makes of the section knows."""
        self._names = names
        self._meaning = {name: f"${{{name}}}" for name in names}
        self._imports: dict[str, str] = {}
        """The line that imports each type of sections that the file has imported."""
        self._import_lines: list[tuple[str, str, int]] = []
        self.outside: list[OutsideSection] = []
        """The sections that other Pythons are to read."""
        self.order: list[str] = []
        """The names of all outermost sections, as they follow each other."""
        self.not_here: list[ZConfig.ConfigurationError] = []
        """What is wrong with imports of packages that this Python has not."""

    def loadResource(self, resource: Any) -> Any:  # noqa: N802
        matcher = self.createSchemaMatcher()
        _Parser(resource, self, dict(self._names)).parse(matcher)
        return matcher.finish(), CompositeHandler(matcher.handlers, self.schema)

    def includeConfiguration(self, section: Any, url: str, defines: Any) -> None:  # noqa: N802
        with self.openResource(self.normalizeURL(url)) as resource:
            _Parser(resource, self, defines).parse(section)

    def importSchemaComponent(self, pkgname: str) -> None:  # noqa: N802
        before = set(self.schema.gettypenames())
        super().importSchemaComponent(pkgname)
        new = set(self.schema.gettypenames()) - before
        self._imports.update(dict.fromkeys(new, f"%import {pkgname}"))

    def startSection(self, parent: Any, type_: str, name: str | None) -> Any:  # noqa: N802
        matcher = super().startSection(parent, type_, name)
        outer = self.texts.get(parent)
        if outer is None and type_ != "environment":
            self.order.append(name or "")
        self.texts[matcher] = text = outer.within() if outer else SectionText()
        text.lines.append(f"<{type_} {name}>" if name else f"<{type_}>")
        used = {*text.imports, self._imports.get(type_)}
        text.imports[:] = [line for line in dict.fromkeys(self._imports.values()) if line in used]
        return matcher

    def endSection(self, parent: Any, type_: str, name: str | None, matcher: Any) -> None:  # noqa: N802
        super().endSection(parent, type_, name, matcher)
        self.texts[matcher].lines.append(f"</{type_}>")

    def note_definition(self, name: str, text: str) -> None:
        """Note what the file defines; its parser has found nothing wrong with it."""
        self._meaning.setdefault(name, self._meant(text))

    def note_import(self, package: str, url: str, line: int) -> None:
        """Note a line that imports a package, whether this Python has it or not."""
        self._import_lines.append((f"%import {package}", url, line))

    def note_outside(self, section: OutsideSection) -> None:
        """Note a section that another Python is to read, with its lines as they stand there."""
        lines = [self._meant(line) for line in section.lines]
        asked, within = _Asked(), set[str]()
        for number, line in enumerate(lines, section.first_line):
            if defined := _DEFINITION.match(line):
                within.add(defined["name"].lower())
            if not line.lstrip().startswith("#"):
                self._note_names(line, asked, within, (section.url, number))
        asked.names -= within
        self.order.append(section.name)
        imports = tuple(self._import_lines)
        self.outside.append(
            replace(section, lines=lines, imports=imports, names=frozenset(asked.names))
        )

    def _note_names(
        self, line: str, asked: _Asked, within: set[str], place: tuple[str, int]
    ) -> None:
        """Note the names of the run that stand in a line; *within* are those of the section.

        :raises ZConfig.SubstitutionReplacementError: when one is neither
        """
        try:
            substitute(line, asked)
            for name in sorted(asked.names - within - self._names.keys()):
                raise ZConfig.SubstitutionReplacementError(line, name)
        except ZConfig.ConfigurationError as error:
            error.url, error.lineno = place
            raise

    def note_value(self, matcher: Any, key: str, text: str) -> None:
        """Note the value of a key in a section; its parser has found nothing wrong with it."""
        noted = self.texts.get(matcher)
        if noted is None:  # it stands in no section
            return
        meant = self._meant(text)
        asked = _Asked()
        substitute(meant, asked)
        noted.names |= asked.names
        noted.lines.append(f"{key} {meant}".rstrip())
        noted.values.setdefault(_attribute(matcher.type, key), []).append(meant)

    def _meant(self, text: str) -> str:
        """Return *text* with what the file has defined in its place; the rest stays as it is."""

        def meaning(found: re.Match[str]) -> str:
            name = found["braced"] or found["bare"] or ""
            return self._meaning.get(name.lower(), found[0])

        return _REFERENCE.sub(meaning, text)


class _Parser(ZConfigParser):  # type: ignore[misc]
    """Tells its loader what stands in a file; ``context`` is that loader."""

    __slots__ = ()

    def start_section(self, section: Any, rest: str) -> Any:
        outside = None if self.stack else self._outside_section(rest)
        if outside is None:
            return super().start_section(section, rest)
        for _ in outside.lines[1:]:
            self.nextline()
        self.context.note_outside(outside)
        return section

    def _outside_section(self, rest: str) -> OutsideSection | None:
        """Return the section that begins here, if another Python is to read it."""
        header = _HEADER.fullmatch(rest.strip())
        if header is None or header["type"].lower() == "environment":
            return None
        here = self.file.tell()
        lines = [f"<{rest}>", *_until_closed(iter(self.file.readline, ""))]
        self.file.seek(here)
        for number, (line, types) in enumerate(lines_in_sections("\n".join(lines))):
            found = _KEY_AND_VALUE.match(line.strip())
            if len(types) == 1 and found is not None and found["key"].lower() == "environment":
                lines[number] = ""
                value = self.replace(found["value"] or "")
                return OutsideSection(
                    header["type"].lower(), (header["name"] or "").lower(), value.strip().lower(),
                    self.url, self.lineno, lines, (), frozenset(),
                )  # fmt: skip
        return None

    def handle_import(self, section: Any, rest: str) -> None:
        self.context.note_import(self.replace(rest.strip()), self.url, self.lineno)
        try:
            super().handle_import(section, rest)
        except ZConfig.SchemaResourceError as error:
            self.context.not_here.append(error)

    def handle_define(self, section: Any, rest: str) -> None:
        super().handle_define(section, rest)
        name, *text = rest.split(None, 1)
        self.context.note_definition(name.lower(), "".join(text))

    def handle_key_value(self, section: Any, rest: str) -> None:
        super().handle_key_value(section, rest)
        found = _KEY_AND_VALUE.match(rest)
        assert found is not None
        self.context.note_value(section, found["key"], found["value"] or "")


def _until_closed(lines: Iterator[str]) -> Iterator[str]:
    """Return the lines up to the one that closes the section whose first line they follow."""
    depth = 1
    for line in lines:
        yield line.rstrip("\n")
        words = line.strip()
        if words.startswith("</"):
            depth -= 1
        elif words.startswith("<") and not words.endswith("/>"):
            depth += 1
        if not depth:
            return


def _attribute(section_type: Any, key: str) -> str:
    """Return the attribute of a section that a key sets, or ``attribute.key`` in a mapping."""
    real = section_type.keytype(key)
    anything = ""
    for name, info in section_type:
        if name == real:
            return str(info.attribute)
        if name == "+":
            anything = f"{info.attribute}.{real}"
    return anything
