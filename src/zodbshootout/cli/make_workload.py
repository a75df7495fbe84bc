"""``zodbshootout workload make``: write a made-up workload with a mixture of loads and stores."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from zodbshootout.cli.arguments import option
from zodbshootout.cli.output import Streams
from zodbshootout.cli.values import count, count_or_zero, number, share, whole
from zodbshootout.errors import UserError
from zodbshootout.recording.mixture import (
    PRESETS,
    Distribution,
    Mixture,
    distribution_of,
    make,
    skew_of,
)
from zodbshootout.results.replacement import replace_file, to_be_replaced


def _read(function: Callable[[str], Any]) -> Callable[[str], Any]:
    """Make *function* a type for argparse: its ValueError becomes the option's error message."""

    def read(text: str) -> Any:
        try:
            return function(text)
        except ValueError as error:
            raise ArgumentTypeError(f"{text!r}: {error}") from None

    return read


_DISTRIBUTION = _read(distribution_of)
# Events are timed in whole nanoseconds, which limits the rate.
_RATE = number(float, lambda n: 0 < n <= 1e9, "a number of transactions a second")  # noqa: PLR2004


@dataclass(frozen=True)
class MakeOptions:
    """Write a workload of transactions with a given mixture of loads and stores.

    N is a number, uniform:LOW-HIGH, geometric:MEAN or lognormal:MEDIAN[,SIGMA].
    """

    # fmt: off
    output: Path = option("-o --output FILE", type=Path, required=True)
    preset: str = option("--preset", "", choices=sorted(PRESETS),
        help="start from the mixture of a typical application; other options override it")
    transactions: int | None = option(
        "--transactions NUMBER", type=count, help="transactions (default: 10000)")
    connections: int | None = option("--connections NUMBER", type=count,
        help="connections that run the transactions (default: 4)")
    objects: int | None = option(
        "--objects NUMBER", type=count, help="objects that exist at the start (default: 10000)")
    loads: Distribution | None = option(
        "--loads N", type=_DISTRIBUTION, help="loads per transaction (default: geometric:20)")
    writes: float | None = option(
        "--writes PERCENT", type=share, help="transactions that store anything (default: 10%%)")
    stores: Distribution | None = option("--stores N", type=_DISTRIBUTION,
        help="stores per transaction that stores anything (default: 2)")
    new: float | None = option(
        "--new PERCENT", type=share, help="stores that create an object (default: 0%%)")
    counters: int | None = option("--counters NUMBER", type=count_or_zero,
        help="objects with conflict resolution; each writing transaction also stores one "
        "(default: 0)")
    size: Distribution | None = option(
        "--size N", type=_DISTRIBUTION, help="bytes of a record (default: lognormal:300)")
    skew: float | None = option("--hot zipf:EXPONENT|uniform", type=_read(skew_of),
        help="popularity of the objects (default: zipf:0.99)")
    rate: float | None = option(
        "--rate NUMBER", type=_RATE, help="transactions a second (default: 100)")
    seed: int | None = option("--seed", type=whole, help="seed of the random numbers (default: 0)")
    # fmt: on


def run(options: MakeOptions, streams: Streams) -> int:
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
