"""A figure: what it came to, what is to be reached, and whether it is."""

from __future__ import annotations

from dataclasses import dataclass


class NotMeasured(Exception):  # noqa: N818
    """A figure could not be measured; the message tells why."""


@dataclass(frozen=True)
class Figure:
    """One line of what the command prints."""

    name: str
    found: str
    """What it came to, with its unit."""
    wanted: str = ""
    """What is to be reached; empty where the line merely says more about others."""
    reached: bool | None = None
    """Whether it is; ``None`` where there is nothing to reach."""

    def __str__(self) -> str:
        verdict = "" if self.reached is None else ("reached" if self.reached else "missed")
        return f"{self.name:<36} {self.found:>14}  {self.wanted:<16} {verdict}".rstrip()


def at_most(name: str, found: float, limit: float, form: str) -> Figure:
    """Return a figure that is to be at most *limit*; *form* is how both are written."""
    return Figure(name, form.format(found), f"<= {form.format(limit)}", found <= limit)


def at_least(name: str, found: float, limit: float, form: str) -> Figure:
    """Return a figure that is to be at least *limit*; *form* is how both are written."""
    return Figure(name, form.format(found), f">= {form.format(limit)}", found >= limit)


def between(name: str, found: float, lowest: float, highest: float, form: str) -> Figure:
    """Return a figure that is to lie between two others; *form* is how all are written."""
    wanted = f"{form.format(lowest)} to {form.format(highest)}"
    return Figure(name, form.format(found), wanted, lowest <= found <= highest)


def told(name: str, found: float, form: str) -> Figure:
    """Return a line that merely says more about others."""
    return Figure(name, form.format(found))
