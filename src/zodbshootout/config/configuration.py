"""Read a configuration file: contenders, servers, environments.

The run defines names in every file: ``$scratch``, a directory that is removed when the run ends,
and for each server section names such as that of the server's address.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

import ZConfig
from ZODB.config import ZODBDatabase

from zodbshootout.client.masking import Mask
from zodbshootout.config.loader import ZOPE_DATABASE, SectionText, TextLoader, lines_in_sections
from zodbshootout.config.pythons import Environment
from zodbshootout.config.secrets import (
    ENVIRONMENT_REFERENCE,
    SECRET_KEY,
    in_named_files,
    of_configuration,
)
from zodbshootout.config.statements import (
    Kind,
    Statement,
    references,
    replaced,
    statements_of,
    unmarked,
)
from zodbshootout.errors import UserError, close_to, suggestion
from zodbshootout.model.outcome import describe

SCRATCH = "scratch"
"""The name of the run's temporary directory in a file."""

EMBEDDED = Path(__file__).with_name("embedded.conf")
"""The default configuration."""

MAX_SIZE = 2**20
"""The most characters of a configuration: a database of gigabytes is not read."""
_BINARY = re.compile(r"FS\d\d|[^\0]*\0")
"""The beginning of a FileStorage, which may be text, or a character that no text has."""

_RULES: Mapping[str, str] = {
    r"None is not an allowed name for '.*' sections": (
        "this section needs a name, as in <{section} NAME>"
    ),
    r"section names must not be re-used within the same container:'(?P<name>[^']+)'": (
        "a second section is called {name!r}; give each a name of its own"
    ),
    r"error opening file (?P<path>.+?): \[Errno \d+\] (?P<reason>[^:]+)": (
        "cannot read {path}: {reason}"
    ),
    r"'\$\{\w+' not followed by '}'": (
        "${{ begins a name, as in ${{NAME}}; write $$ for a plain $, and its value in place of "
        "buildout's ${{SECTION:OPTION}}"
    ),
}
"""Messages that replace those of ZConfig, by the patterns that ZConfig's match."""

SUBSTITUTION_ERRORS = (ZConfig.SubstitutionSyntaxError, ZConfig.SubstitutionReplacementError)
"""ZConfig's errors about a ``$``."""


class _Package(NamedTuple):
    """A package with types of sections, which ``%import`` makes known."""

    distribution: str
    """Its name on PyPI."""
    types: tuple[str, ...]
    """The types that often stand in a file without the import."""


_PACKAGES: Mapping[str, _Package] = {
    "ZEO": _Package("ZEO", ("clientstorage",)),
    "cipher.encryptingstorage": _Package("cipher.encryptingstorage", ("encryptingstorage",)),
    "neo.client": _Package("neoppod", ("neostorage",)),
    "newt.db": _Package("newt.db", ("newt", "newtdb")),
    "relstorage": _Package(
        "RelStorage", ("relstorage", "postgresql", "mysql", "oracle", "sqlite3")
    ),
    "tempstorage": _Package("tempstorage", ("temporarystorage",)),
    "zc.beforestorage": _Package("zc.beforestorage", ("before",)),
    "zc.zlibstorage": _Package("zc.zlibstorage", ("zlibstorage", "serverzlibstorage")),
    "zc.zrs": _Package("zc.zrs", ("zrs",)),
    "zodb_pgjsonb": _Package("zodb-pgjsonb", ("pgjsonb",)),
    "zodb_s3blobs": _Package("zodb-s3blobs", ("s3blobstorage",)),
    "zodbshootout.mysql": _Package("zodbshootout", ("mysql-or-mariadb",)),
    "zodbshootout.newt": _Package("zodbshootout", ("newt-with-text-index",)),
    "zodbshootout.recording": _Package("zodbshootout", ("recording",)),
}
"""By the names in ``%import``.  For another package no distribution is suggested: its name may be
misspelt, and somebody may have uploaded something under it."""
_DEFINED = re.compile(r"^[ \t]*%define[ \t]+(\S+)", re.MULTILINE)
_ZCONFIG_LINE = re.compile(r"\s*($|#|%|</?[\w.-]|\w[\w.-]*(\s|$))")
"""The beginning of a line outside of sections, but for mistakes in them."""
_COMMENT = "a comment has a line of its own"
_NOT_AN_INT = re.compile(r"invalid literal for int\(\) with base 10: ('.*')$")
_WITH_UNIT = re.compile(r"\d+\s*[kmg]i?b?", re.IGNORECASE)


