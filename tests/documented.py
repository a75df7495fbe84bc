"""Blocks and commands of the README and of the documentation."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.rst", *sorted(DOCS.glob("*.rst")), *sorted(DOCS.glob("results/*.rst"))]
CONSOLE = re.compile(r"\.\. code-block:: console")
LITERAL = re.compile(r"(?!\.\.).*::|( *)::")
_COMMAND = re.compile(
    r"(?:\$ )?(?:\.venv/bin/)?(?P<line>(?:[A-Z]+=\S+ )?zodbshootout(?P<words> [^[]*?|)(?: > \S+)?)"
)
"""A line that runs zodbshootout; a synopsis, which has brackets, does not match."""


class Command(NamedTuple):
    """A line that a page tells its readers to type."""

    place: str
    """The page, and the line after which its block begins."""
    line: str
    words: str
    """The arguments, without a redirection."""

    @property
    def page(self) -> str:
        """The name of the page's file."""
        return self.place.partition(":")[0]


def blocks(page: Path, introduction: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each indented block after a line such as *introduction*."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if introduction.fullmatch(line.strip()):
            indent = len(line) - len(line.lstrip())
            end = re.compile(rf" {{0,{indent}}}\S")
            inside = (
                n for n, candidate in enumerate(lines) if n >= number and end.match(candidate)
            )
            block = "\n".join(lines[number : next(inside, None)])
            yield f"{page.name}:{number}", textwrap.dedent(block).strip("\n")


def commands() -> list[Command]:
    """Return the commands of all pages, those of a page in its order."""
    return [
        Command(place, match["line"], match["words"])
        for page in PAGES
        for place, text in sorted(
            [*blocks(page, CONSOLE), *blocks(page, LITERAL)],
            key=lambda block: int(block[0].partition(":")[2]),
        )
        for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines()
        if (match := _COMMAND.fullmatch(line))
    ]
