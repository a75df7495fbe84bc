"""A measured figure, its goal, and whether the goal is reached."""

from __future__ import annotations

from dataclasses import dataclass


class NotMeasured(Exception):  # noqa: N818
    """A figure could not be measured; the message says why."""


@dataclass(frozen=True)
class Line:
    """One line of the command's output."""

    name: str
    measured: str
    """The measured value with its unit."""
    goal: str = ""
    """The limit with its unit; empty if the figure only explains others."""
    reached: bool | None = None
    """Whether the goal is reached; ``None`` without a goal."""

    def __str__(self) -> str:
        verdict = "" if self.reached is None else ("reached" if self.reached else "missed")
        return f"{self.name:<36} {self.measured:>14}  {self.goal:<16} {verdict}".rstrip()


def at_most(name: str, measured: float, limit: float, form: str) -> Line:
    """Return a figure whose goal is at most *limit*, both written in *form*."""
    return Line(name, form.format(measured), f"<= {form.format(limit)}", measured <= limit)


def at_least(name: str, measured: float, limit: float, form: str) -> Line:
    """Return a figure whose goal is at least *limit*, both written in *form*."""
    return Line(name, form.format(measured), f">= {form.format(limit)}", measured >= limit)


def between(name: str, measured: float, lowest: float, highest: float, form: str) -> Line:
    """Return a figure whose goal lies between *lowest* and *highest*, all written in *form*."""
    goal = f"{form.format(lowest)} to {form.format(highest)}"
    return Line(name, form.format(measured), goal, lowest <= measured <= highest)


def info(name: str, measured: float, form: str) -> Line:
    """Return a figure without a goal."""
    return Line(name, form.format(measured))
