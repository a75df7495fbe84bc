"""Explain ZConfig's errors in one line, with the place and what to type."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import ZConfig

from zodbshootout.client.masking import Mask
from zodbshootout.config.formats import KEY_AND_VALUE, flaw_of_line, other_kind
from zodbshootout.config.references import ENVIRONMENT_REFERENCE, replaced
from zodbshootout.config.secrets import SECRET_KEY, of_configuration
from zodbshootout.config.source import DATABASE, ZOPE_DATABASE, Source
from zodbshootout.config.structure import flaw_of_section
from zodbshootout.config.tree import Position, path_of
from zodbshootout.errors import close_to, suggestion

_COMMENT = "a comment needs its own line"
_RULES: Mapping[str, str] = {
    r"None is not an allowed name for '.*' sections": (
        "this section needs a name, as in <{section} NAME>"
    ),
    r"malformed section start": (
        "the first line of a section ends with >, as in <zodb NAME> or <mappingstorage/>"
    ),
    r"malformed section end": "the last line of a section ends with >, as in </zodb>",
    r"malformed section header": (
        "a section begins with its type, and perhaps a name without blanks, as in <zodb NAME>"
    ),
    r"malformed configuration data": KEY_AND_VALUE,
    r"'(?P<key>[^']+)' does not support multiple values": "{key} occurs twice; delete one",
    r"fragment identifiers are not supported": f"# cannot be part of a file's name; {_COMMENT}",
    r"(?P<flaw>missing or unrecognized directive|unknown directive.*)": (
        "{flaw}; there are %define, %import and %include"
    ),
    r"(import name does not refer to a package|error opening schema component|illegal schema comp)"
    "": "no section types are in {value!r}; %import takes a package with a component.xml",
    r"section names must not be re-used within the same container:'(?P<name>[^']+)'": (
        "two sections are called {name!r}; give each a different name"
    ),
    r"error opening file (?P<path>.+?): \[Errno \d+\] (?P<reason>[^:]+)": (
        "cannot read {path}: {reason}"
    ),
    r"'\$\(\w*' not followed by ('\)'|name)": (
        "$( begins the name of an environment variable, as in $(NAME); write $$ for a plain $"
    ),
    r"(illegal lone '\$'|'\$' not followed by )": "write $$ for a plain $, or a name after $",
    r"'\$\{\w*' not followed by ('}'|name)": (
        "${{ begins a name, as in ${{NAME}}; write $$ for a plain $, and replace buildout's "
        "${{SECTION:OPTION}} by its value"
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
_, *TYPES_OF_RELSTORAGE = _PACKAGES["relstorage"]
_NOT_AN_INT = re.compile(r"invalid literal for int\(\) with base 10: (['\"].*)$")
_WITH_UNIT = re.compile(r"\d+\s*[kmg]i?b?", re.IGNORECASE)


def explained(
    error: ZConfig.ConfigurationError, source: Source, schema: Any, names: Mapping[str, str]
) -> str:
    """Return a ZConfig error in one line, with its place and advice.

    The *schema* includes the types that were imported before the error.  *names* has the value
    of each name that the run defines.
    """
    place = _place_of(error, source)
    line = _line_at(place, source)
    sections = source.tree.around(place)
    if kind := other_kind(source) or (None if sections else flaw_of_line(line, place, source)):
        return kind
    where = place if place.number > 0 else place.path
    key, value = _key_and_value(line)
    if flaw := _flaw_of_secret(error, key, value, source, names):
        return f"{where}: {key}: {flaw}"
    message = " ".join(str(getattr(error, "message", None) or error).split())
    if isinstance(error, ZConfig.SubstitutionReplacementError):
        message = _undefined(error.name, source, schema, names)
    elif isinstance(error, ZConfig.DataConversionError):
        message = _flaw_of_value(key, str(error.value), message)
    elif sections and (of_section := flaw_of_section(message, sections, schema)):
        where, message = sections[-1].place, of_section
    else:
        comment = f"; {_COMMENT}" if message.startswith("malformed section") and "#" in line else ""
        section = sections[-1].type if sections else ""
        message = f"{_with_advice(message, value, section, schema)}{comment}"
    return f"{where}: {message}"


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


def _flaw_of_secret(
    error: ZConfig.ConfigurationError,
    key: str,
    value: str,
    source: Source,
    names: Mapping[str, str],
) -> str:
    """If ZConfig's message shows a secret, return a message without the *value*; else, ""."""
    unusable = "invalid value; write a literal $ as $$"
    if isinstance(error, ZConfig.DataConversionError):
        is_secret = SECRET_KEY.search(key) and not ENVIRONMENT_REFERENCE.fullmatch(value)
        return unusable if is_secret else ""
    if not isinstance(error, SUBSTITUTION_ERRORS):
        return ""
    secrets = of_configuration(source.tree.keys, names, {})
    mask = Mask(secrets)
    if all(mask(form) == form for form in (value, replaced(value, {}))):
        return ""
    name = getattr(error, "name", "")
    variable = f"$({name})"
    if variable in value:
        is_part = any(variable in secret for secret in secrets - {variable})
        return f"{unusable}, and set every environment variable in it" if is_part else ""
    definitions = (key.name for key in source.tree.definitions)
    close = close_to(name, [*names, *definitions]) if name else []
    return f"{unusable}; did you mean the name {close[0]}?" if close else unusable


