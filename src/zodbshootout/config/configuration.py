"""Read the contenders, servers and environments of a configuration file.

The run defines names that the file can use.  ``$scratch`` is a directory that is removed when the
run ends.  For each server there are several names, such as one for its address.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ZConfig
from ZConfig.loader import ConfigLoader
from ZConfig.matcher import SectionValue
from ZConfig.substitution import substitute
from ZODB.config import ZODBDatabase

from zodbshootout.config.advice import SUBSTITUTION_ERRORS, TYPES_OF_RELSTORAGE, explained
from zodbshootout.config.pythons import Environment
from zodbshootout.config.references import references
from zodbshootout.config.sample_files import samples
from zodbshootout.config.source import DATABASE, EXTERNAL, ZOPE_DATABASE, Source
from zodbshootout.config.tree import Import, Item, Key, Position, Section, Tree
from zodbshootout.errors import UserError, suggestion
from zodbshootout.model.outcome import describe

SCRATCH = "scratch"
"""The name by which a file refers to the run's temporary directory."""

EMBEDDED = samples()["embedded"]
"""The file of the default configuration."""
NO_SECTION = Section("", "", Position(Path(), 0))
_KEYS_OF_ZOPE = frozenset({"class-factory", "connection-class", "container-class", "mount-point"})
"""Keys of a ``<zodb_db>`` that concern Zope, not the storage; the reader skips them."""
_WORD = re.compile(r"\w[\w.-]*")
"""The name of a key."""


class ServerSection:
    """A section that describes a server.

    :mod:`zodbshootout.servers` can start it, unless it is an ``<externalserver>``.
    """

    def __init__(self, section: Any) -> None:
        self.config = section
        """The section as ZConfig has read it: its keys are attributes, with ``_`` for ``-``."""
        self.name: str = section.getSectionName()
        """The section's name."""
        self.kind: str = section.getSectionType()
        """The section's type, such as ``zeoserver``."""
        self.text = NO_SECTION
        self.programs: str | None = getattr(section, "programs", None)
        """The directory of the server's programs; ``None`` if they are in the usual places."""
        self.directory: str | None = getattr(section, "directory", None)
        """The directory in which the server's data stay after the run; ``None`` if none stay."""
        self.listen: str | None = getattr(section, "listen", None)
        """The local address on which the server listens; ``None`` for the default."""
        self.run_as: str | None = getattr(section, "run_as", None)
        """The user whose rights the server gets if root starts it."""
        self.rtt: float | None = getattr(section, "rtt", None)
        """Seconds of a round trip between clients and the server; ``None`` if not set.  The option
        ``--rtt`` then sets it."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The server's settings, by name."""
        section = self.config.settings
        return section.config.values if section is not None else {}


class Settings:
    """A ``<settings>`` section."""

    def __init__(self, section: Any) -> None:
        self.config = section


@dataclass(frozen=True)
class Configuration:
    """The sections of a file."""

    contenders: Sequence[tuple[Section, Any]]
    """Each contender's section, in file order, with the object that ZConfig made of the section, or
    with ``None`` if another Python should read the section or none can."""
    servers: Sequence[ServerSection]
    """The private servers, which the run starts."""
    external: Sequence[ServerSection]
    """The servers that run already."""
    environments: Mapping[str, Environment]
    names: Mapping[str, str]
    """The names that the run defines."""
    texts: Mapping[Any, Section]
    """The file's sections, by ZConfig's matchers; see :meth:`text_of`."""
    flaws: Mapping[str, UserError]
    """Why contenders cannot be read for want of a package, by their names.  It matters only for
    those that the run chooses."""

    def text_of(self, section: Any) -> Section:
        """Return a section's text; it is empty if the section is not in the file."""
        matcher = section.config.getSectionMatcher()
        return self.texts.get(matcher) or NO_SECTION


def parse(source: Source, names: Mapping[str, str]) -> Configuration:
    """Return the sections of a configuration, but open no storage.

    Values may refer to *names*.

    :raises UserError: if the configuration is wrong; the message names the line
    """
    schema = ZConfig.loadSchema(str(Path(__file__).with_name("schema.xml")))
    reader = _Reader(schema, names, of_zope=source.is_of_zope)
    try:
        parsed = reader.read(source.tree)
    except ZConfig.ConfigurationError as error:
        cause = reader.missing_package(error) or error
        raise UserError(explained(cause, source, reader.schema, names)) from error
    except Exception as error:  # imported packages may raise anything
        raise UserError(f"{source.path}: {describe(error)}") from error
    for section in parsed.databases:
        if isinstance(section, ZODBDatabase) and section.config.storage is None:
            empty = reader.sections[section.config.getSectionMatcher()]
            flaw = f"{empty.start} contains no storage, such as <filestorage>"
            raise UserError(f"{empty.place}: {flaw}")
        if isinstance(section, ZODBDatabase):
            _check_numbers(reader.sections[section.config.getSectionMatcher()], section.config)
    made = {database.config.getSectionMatcher(): database for database in parsed.databases}
    contenders = [
        (section, made.get(matcher))
        for section, matcher in reader.outermost
        if matcher is None or matcher in made
    ]
    environments = {environment.name: environment for environment in parsed.environments}
    _check_sections_of_others([section for section, _ in contenders])
    for server in parsed.servers:
        server.text = reader.sections[server.config.getSectionMatcher()]
    private = [server for server in parsed.servers if server.kind != EXTERNAL]
    external = [server for server in parsed.servers if server.kind == EXTERNAL]
    flaws = {
        name: UserError(explained(error, source, reader.schema, names))
        for name, error in reader.flaws.items()
    }
    return Configuration(contenders, private, external, environments, names, reader.sections, flaws)


