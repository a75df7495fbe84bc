"""Units: how the amounts of a unit are printed, and how users write them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
"""Units of time: the length of each in seconds, and its symbol."""
_SIZES = ("B", "kB", "MB", "GB", "TB")
"""Units of sizes, each a thousand times the previous one."""
_BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
"""The letters of sizes as users write them, as in ZConfig."""
_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
MILLIONS = 10_000_000
"""A rate of at least this many a second is printed in millions."""


@dataclass(frozen=True)
class Unit:
    """A unit of amounts."""

    symbol: str
    """The unit's symbol in files for other programs; empty for plain numbers."""
    noun: str
    """The words for what the user has to write: ``a time, such as 50ms``."""
    printed: Callable[[float, int], str]
    """A function that returns the text for an amount with a number of significant digits."""
    read: Callable[[str], float]
    """A function that reads what :attr:`noun` describes; it may raise a ValueError."""
    digits: int = 3
    """The usual number of significant digits."""
    is_exact: bool = False
    """Whether amounts of single runs are exact, because they are counted."""

    def text(self, amount: float, digits: int = 0) -> str:
        """Return the text for *amount*.

        If *digits* are given, all other digits become 0.  Otherwise, whole numbers have all digits.
        """
        rounded = float(f"{amount:.{digits}g}") if digits else amount
        return self.printed(rounded, digits or self.digits)

    def parsed(self, text: str) -> float:
        """Return the amount that a user writes.

        :raises ValueError: if *text* is not such an amount; the message says what to write
        """
        try:
            amount = self.read(text.strip().lower())
        except ValueError:
            amount = math.nan
        if not 0 <= amount < math.inf:
            raise ValueError(f"{text!r} is not {self.noun}")
        return amount


def significant(amount: float, digits: int = 3) -> str:
    """Return a number with *digits* significant digits; from 100 on, as a whole number."""
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:.{digits}g}"  # noqa: PLR2004


def _seconds(amount: float, digits: int) -> str:
    rounded = float(f"{amount:.{digits}g}")
    if not rounded:
        return "0 s"
    scale, symbol = next((time for time in _TIMES if rounded >= time[0]), _TIMES[-1])
    before_point = len(str(int(rounded / scale)))
    return f"{amount / scale:,.{max(0, digits - before_point)}f} {symbol}"


def _bytes(amount: float, digits: int) -> str:
    power = min(int(math.log10(amount)) // 3, len(_SIZES) - 1) if amount >= 1 else 0
    return f"{significant(amount / 1000.0**power, digits)} {_SIZES[power]}"


def _per_second(amount: float, digits: int) -> str:
    return f"{amount / 1e6:,.1f}M" if amount >= MILLIONS else significant(amount, digits)


def _multiples(pattern: str, letters: dict[str, int]) -> Callable[[str], float]:
    """Return a function that reads a number with a letter, such as ``10k``."""

    def read(text: str) -> float:
        match = re.fullmatch(pattern, text, re.ASCII)
        if match is None:
            raise ValueError(text)
        return float(match[1]) * letters[match[2]]

    return read


def _time(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|ms|us|ns)", text, re.ASCII)
    if match is None:
        raise ValueError(text)
    return float(match[1]) * next(length for length, symbol in _TIMES if symbol == match[2])


_NUMBER = r"(\d+(?:\.\d+)?)\s*([kmg]?)"
_read_number = _multiples(_NUMBER, _DECIMAL)

SECONDS = Unit("s", "a time, such as 50ms", _seconds, _time)
BYTES = Unit(
    "bytes", "a size in bytes, such as 300, 1k or 1MB", _bytes,
    _multiples(_NUMBER + "(?:b|(?<=[kmg])ib)?", _BINARY),
)  # fmt: skip
PER_SECOND = Unit("1/s", "0 or a positive number, such as 1000 or 10k", _per_second, _read_number)
RATE = Unit(
    "1/s", PER_SECOND.noun, lambda amount, digits: f"{_per_second(amount, digits)}/s", _read_number
)
"""Rates in tables whose other rows have other units."""
NUMBER = Unit(
    "", "a number, such as 12", lambda amount, digits: f"{amount:,.{digits}g}", _read_number,
    digits=4, is_exact=True,
)  # fmt: skip
AVERAGE = Unit(
    "", "a number, such as 0.5", lambda amount, digits: f"{amount:,.{digits}g}", _read_number
)
"""Counts per iteration, which vary from run to run."""
RATIO = Unit(
    "", "a number, such as 1.5", lambda amount, digits: f"{significant(amount, digits)}×",
    lambda text: _read_number(text.removesuffix("×").removesuffix("x")),
)  # fmt: skip
PERCENT = Unit(
    "%", "a percentage, such as 95%", lambda amount, _: f"{amount:.0%}",
    lambda text: float(text.removesuffix("%")) / 100,
)  # fmt: skip


def text_of_range(unit: Unit, amounts: Sequence[float]) -> str:
    """Return the least and the greatest amount, as in ``3 to 5``; equal ones are printed once."""
    return " to ".join(dict.fromkeys(unit.text(end) for end in (min(amounts), max(amounts))))
