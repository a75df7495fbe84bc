"""Numbers and names in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """Return a number with a noun, which is in the plural unless the number is 1: ``3 runs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them: ``a, b and c``."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