class _Reader(ConfigLoader):  # type: ignore[misc]
    """A loader that passes a tree to ZConfig, which checks it and makes objects of its sections."""

    def __init__(self, schema: Any, names: Mapping[str, str], *, of_zope: bool) -> None:
        """Define the run's *names*; if *of_zope* is true, skip what only Zope knows."""
        super().__init__(schema)
        self.of_zope = of_zope
        self.sections: dict[Any, Section] = {}
        """The section for each ZConfig matcher; ZConfig's objects know only their matchers."""
        self.outermost: list[tuple[Section, Any]] = []
        """Each outermost section with its matcher, or with ``None`` if another Python should read
        it, or none can."""
        self.flaws: dict[str, ZConfig.ConfigurationError] = {}
        """Why contenders cannot be read for want of a package, by their names."""
        self.failed_imports: list[ZConfig.ConfigurationError] = []
        """An error for each imported package that this Python does not have."""
        self._names = names
        self._definitions: dict[str, Key] = {}
        self._environments: list[str] = []
        self._imports: list[Import] = []
        self._imported_by: dict[str, Import] = {}
        """For each imported section type, the import that defines it."""

    def read(self, tree: Tree) -> Any:
        """Return ZConfig's object for a tree; an error has the path and the line."""
        if tree.errors:
            raise tree.errors[0]
        for definition in tree.definitions:
            if definition.name in self._names:
                raise _error(f"cannot redefine {definition.name!r}", definition.place)
            with suppress(ZConfig.SubstitutionReplacementError):  # the definition may be unused
                self._value(definition)
        self._definitions = {key.name: key for key in reversed(tree.definitions)}
        self._environments = [s.name for s in tree.root.sections if s.type == "environment"]
        root = self.createSchemaMatcher()
        for item in tree.root.items:
            if isinstance(item, Section):
                self._read_outermost(root, item)
            elif not (self.of_zope and isinstance(item, Key) and _WORD.fullmatch(item.name)):
                self._feed(root, item)
        # A failed import may be for another Python, or for sections that are skipped.
        elsewhere = any(section.environment for section, _ in self.outermost)
        if self.failed_imports and not (self.of_zope or elsewhere or self.flaws):
            raise self.failed_imports[0]
        with self._placed(tree.root.place):
            return root.finish()

    def missing_package(
        self, error: ZConfig.ConfigurationError
    ) -> ZConfig.ConfigurationError | None:
        """Return the failed import that may have caused an error, or ``None``."""
        if "unknown type name" not in str(error):
            return None
        return next(iter(self.failed_imports), None)

    def _read_outermost(self, root: Any, section: Section) -> None:
        is_known = section.type in {ZOPE_DATABASE, *self.schema.gettypenames()}
        if self.of_zope and (section.type, section.name) == ("environment", ""):
            return
        if not (section.is_server or section.type == "environment"):
            section = self._without_our_keys(section)
        if section.environment:
            self._keep_for_other_python(section)
        elif is_known or not self.of_zope:
            database = self._as_database(section)
            try:
                matcher = self._add_section(root, database)
            except ZConfig.ConfigurationError as error:
                missing = self.missing_package(error)
                if missing is None or database.type != DATABASE or not database.name:
                    raise
                self.flaws[database.name] = missing
                self.outermost.append((database, None))
                return
            used = self._imports_of(database)
            imports = tuple(item for item in self._imports if item in used)
            database = replace(database, imports=imports)
            self.sections[matcher] = database
            self.outermost.append((database, matcher))

    def _without_our_keys(self, section: Section) -> Section:
        """Return a contender's section without our keys, which ZConfig would refuse."""
        ours = [key for key in section.keys if key.name.lower() in {"environment", "sql"}]
        environments = [key for key in ours if key.name.lower() == "environment"]
        return replace(
            section,
            items=[item for item in section.items if item not in ours],
            environment=self._environment(environments[0]) if environments else "",
            sql=tuple(self._value(key) for key in ours if key not in environments),
        )

    def _environment(self, key: Key) -> str:
        name = self._value(key).strip().lower()
        if name not in self._environments:
            defined = self._environments
            advice = suggestion(name, defined) if defined else "no section defines one"
            raise _error(f"no environment {name!r}; {advice}", key.place)
        return name

    def _keep_for_other_python(self, section: Section) -> None:
        database = self._as_database(section)
        # Leave out imports whose types are unused: the other Python may lack their packages.
        unused = {*self._imported_by.values()} - self._imports_of(database)
        imports = tuple(item for item in self._imports if item not in unused)
        database = replace(database, imports=imports)
        for inner in database.walk():
            for key in inner.keys:
                self._value(key)
        self.outermost.append((database, None))

    def _imports_of(self, section: Section) -> set[Import | None]:
        """Return the imports that define the types of a section and of its inner sections."""
        return {self._imported_by.get(inner.type) for inner in section.walk()}

    def _as_database(self, section: Section) -> Section:
        """Return an outermost section; a database of Zope, or a storage, becomes a ``<zodb>``."""
        if not self.of_zope and section.type in TYPES_OF_RELSTORAGE:
            self._import(Import("relstorage", section.place))  # as zodbconvert's schema does
        if section.type in self.schema.gettype("zodb.storage").getsubtypenames():
            name = section.name or section.type
            return replace(section, type=DATABASE, name=name, items=[section])
        if section.type not in {DATABASE, ZOPE_DATABASE}:
            return section
        items = section.items
        if self.of_zope:
            items = [
                item
                for item in items
                if not (isinstance(item, Key) and item.name.lower() in _KEYS_OF_ZOPE)
            ]
            if any(inner.type == "temporarystorage" for inner in section.walk()):
                items = [Import("tempstorage", section.place), *items]  # as Zope's schema does
        return replace(section, type=DATABASE, name=section.name or DATABASE, items=items)

    def _feed(self, matcher: Any, item: Item) -> None:
        if isinstance(item, Section):
            self._add_section(matcher, item)
        elif isinstance(item, Import):
            self._import(item)
        else:
            value, place = self._value(item), item.place
            with self._placed(place):
                matcher.addValue(item.name, value, (place.number, None, place.path))

    def _add_section(self, parent: Any, section: Section) -> Any:
        """Pass a section to ZConfig, and return its matcher."""
        with self._placed(section.place):
            matcher = self.startSection(parent, section.type, section.name or None)
        self.sections[matcher] = section
        for item in section.items:
            self._feed(matcher, item)
        with self._placed((section.end or [section.place])[0]):
            self.endSection(parent, section.type, section.name or None, matcher)
        return matcher

    def _import(self, item: Import) -> None:
        self._imports.append(item)
        before = set(self.schema.gettypenames())
        try:
            self.importSchemaComponent(item.package)
        except ZConfig.ConfigurationError as error:
            error.url, error.lineno = item.place  # not in the package's component.xml
            if not isinstance(error, ZConfig.SchemaResourceError):
                raise
            self.failed_imports.append(error)
        new = set(self.schema.gettypenames()) - before
        self._imported_by.update(dict.fromkeys(new, item))

    def _value(self, key: Key) -> str:
        """Return the value of a key, with the run's names replaced by their values."""
        for name in references(key.written) & self._definitions.keys():
            self._value(self._definitions.pop(name))  # check it once
        try:
            return str(substitute(key.value, self._names))
        except SUBSTITUTION_ERRORS as error:
            error.url, error.lineno = key.place
            raise

    @contextmanager
    def _placed(self, place: Position) -> Iterator[None]:
        """Add a place to a ZConfig error that has no place.

        If the error has a section as its value, add the place of this section.  Otherwise, add
        *place*.
        """
        try:
            yield
        except ZConfig.ConfigurationError as error:
            if not error.url or (getattr(error, "lineno", None) or -1) < 0:
                value = getattr(error, "value", None)
                if isinstance(value, SectionValue):
                    place = self.sections[value.getSectionMatcher()].place
                error.url, error.lineno = place
            raise


def _check_numbers(section: Section, settings: Any) -> None:
    """Refuse numbers in a database's section that ZConfig accepts but ZODB cannot use."""
    for key in section.keys:
        value = getattr(settings, key.name.lower().replace("-", "_"), None)
        if isinstance(value, int) and not 0 <= value <= sys.maxsize:
            flaw = "negative" if value < 0 else "too large"
            raise UserError(f"{key.place}: {key.name}: {value} is {flaw}")


def _error(message: str, place: Position) -> ZConfig.ConfigurationError:
    return ZConfig.ConfigurationSyntaxError(message, *place)


def _check_sections_of_others(contenders: Sequence[Section]) -> None:
    """Check the sections that other Pythons will read, because ZConfig has not read them here."""
    names = [section.name for section in contenders]
    for section in contenders:
        if not section.environment:
            continue
        where = section.place
        if not section.name:
            raise UserError(f"{where}: this section needs a name, as in <{section.type} NAME>")
        if names.count(section.name) > 1:
            raise UserError(
                f"{where}: two sections are called {section.name!r}; give each a different name"
            )
