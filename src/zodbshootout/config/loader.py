"""A ZConfig loader that also records the text of each section.

ZConfig replaces names of the run, such as ``$main_port``, as it reads, so a parsed section does not
show which values contain them.  Nor can ZConfig read a section for another Python, whose packages
define the section's type.  The text serves in both cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import ZConfig
from ZConfig.cfgparser import ZConfigParser
from ZConfig.loader import CompositeHandler, ConfigLoader
from ZConfig.substitution import substitute

from zodbshootout.config.statements import KEY_AND_VALUE, references, replaced

ZOPE_DATABASE = "zodb_db"
"""The type of the sections with databases in Zope's configuration, read as ``zodb``."""
_TYPES = {ZOPE_DATABASE: "zodb"}
_KEYS_OF_ZOPE = frozenset({"class-factory", "connection-class", "container-class", "mount-point"})
"""Keys of such a section that are about the application, not the storage; they are skipped."""
_START = re.compile(r"^\s*<(?P<type>[^\s/>]+)[^>]*?(?P<empty>/)?>\s*$")


def lines_in_sections(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each line with the types of the sections around it, outermost first.

    The first and the last line of a section count as inside it.
    """
    stack: list[str] = []
    for line in text.splitlines():
        start = _START.match(line)
        end = line.lstrip().startswith("</")
        if start and not end:
            type_ = start["type"].lower()
            stack.append(_TYPES.get(type_, type_))
        yield line, tuple(stack)
        if stack and (end or (start and start["empty"])):
            stack.pop()


class Line(NamedTuple):
    """A line of a section's text, and its place in a file."""

    text: str
    url: str
    number: int
    """Counted from 1."""


@dataclass(eq=False)
class SectionText:
    """The text of a section, with the file's own definitions replaced by their values."""

    type: str = ""
    """The type of the outermost section; :attr:`name` and :attr:`environment` are also its own."""
    name: str = ""
    environment: str = ""
    """The name of the environment whose Python reads the section; empty for this Python."""
    imports: list[Line] = field(default_factory=list)
    """The ``%import`` lines that define the section types in :attr:`lines`."""
    lines: list[Line] = field(default_factory=list)
    """The lines of the outermost section, including all sections in it."""
    names: set[str] = field(default_factory=set)
    """The names of the run that these lines refer to, directly or through a definition."""
    values: dict[str, list[str]] = field(default_factory=dict)
    """The values of this section's own keys, by attribute or, in a mapping, by ``attribute.key``.

    For another Python, the values of all keys in the outermost section, those of inner sections by
    ``type.key``.
    """

    @property
    def whole(self) -> str:
        """The outermost section, readable without the rest of the file.

        It still refers to :attr:`names` and to environment variables.
        """
        return "".join(f"{line.text}\n" for line in (*self.imports, *self.lines))

    @property
    def storage(self) -> str:
        """The sections in the outermost one except ``<settings>``: the storage of a server."""
        lines = lines_in_sections("\n".join(line.text for line in self.lines))
        inner = ((line, types[1:]) for line, types in lines)
        return "".join(f"{line}\n" for line, types in inner if types[:1] not in {(), ("settings",)})

    def by_name(self, attribute: str, number: int = 0) -> str | None:
        """Return a value with ``$name`` for each name of the run, ``None`` if it refers to none.

        *number* is the index of the value if an attribute has several.
        """
        texts = self.values.get(attribute, ())
        text = texts[number] if number < len(texts) else ""
        return with_names(text) if references(text) else None

    def uri(self, names: Mapping[str, str]) -> str:
        """Return the only value, that of a ``<zodburi>`` section, with *names* replaced."""
        return str(substitute(next(iter(self.values.values()))[0], names))

    def place(self, line: int) -> Line:
        """Return a *line* of :attr:`whole`, counted from 1."""
        return [*self.imports, *self.lines][line - 1]


def with_names(text: str) -> str:
    """Return *text* with ``$name`` for each name that it refers to, and ``$`` for ``$$``."""
    return str(substitute(text, {name: f"${name}" for name in references(text)}))


class _OtherPython:
    """A stand-in for the matcher of a section that another Python reads."""

    def __init__(self, *types: str) -> None:
        self.types = types
        """The types of the inner sections, down to this one."""

    def addValue(self, key: str, value: str, position: Any) -> None:  # noqa: N802
        pass


class _Skipped:
    """A stand-in for the matcher of a section that only Zope knows."""


class TextLoader(ConfigLoader):  # type: ignore[misc]
    """A loader that defines names of the run and records the texts of sections.

    It overrides only methods that ZConfig documents and its parser calls.
    """

    def __init__(
        self,
        schema: Any,
        names: Mapping[str, str],
        definitions: Mapping[str, str],
        *,
        of_zope: bool = False,
    ) -> None:
        """Define *names* of the run, and *definitions* in place of those in the file.

        In a configuration *of_zope* everything outside of databases is skipped, except for
        sections that the schema knows.
        """
        super().__init__(schema)
        self.of_zope = of_zope
        self.texts: dict[Any, SectionText] = {}
        """The texts by the matchers of their sections; a parsed section knows its matcher."""
        self.outermost: list[SectionText] = []
        self.failed_imports: list[ZConfig.ConfigurationError] = []
        """One for each imported package that this Python does not have."""
        self.place: tuple[str, int] = ("", 0)
        """The URL and the number of the line that is being read."""
        self.environment = ""
        """The environment of the outermost section that is being read."""
        self._databases: dict[Any, Any] = {}
        """Matchers of databases for storages that the file has outside of a database, by theirs."""
        self._elsewhere: SectionText | None = None
        """The text of the outermost section that is being read, if it is for another Python."""
        self._names = names
        self._replacements = {name: f"${{{name}}}" for name in names}
        """The texts that replace references: a name of the run stays a reference."""
        self.definitions = definitions
        for name, text in definitions.items():
            self.record_definition(name, text)
        self._import_lines: list[Line] = []
        self._imported_by: dict[str, Line] = {}
        """The line that imports each section type."""

    def loadResource(self, resource: Any) -> Any:  # noqa: N802
        matcher = self.createSchemaMatcher()
        defines = dict(self._names)
        for name, text in self.definitions.items():
            defines[name] = substitute(text, defines)
        _Parser(resource, self, defines).parse(matcher)
        return matcher.finish(), CompositeHandler(matcher.handlers, self.schema)

    def includeConfiguration(self, section: Any, url: str, defines: Any) -> None:  # noqa: N802
        try:
            included = self.openResource(self.normalizeURL(url))
        except ZConfig.ConfigurationError as error:
            error.url, error.lineno = self.place
            raise
        with included as resource:
            _Parser(resource, self, defines).parse(section)

    def importSchemaComponent(self, pkgname: str) -> None:  # noqa: N802
        line = Line(f"%import {pkgname}", *self.place)
        self._import_lines.append(line)
        if self._elsewhere is not None:
            self._elsewhere.imports.append(line)
        before = set(self.schema.gettypenames())
        try:
            super().importSchemaComponent(pkgname)
        except ZConfig.ConfigurationError as error:
            error.url, error.lineno = self.place  # not those of the package's component.xml
            if not isinstance(error, ZConfig.SchemaResourceError):
                raise
            self.failed_imports.append(error)
        new = set(self.schema.gettypenames()) - before
        self._imported_by.update(dict.fromkeys(new, line))

    def startSection(self, parent: Any, type_: str, name: str | None) -> Any:  # noqa: N802
        type_ = _TYPES.get(type_, type_)
        if not self._is_outermost(parent):
            return self._start(parent, type_, name)
        is_variables = type_ == "environment" and not name
        if self.of_zope and (is_variables or type_ not in self.schema.gettypenames()):
            return _Skipped()
        if not self._is_storage(type_):
            return self._start(parent, type_, name or ("zodb" if type_ == "zodb" else None))
        database = self._start(parent, "zodb", name or type_)
        storage = self._start(database, type_, name)
        self._databases[storage] = database
        return storage

    def is_skipped(self, section: Any, key: str) -> bool:
        """Return whether to skip a *key* of a section, because only Zope knows it."""
        if isinstance(section, _Skipped):
            return True
        text = self.texts.get(section)
        if text is None:
            return self.of_zope
        if isinstance(section, _OtherPython):
            is_database = not section.types
        else:
            is_database = section.type.name == "zodb"
        return self.of_zope and is_database and key.lower() in _KEYS_OF_ZOPE

    def _is_outermost(self, parent: Any) -> bool:
        return parent not in self.texts and not isinstance(parent, _Skipped)

    def _is_storage(self, type_: str) -> bool:
        return type_ in self.schema.gettype("zodb.storage").getsubtypenames()

    def _start(self, parent: Any, type_: str, name: str | None) -> Any:
        if isinstance(parent, _Skipped):
            return parent
        if self.of_zope and type_ == "temporarystorage":
            self.importSchemaComponent("tempstorage")  # Zope's own schema imports it
        matcher, text = self._new_section(parent, type_, name)
        self.texts[matcher] = text
        text.lines.append(Line(f"<{type_} {name}>" if name else f"<{type_}>", *self.place))
        return matcher

    def _new_section(self, parent: Any, type_: str, name: str | None) -> tuple[Any, SectionText]:
        """Return the matcher and the text of a section that starts."""
        if isinstance(parent, _OtherPython):
            return _OtherPython(*parent.types, type_), self.texts[parent]
        if parent in self.texts:
            text = replace(self.texts[parent], values={})
        else:
            text = SectionText(type_, name or "", self.environment)
            self.outermost.append(text)
        if text.environment:
            text.imports += self._import_lines
            self._elsewhere = text
            return _OtherPython(), text
        matcher = super().startSection(parent, type_, name)
        used = {*text.imports, self._imported_by.get(type_)}
        lines = dict.fromkeys(self._imported_by.values())
        text.imports[:] = [line for line in lines if line in used]
        return matcher, text

    def endSection(self, parent: Any, type_: str, name: str | None, matcher: Any) -> None:  # noqa: N802
        if isinstance(matcher, _Skipped):
            return
        type_ = _TYPES.get(type_, type_)
        database = self._databases.get(matcher)
        if database is not None:
            self._end(database, type_, name, matcher)
            type_, matcher = "zodb", database
        if self._is_outermost(parent):
            name = self.texts[matcher].name or None
            self._elsewhere = None
        self._end(parent, type_, name, matcher)

    def _end(self, parent: Any, type_: str, name: str | None, matcher: Any) -> None:
        if not isinstance(matcher, _OtherPython):
            super().endSection(parent, type_, name, matcher)
        self.texts[matcher].lines.append(Line(f"</{type_}>", *self.place))

    def record_definition(self, name: str, text: str) -> None:
        """Record a definition that the parser has checked; the first one of a name holds."""
        self._replacements.setdefault(name, replaced(text, self._replacements))

    def record_value(self, matcher: Any, key: str, value: str) -> None:
        """Record the value of a key, which the parser has checked."""
        text = self.texts[matcher]
        if isinstance(matcher, _OtherPython):
            attribute = ".".join([*matcher.types, key.replace("-", "_")])
            if attribute.lower() == "environment":
                return
        else:
            attribute = _attribute(matcher.type, key)
        value = replaced(value, self._replacements)
        text.names |= references(value)
        text.lines.append(Line(f"{key} {value}".rstrip(), *self.place))
        text.values.setdefault(attribute, []).append(value)


class _Parser(ZConfigParser):  # type: ignore[misc]
    """A parser that reports to its loader, which ZConfig calls ``context``, as it reads."""

    __slots__ = ()

    def nextline(self) -> Any:
        line = super().nextline()
        self.context.place = (self.url, self.lineno)
        return line

    def replace(self, text: str) -> str:
        try:
            return str(super().replace(text))
        except ZConfig.SubstitutionSyntaxError as error:
            error.url, error.lineno = self.url, self.lineno  # ZConfig leaves them out
            raise

    def start_section(self, section: Any, rest: str) -> Any:
        if section not in self.context.texts:
            is_closed = rest.endswith("/") or rest.lower().split()[:1] == ["environment"]
            self.context.environment = "" if is_closed else self._environment_ahead(rest)
        return super().start_section(section, rest)

    def _environment_ahead(self, rest: str) -> str:
        """Return the ``environment`` of the section that begins here, "" if it has none."""
        here = self.file.tell()
        environment = ""
        for line, types in lines_in_sections(f"<{rest}>\n{self.file.read()}"):
            if len(types) > 1:
                continue
            if line.lstrip().startswith("</"):
                break
            pair = KEY_AND_VALUE.match(line.strip())
            if pair is not None and pair["key"].lower() == "environment":
                environment = self.replace(pair["value"] or "").strip().lower()
                break
        self.file.seek(here)
        return environment

    def handle_define(self, section: Any, rest: str) -> None:
        name, *text = rest.split(None, 1)
        if name.lower() in self.context.definitions:
            return
        super().handle_define(section, rest)
        self.context.record_definition(name.lower(), "".join(text))

    def handle_key_value(self, section: Any, rest: str) -> None:
        pair = KEY_AND_VALUE.match(rest)
        if pair is not None and self.context.is_skipped(section, pair["key"]):
            return
        super().handle_key_value(section, rest)
        assert pair is not None
        self.context.record_value(section, pair["key"], pair["value"] or "")


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
