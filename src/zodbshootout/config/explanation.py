"""Completes ZConfig's messages with what is allowed, and what to type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import ZConfig

from zodbshootout.config.loader import lines_in_sections
from zodbshootout.config.secrets import ENVIRONMENT_REFERENCE
from zodbshootout.errors import close_to, suggestion

_RULES: Mapping[str, str] = {
    r"None is not an allowed name for '.*' sections": (
        "this section needs a name, as in <{section} NAME>"
    ),
    r"section names must not be re-used within the same container:'(?P<name>[^']+)'": (
        "a second section is called {name!r}; give each a name of its own"
    ),
}
"""Messages in place of ZConfig's, by patterns of these."""

_PACKAGES: Mapping[str, str] = {
    "newt.db": "newt.db",
    "relstorage": "RelStorage",
    "tempstorage": "tempstorage",
    "ZEO": "ZEO",
    "zc.zlibstorage": "zc.zlibstorage",
}
"""PyPI names by package.  A name that may be misspelt is not suggested: somebody else may have
uploaded something under it."""
_DEFINED = re.compile(r"^[ \t]*%define[ \t]+(\S+)", re.MULTILINE)
_IMPORTED_FROM: Mapping[str, str] = {
    "relstorage": "relstorage",
    "clientstorage": "ZEO",
    "zlibstorage": "zc.zlibstorage",
    "serverzlibstorage": "zc.zlibstorage",
}
"""Packages of section types that are often used without the import."""


def explain(message: str, text: str, line: int, schema: Any, names: Iterable[str] = ()) -> str:
    """Return a message of ZConfig's with what to do about it.

    *text* is the configuration, *line* the wrong one, counted from 1, and *schema* what is allowed
    there, including what the text has imported before.  The run defines *names*.
    """
    for pattern, advice in _RULES.items():
        if match := re.search(pattern, message):
            return advice.format(section=_enclosing_section(text, line), **match.groupdict())
    if match := re.search(r"could not load package (?P<name>[\w.]+)", message):
        return _not_installed(match["name"])
    if match := re.search(r"no replacement for '(?P<name>[^']+)'", message):
        return _undefined(match["name"], text, names)
    if match := re.search(r"unknown type name: '(?P<name>[^']+)'", message):
        # Abstract types have a dot in their names.
        types = sorted(name for name in schema.gettypenames() if "." not in name)
        return f"{message}; {_meant(match['name'], types)}"
    if match := re.search(r"'(?P<name>[^']+)' is not a known key name", message):
        section = _enclosing_section(text, line)
        return f"{message} in <{section}>; {suggestion(match['name'], _keys(schema, section))}"
    return message


def _not_installed(package: str) -> str:
    if package in _PACKAGES:
        name = _PACKAGES[package]
        return f"package {package} is not installed; install it: pip install {name}"
    close = close_to(package, _PACKAGES)
    meant = f"; did you mean {close[0]}?" if close else ""
    return f"package {package} is not installed{meant}"


def _undefined(name: str, text: str, names: Iterable[str]) -> str:
    if re.search(rf"\$\(\s*{re.escape(name)}\s*\)", text):
        return f"the environment variable {name} is not set; set it: export {name}=..."
    defined = [*names, *_DEFINED.findall(text)]
    if close := close_to(name, defined):
        return f"${name} is not defined; did you mean ${close[0]}?"
    return f"${name} is not defined; write '%define {name} VALUE' above it"


def _meant(section: str, types: Sequence[str]) -> str:
    if section in _IMPORTED_FROM:
        return f"write '%import {_IMPORTED_FROM[section]}' above it"
    return suggestion(section, types)


def _keys(schema: Any, section: str) -> list[str]:
    try:
        return sorted(key for key, _ in schema.gettype(section) if key)
    except ZConfig.SchemaError:
        return []


def key_in_line(text: str, line: int) -> str:
    """Return the key that is set in a *line*, counted from 1, with a colon; empty without one."""
    words = next(islice(text.splitlines(), max(0, line - 1), None), "").split()
    return f"{words[0]}: " if words and not words[0].startswith("<") else ""


def refers_to_environment(text: str, line: int) -> bool:
    """Return whether the value in a *line*, counted from 1, is that of an environment variable."""
    words = next(islice(text.splitlines(), max(0, line - 1), None), "").split(maxsplit=1)
    return len(words) > 1 and ENVIRONMENT_REFERENCE.fullmatch(words[1].strip()) is not None


def _enclosing_section(text: str, line: int) -> str:
    """Return the type of the section around a *line*, counted from 1."""
    types = next(islice(lines_in_sections(text), max(0, line - 1), None), ("", ()))[1]
    return types[-1] if types else "the file"
