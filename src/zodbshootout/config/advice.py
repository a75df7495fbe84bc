"""Explain ZConfig's errors in one line, with the place and what to type."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import ZConfig

from zodbshootout.config.formats import other_kind
from zodbshootout.config.references import ENVIRONMENT_REFERENCE
from zodbshootout.config.source import DATABASE, ZOPE_DATABASE, Source
from zodbshootout.config.structure import flaw_of_section
from zodbshootout.config.tree import Position, path_of
from zodbshootout.errors import close_to, suggestion

KEY_AND_VALUE = "a line is a key and a value, as in 'cache-size 5000'"
_COMMENT = "a comment needs its own line"
_DOLLAR = "invalid value; write a literal $ as $$"
_RULES: Mapping[str, str] = {
    r"None is not an allowed name for '.*' sections": (
        "this section needs a name, as in <{section} NAME>"
    ),
    r"malformed section": (
        "a section begins with a line such as <zodb NAME>, and ends with one such as </zodb>"
    ),
    r"malformed configuration data": KEY_AND_VALUE,
    r"'(?P<key>[^']+)' does not support multiple values": "{key} occurs twice; delete one",
    r"(import name does not refer to a package|error opening schema component|illegal schema comp)"
    "": "no section types are in {value!r}; %import takes a package with a component.xml",
    r"section names must not be re-used within the same container:'(?P<name>[^']+)'": (
        "two sections are called {name!r}; give each a different name"
    ),
    r"error opening file (?P<path>.+?): \[Errno \d+\] (?P<reason>[^:]+)": (
        "cannot read {path}: {reason}"
    ),
}
"""Messages that replace ZConfig's; each key is a pattern of ZConfig's message."""

SUBSTITUTION_ERRORS = (ZConfig.SubstitutionSyntaxError, ZConfig.SubstitutionReplacementError)
"""ZConfig's errors about a ``$``."""


_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "ZEO": ("ZEO", "clientstorage"),
    "cipher.encryptingstorage": ("cipher.encryptingstorage", "encryptingstorage"),
    "neo.client": ("neoppod", "neostorage"),
    "newt.db": ("newt.db", "newt", "newtdb"),
    "relstorage": ("RelStorage", "relstorage", "postgresql", "mysql", "oracle", "sqlite3"),
    "tempstorage": ("tempstorage", "temporarystorage"),
    "zc.beforestorage": ("zc.beforestorage", "before"),
    "zc.zlibstorage": ("zc.zlibstorage", "zlibstorage", "serverzlibstorage"),
    "zc.zrs": ("zc.zrs", "zrs"),
    "zodb_pgjsonb": ("zodb-pgjsonb", "pgjsonb"),
    "zodb_s3blobs": ("zodb-s3blobs", "s3blobstorage"),
    "zodbshootout.mysql": ("zodbshootout", "mysql-or-mariadb"),
    "zodbshootout.newt": ("zodbshootout", "newt-with-text-index"),
    "zodbshootout.recording": ("zodbshootout", "recording"),
}
"""Packages for ``%import``.  Each value is a name on PyPI, then section types that files often use
without the import.  For other packages, no ``pip install`` is suggested: the user may have misspelt
the name, and somebody may have uploaded something under the misspelt name."""
_FOREIGN = {
    "s3": "a fork of RelStorage has it; for blobs in S3, there is <s3blobstorage> of zodb-s3blobs",
    **dict.fromkeys(("source", "destination"), "name a storage, as in <filestorage source>"),
}
"""Section types that users find in documents, with what to write instead."""
_, *TYPES_OF_RELSTORAGE = _PACKAGES["relstorage"]
_KEY = re.compile(r"%.*|\w[\w.-]*")
_NOT_AN_INT = re.compile(r"invalid literal for int\(\) with base 10: (['\"].*)$")


def explained(
    error: ZConfig.ConfigurationError, source: Source, schema: Any, names: Mapping[str, str]
) -> str:
    """Return a ZConfig error in one line, with its place and advice.

    The *schema* includes the types that were imported before the error.  *names* has the value
    of each name that the run defines.
    """
    if kind := other_kind(source):
        return kind
    place = _place_of(error, source)
    line = _line_at(place, source)
    sections = source.tree.around(place)
    where = place if place.number > 0 else place.path
    key, value = _key_and_value(line)
    if key and not key.startswith("%") and not any(source.tree.root.sections):
        return f"{where}: this is not a ZConfig file with a section <zodb NAME> for each contender"
    message = " ".join(str(getattr(error, "message", None) or error).split())
    is_alone = not value and "is not a known key name" in message
    if key and (is_alone or not _KEY.fullmatch(key)):  # do not repeat it: passwd=geheim
        return f"{where}: {KEY_AND_VALUE}"
    if isinstance(error, SUBSTITUTION_ERRORS):
        message = f"{key}: {_flaw_of_reference(error, value, source, schema, names)}"
    elif isinstance(error, ZConfig.DataConversionError):
        message = f"{key}: {not_converted(message)}" if key else not_converted(message)
    elif sections and (of_section := flaw_of_section(message, sections)):
        where, message = sections[-1].place, of_section
    else:
        section = sections[-1].type if sections else ""
        message = _with_advice(message, value, section, schema)
    comment = f"; {_COMMENT}" if re.search(r"\s#", line) else ""
    return f"{where}: {message}{comment}"


