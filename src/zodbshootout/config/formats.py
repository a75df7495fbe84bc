"""Recognize, by its content, a file that does not configure databases."""

from __future__ import annotations

import re
from collections.abc import Mapping

from zodbshootout.config.source import DATABASE, ZOPE_DATABASE, Source

_URI_OF_PYRAMID = re.compile(
    r"^[ \t]*(?P<key>zodbconn\.uri[\w.-]*|zodb_uri)\s*=\s*(?P<uri>\S+)", re.MULTILINE
)
_FORMATS: Mapping[str, str] = {
    "[": (
        "this is an ini file; use the URI or the ZConfig file of a database, such as the zope.conf "
        "that buildout generates"
    ),
    "{": "this is JSON; if it has results, show them: zodbshootout show {path}",
}
"""Messages about other formats, by the first character after initial comments."""
_COMMENTS = re.compile(r"(?:\s*(?:[#;].*)?\n)*\s*")
_KEYS_OF_ZOPE = frozenset(
    {"clienthome", "debug-mode", "effective-user", "instancehome", "http-port"}
    | {"python-check-interval", "security-policy-implementation", "zserver-threads"}
)


OF_ZEO_SERVER = (
    "this is the configuration of a ZEO server; put its storages into a <zeoserver NAME> for a "
    "private server, or use the zeo:// URI of a running one"
)
"""The flaw of a file with a ``<zeo>`` section, and what to do."""


def other_kind(source: Source) -> str | None:
    """If a file does not configure databases, return what it is and what to do; else ``None``."""
    path, text, root = source.path, source.text, source.tree.root
    start = _COMMENTS.match(text)
    first = start.end() if start else 0
    kind = text[first : first + 1]
    uri = _URI_OF_PYRAMID.search(text)
    if kind == "[" and uri:
        named = uri["uri"].replace("%(here)s", str(path.parent.absolute()))
        return (
            f"{path}:{_number(text, uri.start('key'))}: this is an ini file; measure its "
            f"{uri['key']}: zodbshootout '{named}'"
        )
    if kind in _FORMATS:
        return f"{path}:{_number(text, first)}: {_FORMATS[kind].format(path=path)}"
    if zeo := next((section for section in root.sections if section.type == "zeo"), None):
        return f"{zeo.place}: {OF_ZEO_SERVER}"
    has_database = any(section.type in {DATABASE, ZOPE_DATABASE} for section in root.sections)
    key = next((key for key in root.keys if key.name.lower() in _KEYS_OF_ZOPE), None)
    if key and not has_database:
        return (
            f"{key.place}: this is Zope's configuration, but without a <zodb_db NAME>; use the "
            "file that has one"
        )
    return None


def _number(text: str, position: int) -> int:
    """Return the number of the line at a position."""
    return text.count("\n", 0, position) + 1
