"""Two sides, such as two files: the cells that they have in common, and what differs besides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from zodbshootout.errors import UserError
from zodbshootout.model.grouping import grouped
from zodbshootout.model.outcome import State
from zodbshootout.model.parameters import DISTANCE, PARAMETERS
from zodbshootout.model.quantities import Quantity
from zodbshootout.model.settings import Path, Settings
from zodbshootout.model.titles import environment_of
from zodbshootout.results.axes import at_distances, families
from zodbshootout.results.cell import Cell
from zodbshootout.results.changes import Change, changes_of
from zodbshootout.results.estimate import MIN_RUNS, runs_needed
from zodbshootout.results.figures import compared
from zodbshootout.results.names import long_name
from zodbshootout.results.result import CellResult, versions_in


@dataclass(frozen=True)
class Difference:
    """A fact or a setting that differs between two sides."""

    path: Path
    """The name of the fact, or the path of the setting."""
    base: Sequence[str | None]
    """The values on the side of the base; ``None`` for a cell that lacks it."""
    new: Sequence[str | None]

    @property
    def is_one_sided(self) -> bool:
        """Whether a side lacks it in all cells."""
        return [None] in (self.base, self.new)

    def __str__(self) -> str:
        base, new = (
            ", ".join("-" if one is None else one for one in side) for side in (self.base, self.new)
        )
        return f"{'.'.join(self.path)}: {base} against {new}"


@dataclass(frozen=True)
class Comparison:
    """The cells that two sides have in common, and the cells that only one side has."""

    changes: Sequence[Change]
    only_base: Sequence[CellResult]
    only_new: Sequence[CellResult]
    overloaded: Sequence[CellResult]
    """Results of both sides that are not compared because they do not keep up with their rate."""
    lost: Sequence[CellResult]
    """The new results of cells that failed, do not keep up or are missing, although the base has a
    figure.  The state of a missing cell is ``NOT_RUN``."""
    common: Sequence[tuple[CellResult, CellResult]]
    """The cells that both sides measured, whether or not they keep up with their rate."""
    base: str = "base"
    """The name of the side that the other one is compared with, such as the title of a column."""
    new: str = "new"
    """The name of the other side."""
    is_variant: bool = False
    """Whether *new* is a variant of *base*, and is not one of several releases."""
    is_release: bool = False
    """Whether *new* is one of several releases."""

    def named(self, base: str, new: str) -> Comparison:
        """Return the comparison with names of the sides."""
        return replace(self, base=base, new=new)

    @property
    def by_distance(self) -> list[Comparison]:
        """A comparison for each round-trip time."""
        distances = (DISTANCE.in_row(change.base.cell.parameters) for change in self.changes)
        groups = grouped(zip(distances, self.changes, strict=True))
        return [replace(self, changes=changes) for changes in groups.values()]

    @cached_property
    def differences(self) -> Sequence[Difference]:
        """The facts that differ, followed by the contenders' settings that differ."""
        facts = [(_facts(base), _facts(new)) for base, new in self.common]
        settings = [(base.settings, new.settings) for base, new in self.common]
        return [*_differing(facts), *_differing(settings)]


def originals_of(results: Sequence[CellResult]) -> dict[str, str]:
    """Map each measured column to the title of its base, or to an empty text if it has no base.

    The base of a variant is the contender in the base environment or with the first values of
    ``--define``.  Among releases, it is the oldest release that was measured.
    """
    cells = {one.cell.column: one.cell for one in results if one.measured}
    firsts = {cell.contender: column for column, cell in reversed(cells.items())}
    originals = {}
    for column, cell in cells.items():
        base = cell.contender if environment_of(cell.variant) else firsts[cell.contender]
        originals[column] = "" if base == column else base
    for family in families(results):
        oldest, *newer = [column for column in family.values if column in originals] or [""]
        if newer:
            originals |= {oldest: "", **dict.fromkeys(newer, oldest)}
    return originals


def pairs_to_compare(
    originals: Mapping[str, str], baseline: str | None = None
) -> list[tuple[str, str]]:
    """Return the pairs of contenders to compare, the base of each comparison first.

    *originals* has the measured contenders in order, and the base of each.  An empty base stands
    for the first contender or, if that is a variant, for the variant's original.  If the user named
    a *baseline*, it is the base of all others.
    """
    first = next(iter(originals), "")
    first = originals.get(first) or first
    bases = {name: baseline or original or first for name, original in originals.items()}
    return [(base, name) for name, base in bases.items() if base != name and base in originals]


