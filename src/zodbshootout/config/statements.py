"""The statements of a configuration, as ZConfig's parser finds them in a file without a schema.

ZConfig reads a file with its schema only after the run has defined names.  The statements are known
before: which servers the file has, which names it refers to, and which values are secret.
"""

from __future__ import annotations

import enum
import io
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import ZConfig
from ZConfig.cfgparser import ZConfigParser
from ZConfig.loader import BaseLoader
from ZConfig.substitution import substitute

KEY_AND_VALUE = re.compile(r"(?P<key>[^\s()]+)\s*(?P<value>\S.*)?")
_REFERENCE = re.compile(
    r"\$(?:(?P<other>\$|\([a-z_]\w*\))|\{(?P<braced>[a-z_]\w*)\}|(?P<bare>[a-z_]\w*))",
    re.IGNORECASE | re.ASCII,
)
"""ZConfig's reference to a name, ``$name`` or ``${name}``, or to an environment variable,
``$(NAME)``, or its ``$$`` for a single ``$``."""
BEGIN, END = "\ue000", "\ue001"
"""Marks around the value of a reference: characters that have no meaning, for private use."""


def replaced(text: str, values: Mapping[str, str]) -> str:
    """Return *text* with *values* in place of references.

    The keys are names in lower case, ``(NAME)`` for an environment variable, and ``$`` for ``$$``.
    A name without a value becomes ``${name}``; what else has none is unchanged.
    """

    def value(reference: re.Match[str]) -> str:
        name = (reference["braced"] or reference["bare"] or "").lower()
        return values.get(name or reference["other"], f"${{{name}}}" if name else reference[0])

    return _REFERENCE.sub(value, text)


def references(text: str) -> set[str]:
    """Return the names that a value refers to, in lower case."""
    names = (match["braced"] or match["bare"] for match in _REFERENCE.finditer(text))
    return {name.lower() for name in names if name}


def marked(value: str) -> str:
    """Return the *value* of a reference between marks."""
    return f"{BEGIN}{value}{END}"


def unmarked(text: str) -> str:
    """Return *text* without marks."""
    return text.replace(BEGIN, "").replace(END, "")


class Kind(enum.Enum):
    """Kinds of statements."""

    SECTION = "section"
    """The key is the section's type, and the value its name."""
    DEFINITION = "definition"
    SETTING = "setting"
    DIRECTIVE = "directive"
    """``%include`` or ``%import``; it has no key."""


class Statement(NamedTuple):
    """A line of a configuration, comments and the ends of sections excepted."""

    kind: Kind
    key: str
    value: str
    """The value as it is written."""
    resolved: str
    """The value with each definition replaced, between marks.

    References to names of the run and to environment variables are left.
    """


def statements_of(
    text: str, path: Path, definitions: Mapping[str, str] | None = None
) -> list[Statement]:
    """Return the *definitions*, then the statements of a file and of those that it includes.

    *definitions* stand in for those of the same names in the file.  What ZConfig cannot read is
    left out: it reports that when it reads the file with a schema.
    """
    loader = _Loader()
    for name, value in (definitions or {}).items():
        loader.define(name, value)
    loader.loadFile(io.StringIO(text), path.absolute().as_uri())
    return loader.statements


class _Loader(BaseLoader):  # type: ignore[misc]
    """Opens files for parsers, and collects what the parsers find."""

    def __init__(self) -> None:
        super().__init__()
        self.statements: list[Statement] = []
        self._values: dict[str, str] = {}
        """The definitions, marked, by name."""
        self._open: list[str] = []
        """The URLs of the file that is being read and of those that include it."""

    def loadResource(self, resource: Any) -> None:  # noqa: N802
        parser = _Parser(resource, self)
        self._open.append(resource.url)
        done = False
        while not done:
            with suppress(ZConfig.ConfigurationError):  # go on with the next line
                parser.parse(None)
                done = True
        self._open.pop()

    def includeConfiguration(self, section: Any, url: str, defines: Any) -> None:  # noqa: N802, ARG002
        if url in self._open:
            return
        try:
            resource = self.openResource(url)
        except Exception:  # noqa: BLE001 - a package that is to have the file may raise anything
            return
        with resource:
            self.loadResource(resource)

    def resolve(self, value: str) -> str:
        return replaced(value, self._values)

    def record(self, kind: Kind, key: str, value: str) -> None:
        self.statements.append(Statement(kind, key, value, self.resolve(value)))

    def define(self, name: str, value: str) -> None:
        """Record a definition; the first one of a name holds."""
        self.record(Kind.DEFINITION, name, value)
        self._values.setdefault(name, marked(self.resolve(value)))


class _Parser(ZConfigParser):  # type: ignore[misc]
    """A parser that records statements in its loader, which ZConfig calls ``context``."""

    __slots__ = ()

    def start_section(self, section: Any, rest: str) -> Any:
        type_, _, name = " ".join(rest.rstrip("/").split()).partition(" ")
        self.context.record(Kind.SECTION, type_.lower(), name.lower())
        return section

    def end_section(self, section: Any, rest: str) -> Any:  # noqa: ARG002
        return section

    def handle_key_value(self, section: Any, rest: str) -> None:  # noqa: ARG002
        pair = KEY_AND_VALUE.match(rest)
        if pair is not None:
            self.context.record(Kind.SETTING, pair["key"], pair["value"] or "")

    def handle_define(self, section: Any, rest: str) -> None:  # noqa: ARG002
        name, *value = rest.split(None, 1)
        self.context.define(name.lower(), "".join(value))

    def handle_import(self, section: Any, rest: str) -> None:  # noqa: ARG002
        self.context.record(Kind.DIRECTIVE, "", rest)

    def handle_include(self, section: Any, rest: str) -> None:
        self.context.record(Kind.DIRECTIVE, "", rest)
        super().handle_include(section, rest)

    def replace(self, text: str) -> str:
        return str(substitute(unmarked(self.context.resolve(text)), {}))
