"""Errors that end the command with one line for the user and an exit status."""

from __future__ import annotations

import difflib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

ALL_MEASURED = 0
SLOWDOWN = 1
"""The status if ``--fail-above`` found a slowdown or a cell without a figure, or if ``--require``
found a missed limit."""
BAD_USAGE = 2
SOME_FAILED = 3
DEFECT = 70
"""The status after an unexpected exception: ``EX_SOFTWARE`` of BSD's sysexits.h."""
INTERRUPTED = 130
_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))


class UserError(Exception):
    """A mistake in the command line or the configuration, or a run that cannot go on.

    The message says in one line what is wrong, where, and what to type instead.
    """

    def __init__(self, message: str, status: int = BAD_USAGE) -> None:
        super().__init__(message)
        self.status = status


@contextmanager
def errors_of_files() -> Iterator[None]:
    """Turn an :class:`OSError` into a :class:`UserError` that names the file.

    If the temporary directory is full or missing, the message says how to choose another one.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
            *_, reason = error.args[0][0]  # of the first file that was not copied
        message = f"{error.filename}: {reason}" if error.filename else reason
        raise UserError(f"{message}{_advice(error, message)}") from error


def _advice(error: OSError, message: str) -> str:
    """Return advice if the temporary directory is full or missing; else, return ""."""
    place = tempfile.tempdir
    other = "name another directory in the environment variable TMPDIR"
    if place is None:
        return f"; make room, or {other}" if "temporary directory" in message else ""
    is_within = str(error.filename or place).startswith(place)
    if is_within and any(reason in message for reason in _FULL):
        return f"; make room in {place}, or {other}"
    return ""


def suggestion(wrong: str, allowed: Sequence[str]) -> str:
    """Suggest the words in *allowed* that resemble *wrong*; if none does, list all of them."""
    close = close_to(wrong, allowed)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"there are {', '.join(allowed)}"


def close_to(wrong: str, allowed: Iterable[str]) -> list[str]:
    """Return the words in *allowed* that resemble *wrong*, the most similar first."""
    by_lower = {word.lower(): word for word in allowed}
    if wrong.lower() in by_lower:
        return [by_lower[wrong.lower()]]
    return [by_lower[word] for word in difflib.get_close_matches(wrong.lower(), by_lower)]