def _line_at(place: Position, source: Source) -> str:
    """Return a line of the source or of an included file; "" if there is no such line."""
    text = source.text
    if place.path != source.path:
        with suppress(OSError, UnicodeDecodeError):
            text = place.path.read_text(encoding="utf-8-sig")
    return "".join(text.splitlines()[max(0, place.number - 1) : place.number])


def _place_of(error: ZConfig.ConfigurationError, source: Source) -> Position:
    """Return the place of an error; the line number is 0 if it is unknown."""
    url = getattr(error, "url", None) or source.path
    # For a zconfig: URI, ZConfig itself reads the file, and the error has a URL, not a path.
    path = path_of(url) if isinstance(url, str) else url
    return Position(path, max(0, getattr(error, "lineno", None) or 0))


def _key_and_value(line: str) -> tuple[str, str]:
    """Return a line's key, or ``%define NAME``, and its value; both are "" if there is no key."""
    words = line.split(None, 2)
    if not words or words[0].startswith("<"):
        return "", ""
    length = 2 if words[0] == "%define" else 1
    return " ".join(words[:length]), "".join(line.split(None, length)[length:]).rstrip()


def _flaw_of_reference(
    error: ZConfig.ConfigurationError,
    value: str,
    source: Source,
    schema: Any,
    names: Mapping[str, str],
) -> str:
    """Return the flaw of a ``$`` in a *value*."""
    name = getattr(error, "name", "")
    if not name:
        return f"{_DOLLAR}; a reference is $name, ${{name}} or $(VARIABLE)"
    if f"$({name})" in value:
        return _unset_variables(name, source, schema)
    if close := close_to(name, [*names, *(key.name for key in source.tree.definitions)]):
        return f"${name} is not defined; did you mean ${close[0]}?"
    return f"${name} is not defined; write '%define {name} VALUE' above it, or a literal $ as $$"


def not_converted(message: str) -> str:
    """Return a *message* about a value that cannot be converted, in plain words."""
    return _NOT_AN_INT.sub(r"\1 is not a whole number", message)


def _with_advice(message: str, value: str, section: str, schema: Any) -> str:
    """Return a ZConfig message, perhaps with advice, or the advice alone."""
    for pattern, advice in _RULES.items():
        if match := re.search(pattern, message):
            return advice.format(section=section, value=value, **match.groupdict())
    if match := re.search(r"could not load package (?P<name>.+?): ", message):
        return _not_installed(match["name"])
    if match := re.search(r"unknown type name: '(?P<name>[^']+)'", message):
        return f"{message}; {_type_advice(match['name'], schema)}"
    if match := re.search(r"'(?P<name>[^']+)' is not a known key name", message):
        return f"{message} {_key_advice(match['name'], section, schema)}"
    return message


def _key_advice(name: str, section: str, schema: Any) -> str:
    section = DATABASE if section == ZOPE_DATABASE else section
    if section not in schema.gettypenames():
        return "outside of a section"
    keys = sorted(key for key, _ in schema.gettype(section) if key)
    return f"in <{section}>; {suggestion(name, keys)}"


def _type_advice(name: str, schema: Any) -> str:
    for package, (_, *types) in _PACKAGES.items():
        if name in types:
            return f"write '%import {package}' above it"
    if name in _FOREIGN:
        return _FOREIGN[name]
    # Abstract types have a dot in their names.
    return suggestion(name, sorted(known for known in schema.gettypenames() if "." not in known))


def _not_installed(package: str) -> str:
    if package in _PACKAGES:
        name, *_ = _PACKAGES[package]
        return f"package {package} is not installed; install it: pip install {name}"
    close = close_to(package, _PACKAGES)
    advice = f"; did you mean {close[0]}?" if close else ""
    return f"package {package} is not installed{advice}"


def _unset_variables(name: str, source: Source, schema: Any) -> str:
    """Say which variables a file refers to are not set, except those that only Zope needs."""
    known = {ZOPE_DATABASE, *schema.gettypenames()}
    values = (
        key.value
        for outermost in source.tree.root.sections
        if outermost.type in known or not source.is_of_zope
        for section in outermost.walk()
        for key in section.keys
    )
    variables = (variable for value in values for variable in ENVIRONMENT_REFERENCE.findall(value))
    unset = [variable for variable in dict.fromkeys(variables) if variable not in os.environ]
    if name not in unset or len(unset) == 1:
        return f"the environment variable {name} is not set; set it: export {name}=..."
    return (
        f"these environment variables are not set: {', '.join(unset)}; set them: "
        f"export {' '.join(f'{variable}=...' for variable in unset)}"
    )
