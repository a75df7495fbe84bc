"""Find the secrets in a configuration, in a word of the command line, and in the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, unquote_plus

from zodbshootout.config.references import (
    BEGIN,
    END,
    ENVIRONMENT_REFERENCE,
    marked,
    references,
    replaced,
    unmarked,
)
from zodbshootout.config.tree import Key, read_tree
from zodbshootout.model.masking import SECRET_KEY

_CONNINFO = re.compile(
    r"(?P<key>\w+)\s*=\s*(?:'(?P<quoted>(?:[^'\\]|\\.)*)(?:'|$)|(?P<bare>(?:[^\s\\]|\\.)*))",
    re.ASCII,
)
"""A setting in a DSN, by the rules of PostgreSQL's libpq."""
_IN_STATEMENT = re.compile(
    rf"(?:{SECRET_KEY.pattern}|\bidentified\b|\bpragma\s+(?:re|hex)?key\b)(?="
    r"[^'\"$,;=]*=?\s*(?:'(?P<single>(?:[^'\\]|''|\\.)*)|(?<=[\s=(])\"(?P<double>[^\"]*)"
    r"|\$(?P<tag>\w*)\$(?P<dollar>.*?)(?:\$(?P=tag)\$|$))|(?:\s+\S+){0,2}?\s+by\s+(?P<bare>[^\s'\";,]+))",
    re.IGNORECASE,
)
"""A literal after a word such as PASSWORD in SQL, by the rules of several databases."""
_AUTHORITY = re.compile(
    r"(?<!/):?//(?=[^/])|:/(?=[^/][^@\s]*@)|(?:^|(?<=[\s'\"=(,]))(?=[^/\s:@]+:[^/(\s@][^\s@]*@)"
)
"""The beginning of ``user:password@host``, also in a URI whose ``://`` is misspelt or missing."""
_PARAMETER = re.compile(r"[?&;#(](?P<key>[^=&;#?()/]*)=(?P<value>[^&]*)")
_ZCONFIG = re.compile(r"zconfig:(//[^/?#]*)?(?P<path>[^?#]+)", re.IGNORECASE)
_MARKED = re.compile(f"{BEGIN}(?P<value>[^{BEGIN}{END}]*){END}")
_DELIMITERS = re.compile(r"[/?#@:&=$%\s'\"\\()]+")
_SHORTEST_PIECE = 4
_NO_SECRETS = {"PWD", "OLDPWD"}
_SWITCHES = frozenset({"true", "false", "yes", "no", "on", "off", "none", "null"})
_SMALL_NUMBER = re.compile(r"\d{1,6}")
_PREFIXES = ("PG", "MYSQL", "MARIADB", "ORACLE", "RS_", "ZEO_")
"""Prefixes of database clients' environment variables; even a short password in these is secret."""


def of_configuration(
    keys: Iterable[Key], names: Mapping[str, str], *, follow: bool = True
) -> set[str]:
    """Return the secrets in a configuration and in *names*.

    *names* has the value of each name that the run defines.  For *follow* see :func:`of_uri`.
    """
    secrets = {value for name, value in names.items() if SECRET_KEY.search(name)}
    literal = {"$": "$", **{f"({name})": marked(value) for name, value in os.environ.items()}}
    by_name = literal | {name: f"${name}" for name in names}
    by_value = literal | {name: marked(value) for name, value in names.items()}
    for name, written, resolved, _ in keys:
        for form in (written, unmarked(resolved), unmarked(replaced(resolved, by_name))):
            secrets.update(_of_setting(name, form, follow=False))
        for secret in _of_setting(name, unmarked(resolved), follow=False):
            secrets.update(_undefined(secret, names))
        secrets.update(_with_parts(name, replaced(resolved, by_value), follow=follow))
    references_to_names = (f"${name}" for name in names), (f"${{{name}}}" for name in names)
    return secrets.difference(*references_to_names)


def _undefined(secret: str, names: Mapping[str, str]) -> Iterator[str]:
    """Yield the names and variables in a secret that are undefined: an error would quote them."""
    for name in references(secret) - names.keys():
        yield from re.findall(name, secret, re.IGNORECASE)
    if not ENVIRONMENT_REFERENCE.fullmatch(secret):
        yield from set(ENVIRONMENT_REFERENCE.findall(secret)) - os.environ.keys()


def _with_parts(key: str, value: str, *, follow: bool) -> Iterator[str]:
    """Yield the secrets in a setting.

    If a secret contains the values of references, yield each of these values, too.  Marks show
    where these values begin and end; see :func:`marked`.
    """
    secrets = set(_of_setting(key, unmarked(value), follow=follow))
    yield from secrets
    for secret in _of_setting(key, value, follow=False):
        if unmarked(secret) in secrets:  # else, marks have changed where the secret ends
            yield from _parts(secret)