class ServerSection:
    """A section that describes a server, which :mod:`zodbshootout.servers` can start."""

    def __init__(self, section: Any) -> None:
        self.config = section
        self.name: str = section.getSectionName()
        self.kind: str = section.getSectionType()
        """The section's type, such as ``zeoserver``."""
        self.text = SectionText()
        self.programs: str | None = getattr(section, "programs", None)
        """The directory of the server's programs; ``None`` if the usual places have them."""
        self.directory: str | None = getattr(section, "directory", None)
        """The directory in which the server keeps its data after the run; ``None`` to keep none."""
        self.listen: str | None = getattr(section, "listen", None)
        """The address of this host on which the server listens."""
        self.run_as: str | None = getattr(section, "run_as", None)
        """The user that the server runs as, if root starts it."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the server, by name."""
        section = self.config.settings
        return section.config.values if section is not None else {}


class Settings:
    """A ``<settings>`` section."""

    def __init__(self, section: Any) -> None:
        self.config = section


@dataclass(frozen=True)
class Configuration:
    """The sections of a file."""

    contenders: Sequence[tuple[SectionText, Any]]
    """The sections such as ``<zodb NAME>``, in the order of the file: their texts and what ZConfig
    makes of them, ``None`` if another Python is to read them."""
    servers: Sequence[ServerSection]
    environments: Mapping[str, Environment]
    """By their names."""
    names: Mapping[str, str]
    """The names that the run defines."""
    texts: Mapping[Any, SectionText]
    """The text of each section, by the section's matcher."""
    mask: Mask
    """Hides the secrets in the file."""

    def text_of(self, section: Any) -> SectionText:
        """Return the text of a section, an empty one if the section is not in the file."""
        matcher = section.config.getSectionMatcher()
        return self.texts.get(matcher) or SectionText()


@dataclass(frozen=True)
class Source:
    """The text of a configuration, and its file."""

    path: Path
    text: str
    definitions: Mapping[str, str] = field(default_factory=dict)
    """Values that replace those which the file defines, by name."""

    @cached_property
    def statements(self) -> Sequence[Statement]:
        """The statements of the file and of those that it includes."""
        return statements_of(self.text, self.path, self.definitions)

    @property
    def server_names(self) -> tuple[str, ...]:
        """The names of the server sections."""
        return tuple(
            statement.value
            for statement in self.statements
            if statement.kind is Kind.SECTION
            and statement.key.endswith("server")
            and statement.value
        )

    @property
    def is_of_zope(self) -> bool:
        """Whether it is Zope's configuration, or includes a part of one."""
        return any(
            statement.kind is Kind.SECTION and statement.key == ZOPE_DATABASE
            for statement in self.statements
        )

    @property
    def used_names(self) -> frozenset[str]:
        """The names that the text refers to."""
        return frozenset(chain.from_iterable(references(text) for _, _, text, _ in self.statements))

    @property
    def environment_names(self) -> frozenset[str]:
        """The environment variables that the text refers to."""
        named = (in_named_files(unmarked(statement.resolved)) for statement in self.statements)
        values = (statement.value for statement in chain(self.statements, *named))
        return frozenset(chain.from_iterable(map(ENVIRONMENT_REFERENCE.findall, values)))


def read_source(path: Path) -> Source:
    """Read a configuration file.

    :raises UserError: if it cannot be read, or is something else, such as a FileStorage
    """
    try:
        text = _beginning(path)
    except FileNotFoundError:
        raise UserError(
            f"no such file: {path} (with no file, an embedded default is measured)"
        ) from None
    except UnicodeError:
        # zodburi takes a path as it is, and unquotes nothing.
        uri = f"file://{path.absolute()}"
        raise UserError(
            f"cannot read {path}: it is not UTF-8 text; if it is a FileStorage write {uri}"
        ) from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if len(text) > MAX_SIZE:
        raise UserError(
            f"cannot read {path}: it is larger than 1 MB, too large for a configuration"
        )
    return Source(path, text)


def _beginning(path: Path) -> str:
    """Return the text of a file, of which no more than one character exceeds :data:`MAX_SIZE`.

    :raises UnicodeError: if it is not text
    """
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(MAX_SIZE + 1)
    if _BINARY.match(text):
        raise UnicodeError
    return text