def compare(
    base: Sequence[CellResult],
    new: Sequence[CellResult],
    ignored: Collection[str] = (),
    *,
    across: bool = False,
    quantity: Quantity | None = None,
) -> Comparison:
    """Compare a *quantity* of the cells that both sides measured, by default the cells' figures.

    Two cells are compared if their benchmarks and parameters are the same.  Parameters of *ignored*
    options may differ.  The contenders have to be the same too, unless *across* is set.

    :raises UserError: if several cells of one side are the same without the *ignored* options
    """
    sides = [_by_key(side, ignored, across=across) for side in (base, new)]
    of_base, of_new = (
        {
            key: one
            for key, one in side.items()
            if one.measured and (quantity is None or one.figures[quantity] is not None)
        }
        for side in sides
    )
    common = [(one, of_new[key]) for key, one in of_base.items() if key in of_new]
    figures = [
        (figure, other)
        for sides in common
        for ours, theirs in [[compared(one, quantity) for one in sides]]
        for figure in ours
        for other in theirs
        if figure.quantity is other.quantity
    ]
    return Comparison(
        changes_of(figures),
        [one for key, one in of_base.items() if key not in of_new],
        [one for key, one in of_new.items() if key not in of_base],
        [result for result in (*base, *new) if result.measured and not result.keeps_up],
        list(_lost(sides[0], sides[1], quantity)),
        common,
    )


_Key = tuple[Any, ...]
"""The benchmark, the contender and the parameters by which cells are compared."""


def _by_key(
    results: Iterable[CellResult], ignored: Collection[str], *, across: bool
) -> dict[_Key, CellResult]:
    by_key: dict[_Key, CellResult] = {}
    for result in results:
        cell = result.cell
        values = (one.of(cell.parameters) for one in PARAMETERS if one.option not in ignored)
        key = (cell.benchmark, "" if across else cell.column, *values)
        known = by_key.get(key)
        if known is not None and known.measured and result.measured:
            raise UserError(
                f"--ignore: only ignored options distinguish {long_name(known.cell)} and "
                f"{long_name(cell)}; ignore fewer options"
            )
        if known is None or result.measured:
            by_key[key] = result
    return by_key


def _lost(
    of_base: Mapping[_Key, CellResult], of_new: Mapping[_Key, CellResult],
    quantity: Quantity | None,
) -> Iterator[CellResult]:  # fmt: skip
    for key, base in of_base.items():
        new = of_new.get(key, CellResult(base.cell))
        has_failed = new.state is State.FAILED and base.state is not State.FAILED
        there, still_there = (
            {figure.quantity for figure in compared(side, quantity)} for side in (base, new)
        )
        if there and (has_failed or there - still_there):
            yield new


def differing(base: Cell, new: Cell) -> set[str]:
    """Return the options that set parameters in which two cells differ."""
    return {one.option for one in PARAMETERS if one.of(base.parameters) != one.of(new.parameters)}


def rounds_needed(results: Iterable[CellResult], baseline: str | None, precision: float) -> int:
    """Predict the number of rounds that a row needs to reach a *precision*.

    The *precision* is half the width of a confidence interval, as a fraction of the figure.  Each
    contender's figure has to reach it, and so does the ratio of each pair to compare.  *results*
    are the measured cells of the row, with all their phases and distances.
    """
    there = at_distances(list(results))
    columns = grouped((result.cell.column, result) for result in there)
    figures = (figure for result in there for figure in compared(result))
    rounds = [runs_needed(one.relative, len(one.runs), precision) for one in figures]
    for base, new in pairs_to_compare(originals_of(there), baseline):
        for change in compare(columns[base], columns[new], across=True).changes:
            left_out = min(len(change.base.runs), len(change.new.runs)) - change.ratio.runs
            rounds.append(left_out + change.ratio.runs_needed(precision))
    return max(rounds, default=MIN_RUNS)


_FACTS = (
    "durability", "durability_detail",
    "environment", "hostname", "platform", "cpu_model_name", "cpu_count", "cpu_affinity",
    "python_implementation", "python_version", "driver", "storage_classes", "sharing",
    "corrections", "packed", "zapped", "uncleared_caches", "profiler",
    "work_per_iteration", "unit",
)  # fmt: skip
"""The metadata that may explain a difference, besides versions and settings."""


def _differing(pairs: Sequence[tuple[Settings, Settings]]) -> list[Difference]:
    """Return a difference for each path whose values differ."""
    paths = dict.fromkeys(path for pair in pairs for side in pair for path in side)
    differing = []
    for path in paths:
        values = [
            (base.get(path), new.get(path))
            for base, new in pairs
            if base.get(path) != new.get(path)
        ]
        if values:
            base, new = (list(dict.fromkeys(side)) for side in zip(*values, strict=True))
            differing.append(Difference(path, base, new))
    return differing


def _facts(result: CellResult) -> dict[Path, str]:
    runs = result.facts
    versions = grouped(pair for keys in runs for pair in versions_in(keys).items())
    facts = {
        **{name: [str(keys[name]) for keys in runs if name in keys] for name in _FACTS},
        **{f"version_{package}": versions[package] for package in sorted(versions)},
        "uncleared_caches": result.uncleared_caches,
    }
    return {(name,): ", ".join(dict.fromkeys(one)) for name, one in facts.items() if one}
