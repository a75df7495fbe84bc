"""Find sections that lack something, and sections in a place where they are not allowed."""

from __future__ import annotations

import re
from collections.abc import Sequence

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


def flaw_of_section(message: str, sections: Sequence[Section]) -> str | None:
    """Return the flaw that ZConfig's *message* reports in the last, innermost one of *sections*.

    Return ``None`` if the message is about a part of the section.
    """
    *outer, section = sections
    if match := _LACKING.match(message):
        if not match["section"]:
            return f"{section.start} needs {match['name']}"
        noun, example = _HELD.get(match["name"], (f"<{match['name']}>", ""))
        return f"{section.start} contains no {noun}{example and f', such as {example}'}"
    if message.startswith("no matching section defined"):
        where = f"in {outer[-1].start}" if outer else "outside of a section"
        return f"{section.start} is not allowed {where}"
    match = _TOO_MANY.match(message)
    if match and outer:
        noun, _ = _HELD.get(match["type"], (f"<{section.type}>", ""))
        return f"{section.start} is a second {noun} in {outer[-1].start}, which takes one"
    return None
