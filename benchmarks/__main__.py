"""The command ``python -m benchmarks [--quick] [--against REV] [NAME ...]``, run in the checkout.

It prints a line for each figure as soon as it is measured: its name, its value, its goal, and
whether the goal is reached.  The exit status is 1 if a goal is missed or a figure not measured.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator, Sequence

from benchmarks.line import Line, NotMeasured

NAMES = (
    "precision",
    "error_rates",
    "verdicts",
    "costs",
    "releases",
    "share",
    "against_0_8",
    "capacity",
    "plain",
    "start_spread",
    "distance",
    "recording",
    "recording_cost",
    "replaying",
    "rates",
    "filling",
    "memory",
    "hosts",
)
"""The modules of this package that measure figures."""


def main(arguments: Sequence[str]) -> int:
    """Measure the figures of the named modules, by default of all; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="try each briefly; proves nothing")
    parser.add_argument(
        "--against", metavar="REV", default="", help="a Git revision to measure in turn; precision"
    )
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if chosen.against and chosen.names != ["precision"]:
        parser.error("--against is for precision alone")
    more = {"against": chosen.against} if chosen.against else {}
    reached = True
    for name in chosen.names or NAMES:
        for figure in _figures(name, quick=chosen.quick, **more):
            print(figure, flush=True)  # noqa: T201
            reached = reached and figure.reached is not False
    return int(not reached)


def _figures(name: str, *, quick: bool, **more: str) -> Iterator[Line]:
    module = importlib.import_module(f"benchmarks.{name}")
    try:
        yield from module.measure(quick=quick, **more)
    except NotMeasured as error:
        yield Line(name, "not measured", str(error), reached=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
