"""Recognize, by its content, a file that does not configure databases."""

from __future__ import annotations

import re
from collections.abc import Mapping

from zodbshootout.client.masking import Mask
from zodbshootout.config.secrets import of_uri
from zodbshootout.config.source import DATABASE, ZOPE_DATABASE, Source
from zodbshootout.config.tree import Position

KEY_AND_VALUE = "a line is a key and a value, as in 'cache-size 5000'"
_URI_OF_PYRAMID = re.compile(
    r"^[ \t]*(?P<key>zodbconn\.uri[\w.-]*|zodb_uri)\s*=\s*(?P<uri>\S+)", re.MULTILINE
)
_FORMATS: Mapping[str, str] = {
    r"\[buildout\]": (
        "this is a buildout configuration; use the zope.conf that it generates, such as "
        "parts/instance/etc/zope.conf"
    ),
    r"\[[^\]\n]+\]\s*\n(?:\s*(?:[#;].*)?\n)*[^\s=]+\s*=": (
        "this is an ini file without a zodbconn.uri that names a database; use a database's URI or "
        "ZConfig file"
    ),
    r"\{\s*\"(?:benchmarks|version)\"": "these are results; show them: zodbshootout show {path}",
    r"[{{[]\s*[\"{{[]": "this is JSON; use the application's ZConfig file",
    r"---\s*\n|[\w-]+:(?:[ \t]+\S.*)?\n": (
        "this is YAML; use the ZConfig file generated from it, such as etc/zope.conf"
    ),
}
"""Messages about other formats; each key is a pattern for the text after initial comments."""
_INI = re.compile(r"\[[^\]\n]+\]\s*\n")
_COMMENTS = re.compile(r"(?:\s*(?:[#;].*)?\n)*\s*")
_ZCONFIG_LINE = re.compile(r"\s*($|#|%|</?[\w.-]|\w[\w.-]*(\s|$))")
"""The beginning of a correct line outside of sections."""
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
    uri = _URI_OF_PYRAMID.search(text)
    if uri and _INI.match(text, first):
        named = uri["uri"].replace("%(here)s", str(path.parent.absolute()))
        shown = Mask(of_uri(named))(named)
        return (
            f"{path}:{_number(text, uri.start('key'))}: this is an ini file; measure its "
            f"{uri['key']}: zodbshootout '{shown}'"
        )
    for pattern, advice in _FORMATS.items():
        if re.compile(pattern).match(text, first):
            return f"{path}:{_number(text, first)}: {advice.format(path=path)}"
    if zeo := next((section for section in root.sections if section.type == "zeo"), None):
        return f"{zeo.place}: {OF_ZEO_SERVER}"
    if not _has_database(source) and (
        key := next((key for key in root.keys if key.name.lower() in _KEYS_OF_ZOPE), None)
    ):
        return (
            f"{key.place}: this is Zope's configuration, but without a <zodb_db NAME>; use the "
            "file that has one"
        )
    return None


def flaw_of_line(line: str, place: Position, source: Source) -> str | None:
    """Return the flaw of a line outside of sections; ``None`` if ZConfig allows such a line."""
    where = place if place.number > 0 else place.path
    if _ZCONFIG_LINE.match(line) and not line.lstrip().startswith(("<?", "<!")):
        return None
    if _has_database(source):
        return f"{where}: this is not a line of a ZConfig file; {KEY_AND_VALUE}"
    return f"{where}: this is not a ZConfig file with a section <zodb NAME> for each contender"


def _has_database(source: Source) -> bool:
    sections = source.tree.root.sections
    return any(section.type in {DATABASE, ZOPE_DATABASE} for section in sections)


def _number(text: str, position: int) -> int:
    """Return the number of the line at a position."""
    return text.count("\n", 0, position) + 1
