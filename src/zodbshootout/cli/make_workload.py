"""``zodbshootout workload make``: write a made-up workload with a mixture of loads and stores."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from zodbshootout.cli.output import Streams
from zodbshootout.cli.values import count, count_or_zero, number, share, whole
from zodbshootout.errors import UserError
from zodbshootout.recording.mixture import PRESETS, Mixture, distribution_of, make, skew_of
from zodbshootout.results.replacement import replace_file, to_be_replaced


def _read(function: Callable[[str], Any]) -> Callable[[str], Any]:
    """Make *function* a type for argparse: its ValueError becomes the option's error message."""

    def read(text: str) -> Any:
        try:
            return function(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None

    return read


_DISTRIBUTION = _read(distribution_of)
# Events are timed in whole nanoseconds, which limits the rate.
_RATE = number(float, lambda n: 0 < n <= 1e9, "a number of transactions a second")  # noqa: PLR2004
_NUMBERS: Mapping[str, tuple[Callable[[str], Any], str, str]] = {
    "transactions": (count, "NUMBER", "transactions (default: 10000)"),
    "connections": (count, "NUMBER", "connections that run the transactions (default: 4)"),
    "objects": (count, "NUMBER", "objects that exist at the start (default: 10000)"),
    "loads": (_DISTRIBUTION, "N", "loads per transaction (default: geometric:20)"),
    "writes": (share, "PERCENT", "transactions that store anything (default: 10%%)"),
    "stores": (_DISTRIBUTION, "N", "stores per transaction that stores anything (default: 2)"),
    "new": (share, "PERCENT", "stores that create an object (default: 0%%)"),
    "counters": (
        count_or_zero,
        "NUMBER",
        "objects with conflict resolution; each writing transaction also stores one (default: 0)",
    ),
    "size": (_DISTRIBUTION, "N", "bytes of a record (default: lognormal:300)"),
}
"""The type, the metavar and the help of each option for a number."""


def run(options: argparse.Namespace, streams: Streams) -> int:
    """Write the workload; return the exit status.

    :raises UserError: if the file exists or cannot be written
    """
    given = {
        field.name: value
        for field in fields(Mixture)
        if (value := getattr(options, field.name)) is not None
    }
    mixture = replace(PRESETS.get(options.preset, Mixture()), **given)
    target = to_be_replaced(options.output)
    if target is not None and target.exists():
        raise UserError(f"-o: {options.output} exists; name another file")
    replace_file(options.output, partial(make, mixture))
    if target is None:
        return 0
    streams.say(f"Workload: {options.output}")
    streams.say(f"Next:\n  zodbshootout workload {options.output}")
    streams.say(f"  zodbshootout replay --workload {options.output}")
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command to its parser."""
    parser.description = (
        "Write a workload of transactions with a given mixture of loads and stores.  N is a "
        "number, uniform:LOW-HIGH, geometric:MEAN or lognormal:MEDIAN[,SIGMA]."
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", required=True)
    parser.add_argument(
        "--preset", choices=sorted(PRESETS),
        help="start from the mixture of a typical application; other options override it",
    )  # fmt: skip
    for name, (kind, metavar, text) in _NUMBERS.items():
        parser.add_argument(f"--{name}", type=kind, metavar=metavar, help=text)
    parser.add_argument(
        "--hot", dest="skew", type=_read(skew_of), metavar="zipf:EXPONENT|uniform",
        help="popularity of the objects (default: zipf:0.99)",
    )  # fmt: skip
    parser.add_argument(
        "--rate", type=_RATE, metavar="NUMBER", help="transactions a second (default: 100)"
    )
    parser.add_argument("--seed", type=whole, help="seed of the random numbers (default: 0)")
