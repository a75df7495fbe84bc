"""Find sections that lack something, and sections in a place where they are not allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from zodbshootout.config.source import DATABASE, ZOPE_DATABASE
from zodbshootout.config.tree import Section

_HELD = {
    "zodb.storage": ("storage", "<filestorage>"),
    "relstorage.adapter": ("database", "<postgresql>"),
}
"""Words for abstract section types, with an example of each."""
_LACKING = re.compile(
    r"(no|not enough) values for (?P<section>section type )?'(?P<name>[^']+)'.* required$"
)
_TOO_MANY = re.compile(r"too many instances of '(?P<type>[^']+)' section")
_MOST_PARENTS = 3


def flaw_of_section(message: str, sections: Sequence[Section], schema: Any) -> str | None:
    """Return the flaw that ZConfig's *message* reports in the last, innermost one of *sections*.

    Return ``None`` if the message is about a part of the section.
    """
    *outer, section = sections
    if match := _LACKING.match(message):
        return f"{section.start} {_lack(match, schema)}"
    if message.startswith("no matching section defined"):
        if outer:
            return _misplaced(section, outer[-1])
        parents = sorted(_parents_of(section.type, schema))
        advice = ""
        if 0 < len(parents) <= _MOST_PARENTS:
            advice = f"; put it into {' or '.join(f'<{parent}>' for parent in parents)}"
        return f"{section.start} is not allowed outside of a section{advice}"
    match = _TOO_MANY.match(message)
    if match and outer:
        noun, _ = _HELD.get(match["type"], (f"<{section.type}>", ""))
        is_database = outer[-1].type in {DATABASE, ZOPE_DATABASE}
        advice = f"give it its own <{outer[-1].type} NAME>" if is_database else "delete one"
        return f"{section.start} is a second {noun} in {outer[-1].start}, which takes one; {advice}"
    return None


def _lack(match: re.Match[str], schema: Any) -> str:
    name = match["name"]
    if not match["section"]:
        return f"needs {name}"
    if name in _HELD:
        return "contains no {}, such as {}".format(*_HELD[name])
    types = sorted(schema.gettype(name).getsubtypenames()) if "." in name else [name]
    return f"contains no {' or '.join(f'<{type_}>' for type_ in types)}"


def _misplaced(section: Section, outer: Section) -> str:
    place = outer.place
    where = f"line {place.number}" if place.path == section.place.path else str(place)
    flaw = f"{section.start} is not allowed in {outer.start}, which begins on {where}"
    is_database = section.type in {DATABASE, ZOPE_DATABASE}
    return f"{flaw}; write </{outer.type}> above this line" if is_database else flaw


def _parents_of(type_: str, schema: Any) -> Iterator[str]:
    """Yield the types of sections that may contain a section of the given type."""
    types = (schema.gettype(name) for name in schema.gettypenames())
    for parent in types:
        if not parent.isabstract() and any(
            info.issection() and type_ in _allowed(info.sectiontype) for _, info in parent
        ):
            yield parent.name


def _allowed(type_: Any) -> list[str]:
    return list(type_.getsubtypenames()) if type_.isabstract() else [type_.name]