def _parts(secret: str) -> Iterator[str]:
    """Yield the value of each reference in a secret, including nested references."""
    while match := _MARKED.search(secret):
        yield match["value"]
        secret = f"{secret[: match.start()]}{match['value']}{secret[match.end() :]}"
    if BEGIN in secret or END in secret:  # the secret begins or ends within a value
        yield from re.split(f"[{BEGIN}{END}]", secret)


def of_uri(uri: str, *, follow: bool = True) -> Iterator[str]:
    """Yield every possible password in a URI, and in URIs nested in it.

    Some parsers end an unquoted password at certain characters.  An error may quote only the part
    before such a character, or a part between two of them; these parts are secret, too.  If
    *follow*, also yield the secrets in files that ``zconfig:`` URIs name.
    """
    for start in _AUTHORITY.finditer(uri):
        yield from _of_authority(uri, start)
    for match in _PARAMETER.finditer(uri):
        if SECRET_KEY.search(match["key"]):
            for end in ("&", "#", ")", ";"):
                value = match["value"].partition(end)[0]
                yield from (value, unquote(value), unquote_plus(value))
    if follow:
        yield from of_configuration(in_named_files(uri), {}, follow=False)


def in_named_files(uri: str) -> Iterator[Key]:
    """Yield the keys in the files that ``zconfig:`` URIs name."""
    for match in _ZCONFIG.finditer(uri):
        for name in {match["path"], match["path"].partition(")")[0]}:  # in demo:(zconfig:…)
            with suppress(OSError, ValueError):
                yield from read_tree(Path(name).read_text(encoding="utf-8"), Path(name)).keys


def of_argument(word: str) -> Iterator[str]:
    """Yield every possible secret in a word of the command line."""
    yield from of_uri(word)
    yield from of_statement(word)
    for match in re.finditer(r"(?P<key>[\w-]+)=(?=(?P<value>.*))", word, re.DOTALL):
        if SECRET_KEY.search(match["key"]):
            yield from (match["value"], *match["value"].split(","))


def _of_authority(uri: str, start: re.Match[str]) -> Iterator[str]:
    """Yield every possible password between ``://`` and the host.

    *start* is the match of ``://`` in *uri*.
    """
    rest = uri[start.end() :]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    for end in {rest.find("@"), rest.rfind("@"), authority.rfind("@")} - {-1}:
        user, _, password = rest[:end].partition(":")
        if password and not ENVIRONMENT_REFERENCE.fullmatch(password):
            yield from (password, unquote(password), *_pieces(password))
        elif uri[: start.start()].endswith(("http", "https")):
            yield from (user, unquote(user))  # in a requirement, the user name may be a token


def of_dsn(dsn: str) -> Iterator[str]:
    """Yield every possible password in a DSN, both as it is written and unquoted.

    A password that lacks its quotes ends at a space or a quote.  What follows, up to the next
    setting, is secret, too: an error may quote it.
    """
    settings = list(_CONNINFO.finditer(dsn))
    starts = [match.start() for match in settings[1:]]
    for match, end in zip(settings, [*starts, len(dsn)], strict=False):
        if SECRET_KEY.search(match["key"]):
            raw = match["quoted"] if match["quoted"] is not None else match["bare"]
            yield from (raw, re.sub(r"\\(.)", r"\1", raw))
            yield from _pieces(dsn[match.end() : end])
    with suppress(Exception):  # the driver may be missing; mistakes are reported later
        from psycopg2.extensions import parse_dsn

        parsed = parse_dsn(dsn)
        yield from (value for key, value in parsed.items() if SECRET_KEY.search(key))


def of_statement(statement: str) -> Iterator[str]:
    """Yield every possible password in an SQL statement, as it is written and unquoted."""
    for match in _IN_STATEMENT.finditer(statement):
        for raw in filter(None, match.group("single", "double", "dollar", "bare")):
            yield from (raw, raw.replace("''", "'"), re.sub(r"\\(.)", r"\1", raw))


def _of_setting(key: str, value: str, *, follow: bool) -> Iterator[str]:
    # A reference such as $(NAME) is not secret; messages have to show which variable to set.
    if SECRET_KEY.search(key) and not ENVIRONMENT_REFERENCE.fullmatch(value):
        yield value
    if "//" in value or ":(" in value or "@" in value:
        yield from of_uri(value, follow=follow)
    if "=" in value:
        yield from of_dsn(value)
    if " " in value:
        yield from of_statement(value)


def of_environment(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets in an environment."""
    for name, value in environment.items():
        if not SECRET_KEY.search(name) or name in _NO_SECRETS or value.lower() in _SWITCHES:
            continue
        is_long = len(value) >= _SHORTEST_PIECE and not _SMALL_NUMBER.fullmatch(value)
        if is_long or name.startswith(_PREFIXES):
            is_a_file = os.path.exists(value)  # noqa: PTH110 - a Path raises if it is too long
            if not is_a_file:  # the name of a file, as in PGPASSFILE, is not secret
                yield value


def _pieces(secret: str) -> list[str]:
    return [
        piece
        for piece in _DELIMITERS.split(secret)
        if len(piece) >= _SHORTEST_PIECE and not piece.isdigit()
    ]