def parse(source: Source, names: Mapping[str, str]) -> Configuration:
    """Make sections of a configuration's text, with *names* defined; open nothing.

    :raises UserError: if it is wrong, with the file, the line and what is allowed there
    """
    schema = ZConfig.loadSchema(str(Path(__file__).with_name("schema.xml")))
    loader = TextLoader(schema, names, source.definitions, of_zope=source.is_of_zope)
    url = source.path.absolute().as_uri()
    try:
        parsed, _ = loader.loadFile(io.StringIO(source.text), url)
        _check_imports(loader)
    except ZConfig.ConfigurationError as error:
        # A missing package may be the cause of an unknown type.
        failed = loader.failed_imports if "unknown type name" in str(error) else ()
        first = next(iter(failed), error)
        if isinstance(first, ZConfig.SubstitutionSyntaxError):  # ZConfig gives it no place
            first.url, first.lineno = loader.place
        raise UserError(explained(first, source, loader.schema, names)) from error
    except RecursionError:
        raise UserError(
            f"{source.path}: it includes itself, or a file that does; see its %include"
        ) from None
    except Exception as error:  # imported packages may raise anything
        raise UserError(f"{source.path}: {describe(error)}") from error
    for section in parsed.databases:
        if isinstance(section, ZODBDatabase) and section.config.storage is None:
            raise UserError(
                f"{source.path}: <zodb {section.name}> holds no storage, such as <filestorage>"
            )
    sections = {
        loader.texts[database.config.getSectionMatcher()]: database for database in parsed.databases
    }
    contenders = [
        (text, sections.get(text))
        for text in loader.outermost
        if text.environment or text in sections
    ]
    environments = {environment.name: environment for environment in parsed.environments}
    _check_environments([text for text, _ in contenders], environments)
    for server in parsed.servers:
        server.text = loader.texts[server.config.getSectionMatcher()]
    # Without secrets of the environment, so that a file has the same text everywhere.
    mask = Mask(of_configuration(source.statements, names, {}))
    return Configuration(contenders, parsed.servers, environments, names, loader.texts, mask)


def _check_imports(loader: TextLoader) -> None:
    """Raise the error of the first failed import.

    Another Python may have the package, and Zope may import it for a section that is skipped.
    """
    may_be_missing = loader.of_zope or any(text.environment for text in loader.outermost)
    if loader.failed_imports and not may_be_missing:
        raise loader.failed_imports[0]


def _check_environments(contenders: Sequence[SectionText], environments: Collection[str]) -> None:
    """Check the sections for other Pythons as ZConfig checks those for this one."""
    names = [text.name for text in contenders]
    for text in contenders:
        if not text.environment:
            continue
        where = f"{path_of(text.lines[0].url)}:{text.lines[0].number}"
        if text.environment not in environments:
            defined = list(environments)
            advice = suggestion(text.environment, defined) if defined else "no section defines one"
            raise UserError(f"{where}: no environment {text.environment!r}; {advice}")
        if text.type == "zodburi":
            _check_uri(text, where)
        if not text.name:
            raise UserError(f"{where}: this section needs a name, as in <{text.type} NAME>")
        if names.count(text.name) > 1:
            raise UserError(
                f"{where}: a second section is called {text.name!r}; give each a name of its own"
            )


def _check_uri(text: SectionText, where: str) -> None:
    """Check a ``<zodburi>`` section: the type is zodbshootout's, unknown to another Python."""
    for key in text.values:
        if key.lower() != "uri":
            raise UserError(f"{where}: {key!r} is not a known key name in <zodburi>; uri is")
    if not text.values:
        raise UserError(f"{where}: <zodburi> needs a uri")


def path_of(url: str) -> Path:
    """Return the path of a file from ZConfig's URL for it."""
    return Path(url2pathname(urlsplit(url).path))


def explained(
    error: ZConfig.ConfigurationError, source: Source, schema: Any, names: Mapping[str, str]
) -> str:
    """Return an error of ZConfig's in one line, with its place and what to do about it.

    The *schema* includes the types that were imported before the error; *names* are those that the
    run defines.
    """
    url, number = getattr(error, "url", None), getattr(error, "lineno", None) or 0
    path, text = source.path, source.text
    if url not in {None, path.absolute().as_uri()}:
        path = path_of(url)
        with suppress(OSError, UnicodeDecodeError):
            text = path.read_text(encoding="utf-8-sig")
    where = f"{path}:{number}" if number > 0 else str(path)
    lines = list(lines_in_sections(text))
    line, sections = lines[number - 1] if 0 < number <= len(lines) else ("", ())
    if not (sections or _ZCONFIG_LINE.match(line)) or line.lstrip().startswith(("<?", "<!")):
        return f"{where}: this is not a ZConfig file, in which a contender is a section <zodb NAME>"
    if sections[:1] == ("zeo",):
        return (
            f"{where}: this is the configuration of a ZEO server; for a private one write its "
            "storages into <zeoserver NAME>, for one that runs give a zeo:// URI"
        )
    key, value = _key_and_value(line)
    if flaw := _flaw_of_secret(error, key, value, source, names):
        return f"{where}: {key}: {flaw}"
    message = " ".join(str(getattr(error, "message", None) or error).split())
    if isinstance(error, ZConfig.DataConversionError):
        message = not_converted(key, str(error.value), message)
        message = f"{key}: {message}" if key else message
    elif message.startswith("malformed section") and "#" in line:
        message = f"{message}; {_COMMENT}"
    section = sections[-1] if sections else ""
    return f"{where}: {_with_advice(message, text, section, schema, names)}"


