"""Errors that end the command: one line for the user, and an exit status."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

BAD_USAGE = 2


class UserError(Exception):
    """A mistake in the command line or the configuration.

    The message is one line: what is wrong, where, and what to type instead.
    """

    status = BAD_USAGE


def suggestion(wrong: str, allowed: Sequence[str]) -> str:
    """Return the allowed word that the user may have meant, or list all of them."""
    close = close_to(wrong, allowed)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"there are {', '.join(allowed)}"


def close_to(wrong: str, allowed: Iterable[str]) -> list[str]:
    """Return the allowed words that are similar to a *wrong* one, the most similar first."""
    by_lower = {word.lower(): word for word in allowed}
    return [by_lower[word] for word in difflib.get_close_matches(wrong.lower(), by_lower)]
