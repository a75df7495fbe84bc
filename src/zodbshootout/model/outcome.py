"""Outcomes: the states of a cell, failures, and the exceptions that are reported as failures."""

from __future__ import annotations

import enum
import traceback
from dataclasses import dataclass


class State(enum.Enum):
    """The outcome of a cell."""

    MEASURED = "measured"
    FAILED = "failed"
    UNSUPPORTED = "not supported"
    NOT_RUN = "not run"


class CheckFailed(Exception):  # noqa: N818
    """An iteration did not do what its benchmark requires; the message says what it did instead."""


class Unsupported(Exception):  # noqa: N818
    """The contender cannot run this benchmark; the message says why."""


class BadSection(Exception):  # noqa: N818
    """The section of a contender cannot be read; the message says why."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message, line)
        self.message = message
        self.line = line
        """The number of the faulty line in the section, counted from 1; 0 if it is unknown."""

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Failure:
    """The reason why a cell could not be measured."""

    cause: str
    """The reason in one line."""
    detail: str = ""
    """A traceback, if there is one."""
    state: State = State.FAILED
    """``FAILED`` or ``UNSUPPORTED``."""
    secondary: bool = False
    """Whether the failure follows from another client's failure."""
    crashed: bool = False
    """Whether a process ended unexpectedly."""
    invalidates_results: bool = False
    """Whether a check failed, so that the figures of earlier runs are unreliable, too."""
    exited: bool = False
    """Whether the process that ended did so by itself, with an exit status."""
    exception: str = ""
    """The name of the class of the exception, if the failure is one."""
    section_line: int | None = None
    """The faulty line of the contender's section, 0 if unknown; ``None`` if the section is good."""


class Failed(Exception):  # noqa: N818
    """A client or a worker cannot go on, or its process has ended; ``failure`` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.cause)
        self.failure = failure

    def __reduce__(self) -> tuple[type[Failed], tuple[Failure]]:
        return Failed, (self.failure,)


def describe(error: BaseException) -> str:
    """Describe an exception in one line: its class, and the first two lines of its message.

    The class is left out for this module's exceptions, whose messages are written for users.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = " ".join(lines[:2])
    if isinstance(error, (CheckFailed, Unsupported, BadSection)):
        return message
    name = type(error).__name__
    return f"{name}: {message}" if message else name


def failure_of(error: BaseException, *, secondary: bool = False) -> Failure:
    """Return the failure to report for an exception."""
    if isinstance(error, Failed):
        return error.failure
    detail = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    state = State.UNSUPPORTED if isinstance(error, Unsupported) else State.FAILED
    return Failure(
        describe(error),
        detail,
        state,
        secondary,
        invalidates_results=isinstance(error, CheckFailed),
        exception=type(error).__name__,
        section_line=error.line if isinstance(error, BadSection) else None,
    )