def _flaw_of_value(key: str, value: str, message: str) -> str:
    if key and key == value:
        return f"{key!r} cannot be the name of a key; {KEY_AND_VALUE}"
    message = not_converted(key, value, message)
    return f"{key}: {message}" if key else message


def not_converted(key: str, value: str, message: str) -> str:
    """Return the *message* about the *value* of a *key*, with advice if the flaw is known."""
    message = _NOT_AN_INT.sub(r"\1 is not a whole number", message)
    if re.search(r"\s#", value):
        return f"{message}; {_COMMENT}"
    if value.startswith("="):
        return f"{message}; write it without ="
    if "boolean" in message:
        return f"{message}; write true or false"
    if _WITH_UNIT.fullmatch(value):
        number = "a number of megabytes" if key.endswith(("-mb", "_mb")) else "a number"
        return f"{message}; write {number} without a unit"
    return message


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
    # Abstract types have a dot in their names.
    return suggestion(name, sorted(known for known in schema.gettypenames() if "." not in known))


def _not_installed(package: str) -> str:
    if package in _PACKAGES:
        name, *_ = _PACKAGES[package]
        return f"package {package} is not installed; install it: pip install {name}"
    close = close_to(package, _PACKAGES)
    advice = f"; did you mean {close[0]}?" if close else ""
    return f"package {package} is not installed{advice}"


def _undefined(name: str, source: Source, schema: Any, names: Iterable[str]) -> str:
    unset = _unset_variables(source, schema)
    if name in unset and len(unset) > 1:
        return (
            f"these environment variables are not set: {', '.join(unset)}; set them: "
            f"export {' '.join(f'{variable}=...' for variable in unset)}"
        )
    if name in source.environment_names:
        return f"the environment variable {name} is not set; set it: export {name}=..."
    defined = (key.name for key in source.tree.definitions)
    if close := close_to(name, [*names, *defined]):
        return f"${name} is not defined; did you mean ${close[0]}?"
    return f"${name} is not defined; write '%define {name} VALUE' above it"


def _unset_variables(source: Source, schema: Any) -> list[str]:
    """Return the unset variables that a file refers to, except those that only Zope needs."""
    known = {ZOPE_DATABASE, *schema.gettypenames()}
    values = (
        key.value
        for outermost in source.tree.root.sections
        if outermost.type in known or not source.is_of_zope
        for section in outermost.walk()
        for key in section.keys
    )
    variables = (name for value in values for name in ENVIRONMENT_REFERENCE.findall(value))
    return [name for name in dict.fromkeys(variables) if name not in os.environ]
