"""The values of options: text in, numbers out, or what is wrong with it.

Each function raises :class:`argparse.ArgumentTypeError`, which the parser tells with the option.
"""

from __future__ import annotations

import argparse
import math

from zodbshootout.client.data.records import smallest_record

MAX_CLIENTS = 1000
"""A crew is no larger: a larger one runs into the system's limits of processes and of files."""
LONGEST_RANGE = 128
SMALLEST_NODE = 2


def whole(text: str) -> int:
    """Return a number that may be negative."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def count(text: str) -> int:
    """Return a number from 1 on."""
    return _number_from(1, text, "a positive number")


def count_or_none(text: str) -> int:
    """Return a number from 0 on."""
    return _number_from(0, text, "0 or a positive number")


def counts(text: str) -> tuple[int, ...]:
    """Return numbers from 1 on, which are separated by commas, or ranges of them: ``1..16``."""
    return tuple(number for part in text.split(",") for number in _range(part))


def _range(text: str) -> range:
    first, dots, last = text.partition("..")
    numbers = range(count(first), count(last if dots else first) + 1)
    if not numbers:
        raise argparse.ArgumentTypeError(f"{text}: there is no number from {first} to {last}")
    if len(numbers) > LONGEST_RANGE:
        raise argparse.ArgumentTypeError(
            f"{text} is {len(numbers)} numbers, each of which would be measured; "
            f"{LONGEST_RANGE} can be"
        )
    return numbers


def crew_sizes(text: str) -> tuple[int, ...]:
    """Return numbers of clients, which are separated by commas."""
    sizes = counts(text)
    if max(sizes) > MAX_CLIENTS:
        raise argparse.ArgumentTypeError(
            f"{max(sizes)} clients are too many; {MAX_CLIENTS} can be at work at a time"
        )
    return sizes


def record_sizes(text: str) -> tuple[int, ...]:
    """Return sizes of stored objects, in bytes, which are separated by commas."""
    sizes = counts(text)
    if min(sizes) < smallest_record():
        raise argparse.ArgumentTypeError(
            f"a stored object takes at least {smallest_record()} bytes, not {min(sizes)}"
        )
    return sizes


def node_size(text: str) -> int:
    """Return how much a node of a BTree holds."""
    size = count(text)
    if size < SMALLEST_NODE:
        raise argparse.ArgumentTypeError(f"a node of a BTree holds at least {SMALLEST_NODE}")
    return size


def part(text: str) -> float:
    """Return a part of a whole."""
    number = _float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return number


def percentage(text: str) -> float:
    """Return the part that a number of per cent is, written with or without the sign."""
    number = _float(text.strip().removesuffix("%"))
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage, such as 2%")
    return number / 100


def minutes(text: str) -> float:
    """Return a number of minutes above 0."""
    return _above_zero(text, "minutes")


def seconds(text: str) -> float:
    """Return a number of seconds above 0."""
    return _above_zero(text, "seconds")


def _number_from(least: int, text: str, what: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return number


def _above_zero(text: str, unit: str) -> float:
    number = _float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of {unit} above 0")
    return number


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
