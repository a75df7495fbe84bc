"""Sections that lack something, or that stand where they may not."""

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
"""Words for abstract types of sections, with an example."""
_LACKING = re.compile(
    r"(no|not enough) values for (?P<section>section type )?'(?P<name>[^']+)'.* required$"
)
_TOO_MANY = re.compile(r"too many instances of '(?P<type>[^']+)' section")
_MOST_PARENTS = 3


def flaw_of_section(message: str, sections: Sequence[Section], schema: Any) -> str | None:
    """Return what a *message* of ZConfig's says about the innermost of nested *sections*.

    Return ``None`` if it is about a part of the section.
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
            advice = f"; write it into {' or '.join(f'<{parent}>' for parent in parents)}"
        return f"{section.start} cannot stand outside of a section{advice}"
    match = _TOO_MANY.match(message)
    if match and outer:
        what, _ = _HELD.get(match["type"], (f"<{section.type}>", ""))
        is_database = outer[-1].type in {DATABASE, ZOPE_DATABASE}
        advice = f"give it a <{outer[-1].type} NAME> of its own" if is_database else "delete one"
        return f"{section.start} is a second {what} in {outer[-1].start}, which has one; {advice}"
    return None


def _lack(match: re.Match[str], schema: Any) -> str:
    name = match["name"]
    if not match["section"]:
        return f"needs {name}"
    if name in _HELD:
        return "holds no {}, such as {}".format(*_HELD[name])
    types = sorted(schema.gettype(name).getsubtypenames()) if "." in name else [name]
    return f"holds no {' or '.join(f'<{type_}>' for type_ in types)}"


def _misplaced(section: Section, outer: Section) -> str:
    place = outer.place
    where = f"line {place.number}" if place.path == section.place.path else str(place)
    flaw = f"{section.start} cannot stand in {outer.start}, which {where} begins"
    is_database = section.type in {DATABASE, ZOPE_DATABASE}
    return f"{flaw}; write </{outer.type}> above this line" if is_database else flaw


def _parents_of(type_: str, schema: Any) -> Iterator[str]:
    """Yield the types of the sections in which one of that type may stand."""
    types = (schema.gettype(name) for name in schema.gettypenames())
    for parent in types:
        if not parent.isabstract() and any(
            info.issection() and type_ in _allowed(info.sectiontype) for _, info in parent
        ):
            yield parent.name


def _allowed(type_: Any) -> list[str]:
    return list(type_.getsubtypenames()) if type_.isabstract() else [type_.name]
