"""What is wrong with a configuration, in one line: ZConfig's errors with places and advice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import ZConfig

from zodbshootout.client.masking import Mask
from zodbshootout.config.references import ENVIRONMENT_REFERENCE, replaced
from zodbshootout.config.secrets import SECRET_KEY, of_configuration
from zodbshootout.config.source import DATABASE, ZOPE_DATABASE, Source
from zodbshootout.config.tree import Place, path_of
from zodbshootout.errors import close_to, suggestion

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


def explained(
    error: ZConfig.ConfigurationError, source: Source, schema: Any, names: Mapping[str, str]
) -> str:
    """Return an error of ZConfig's in one line, with its place and what to do about it.

    The *schema* includes the types that were imported before the error; *names* are those that the
    run defines.
    """
    url, number = getattr(error, "url", None), getattr(error, "lineno", None) or 0
    path, text = source.path, source.text
    url = url or path.absolute().as_uri()
    if url != path.absolute().as_uri():
        path = path_of(url)
        with suppress(OSError, UnicodeDecodeError):
            text = path.read_text(encoding="utf-8-sig")
    where = f"{path}:{number}" if number > 0 else str(path)
    lines = text.splitlines()
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    sections = source.tree.around(Place(url, number))
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
    secrets = of_configuration(source.tree.keys, names, {})
    mask = Mask(secrets)
    if all(mask(form) == form for form in (value, replaced(value, {}))):
        return ""
    name = getattr(error, "name", "")
    variable = f"$({name})"
    if variable in value:
        is_part = any(variable in secret for secret in secrets - {variable})
        return f"{unusable}, and every environment variable in it has to be set" if is_part else ""
    definitions = (key.name for key in source.tree.definitions)
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
    section = DATABASE if section == ZOPE_DATABASE else section
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