def _key_and_value(line: str) -> tuple[str, str]:
    """Return the key of a line, with the name in a definition, and its value; "" if it has none."""
    words = line.split(None, 2)
    if not words or words[0].startswith("<"):
        return "", ""
    length = 2 if words[0] == "%define" else 1
    return " ".join(words[:length]), "".join(line.split(None, length)[length:]).rstrip()


def _flaw_of_secret(
    error: ZConfig.ConfigurationError,
    key: str,
    value: str,
    source: Source,
    names: Mapping[str, str],
) -> str:
    """Return what is wrong with a value that holds a secret, without any part of the value.

    Return "" if it holds none, or if ZConfig's message shows nothing of it.
    """
    unusable = "this value cannot be used; a $ in it is written $$"
    if isinstance(error, ZConfig.DataConversionError):
        is_secret = SECRET_KEY.search(key) and not ENVIRONMENT_REFERENCE.fullmatch(value)
        return unusable if is_secret else ""
    if not isinstance(error, SUBSTITUTION_ERRORS):
        return ""
    secrets = of_configuration(source.statements, names, {})
    mask = Mask(secrets)
    if all(mask(form) == form for form in (value, replaced(value, {}))):
        return ""
    name = getattr(error, "name", "")
    variable = f"$({name})"
    if variable in value:
        is_part = any(variable in secret for secret in secrets - {variable})
        return f"{unusable}, and every environment variable in it has to be set" if is_part else ""
    definitions = (s.key for s in source.statements if s.kind is Kind.DEFINITION)
    close = close_to(name, [*names, *definitions]) if name else []
    return f"{unusable}; did you mean the name {close[0]}?" if close else unusable


def not_converted(key: str, value: str, message: str) -> str:
    """Return the *message* about the *value* of a *key*, with what is wrong with it."""
    message = _NOT_AN_INT.sub(r"\1 is not a whole number", message)
    if re.search(r"\s#", value):
        return f"{message}; {_COMMENT}"
    if value.startswith("="):
        return f"{message}; write it without ="
    if _WITH_UNIT.fullmatch(value):
        what = "a number of megabytes" if key.endswith(("-mb", "_mb")) else "a number"
        return f"{message}; write {what} without a unit"
    return message


def _with_advice(
    message: str, text: str, section: str, schema: Any, names: Mapping[str, str]
) -> str:
    """Return a message of ZConfig's with what is allowed in the *section*, or what to type."""
    for pattern, advice in _RULES.items():
        if match := re.search(pattern, message):
            return advice.format(section=section, **match.groupdict())
    if match := re.search(r"could not load package (?P<name>[\w.]+)", message):
        return _not_installed(match["name"])
    if match := re.search(r"no replacement for '(?P<name>[^']+)'", message):
        return _undefined(match["name"], text, names)
    if match := re.search(r"unknown type name: '(?P<name>[^']+)'", message):
        return f"{message}; {_type_advice(match['name'], schema)}"
    if match := re.search(r"'(?P<name>[^']+)' is not a known key name", message):
        return f"{message} {_key_advice(match['name'], section, schema)}"
    return message


def _key_advice(name: str, section: str, schema: Any) -> str:
    if section not in schema.gettypenames():
        return "outside of a section"
    keys = sorted(key for key, _ in schema.gettype(section) if key)
    return f"in <{section}>; {suggestion(name, keys)}"


def _type_advice(name: str, schema: Any) -> str:
    for package, (_, types) in _PACKAGES.items():
        if name in types:
            return f"write '%import {package}' above it"
    # Abstract types have a dot in their names.
    return suggestion(name, sorted(known for known in schema.gettypenames() if "." not in known))


def _not_installed(package: str) -> str:
    if package in _PACKAGES:
        name = _PACKAGES[package].distribution
        return f"package {package} is not installed; install it: pip install {name}"
    close = close_to(package, _PACKAGES)
    advice = f"; did you mean {close[0]}?" if close else ""
    return f"package {package} is not installed{advice}"


def _undefined(name: str, text: str, names: Iterable[str]) -> str:
    if re.search(rf"\$\(\s*{re.escape(name)}\s*\)", text):
        return f"the environment variable {name} is not set; set it: export {name}=..."
    if close := close_to(name, [*names, *_DEFINED.findall(text)]):
        return f"${name} is not defined; did you mean ${close[0]}?"
    return f"${name} is not defined; write '%define {name} VALUE' above it"
