"""What ZConfig's messages leave out: what is allowed, and what to type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import ZConfig

from zodbshootout.config.loader import lines_in_sections
from zodbshootout.errors import close_to, suggestion

_RULES: Mapping[str, str] = {
    r"None is not an allowed name for '.*' sections": (
        "this section needs a name, as in <{section} NAME>"
    ),
    r"section names must not be re-used within the same container:'(?P<name>[^']+)'": (
        "a second section is called {name!r}; give each a name of its own"
    ),
}
"""What is said instead of a message of ZConfig's, by what that looks like."""

_PACKAGES: Mapping[str, str] = {
    "newt.db": "newt.db",
    "relstorage": "RelStorage",
    "tempstorage": "tempstorage",
    "ZEO": "ZEO",
    "zc.zlibstorage": "zc.zlibstorage",
}
"""What can be installed, by what is imported.  Nobody is told to install a name that may be
misspelt: somebody else may have uploaded something under it."""
_DEFINED = re.compile(r"^[ \t]*%define[ \t]+(\S+)", re.MULTILINE)
_IMPORTED_FROM: Mapping[str, str] = {
    "relstorage": "relstorage",
    "clientstorage": "ZEO",
    "zlibstorage": "zc.zlibstorage",
    "serverzlibstorage": "zc.zlibstorage",
}
"""Packages that define the sections that are most often used without importing them."""


def explain(message: str, text: str, line: int, schema: Any, names: Iterable[str] = ()) -> str:
    """Return a message of ZConfig's such that the user knows what to do about it.

    *text* is the configuration, *line* the one at fault, counted from 1, and *schema* what is
    allowed, with everything that the text imported before that line.  *names* are defined beside
    those that the text defines.
    """
    for pattern, advice in _RULES.items():
        if found := re.search(pattern, message):
            return advice.format(section=_enclosing_section(text, line), **found.groupdict())
    if found := re.search(r"could not load package (?P<name>[\w.]+)", message):
        return _not_installed(found["name"])
    if found := re.search(r"no replacement for '(?P<name>[^']+)'", message):
        return _undefined(found["name"], text, names)
    if found := re.search(r"unknown type name: '(?P<name>[^']+)'", message):
        # Those with a dot are kinds of sections, which nobody writes.
        types = sorted(name for name in schema.gettypenames() if "." not in name)
        return f"{message}; {_meant(found['name'], types)}"
    if found := re.search(r"'(?P<name>[^']+)' is not a known key name", message):
        section = _enclosing_section(text, line)
        return f"{message} in <{section}>; {suggestion(found['name'], _keys(schema, section))}"
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
        return f"the environment variable {name} is not set"
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
    """Return the key that a *line*, counted from 1, sets, with a colon, or nothing."""
    words = next(islice(text.splitlines(), max(0, line - 1), None), "").split()
    return f"{words[0]}: " if words and not words[0].startswith("<") else ""


def _enclosing_section(text: str, line: int) -> str:
    """Return the type of the section that the *line*, counted from 1, stands in."""
    types = next(islice(lines_in_sections(text), max(0, line - 1), None), ("", ()))[1]
    return types[-1] if types else "the file"
