"""How the sections of a configuration's text are nested."""

from __future__ import annotations

import re
from collections.abc import Iterator

_START = re.compile(r"^\s*<(?P<type>[^\s/>]+)[^>]*?(?P<empty>/)?>\s*$")


def lines_in_sections(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return each line with the types of the sections that it belongs to, outermost first.

    The lines with which a section starts and ends belong to it.
    """
    stack: list[str] = []
    for line in text.splitlines():
        start = _START.match(line)
        end = line.lstrip().startswith("</")
        if start and not end:
            stack.append(start["type"].lower())
        yield line, tuple(stack)
        if stack and (end or (start and start["empty"])):
            stack.pop()
