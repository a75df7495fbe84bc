"""``zodbshootout compare``: say which side is faster, by how much, and whether significantly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from zodbshootout.cli.arguments import flag, given_by, option, several
from zodbshootout.cli.gate import judged, status_of
from zodbshootout.cli.output import Streams
from zodbshootout.cli.show import FILES, labels
from zodbshootout.cli.values import limit, quantity
from zodbshootout.errors import UserError, suggestion
from zodbshootout.model.parameters import PARAMETERS, Scope
from zodbshootout.model.quantities import QUANTITIES, Quantity
from zodbshootout.model.specification import INSTALLED
from zodbshootout.reports import checked_format
from zodbshootout.reports.comparison import comparison_report
from zodbshootout.reports.elements import Report
from zodbshootout.results.axes import CONTENDERS, ENVIRONMENTS, Axis, at_distances, axes_of
from zodbshootout.results.files import damage_of, read_results
from zodbshootout.results.names import long_name
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import Comparison, compare, differing

IGNORABLE = tuple(
    dict.fromkeys(
        one.option
        for one in PARAMETERS
        if one.option and one.scope not in {Scope.PACE, Scope.DISTANCE}
    )
)
"""The options of a run that ``--ignore`` accepts, to compare cells that differ in them."""
_SIDES = "--contender --environment --define"


@dataclass(frozen=True)
class CompareOptions:
    """Say which of two sides is faster, by how much, and whether the difference is significant."""

    # fmt: off
    usage: ClassVar = (
        "zodbshootout compare BASE NEW [option ...]\n"
        "       zodbshootout compare FILE --contender A B [option ...]\n"
        "       zodbshootout compare FILE --environment A B [option ...]\n"
        "       zodbshootout compare FILE --define NAME [option ...]"
    )
    epilog: ClassVar = (
        "Exit status: 0, or 1 if --fail-above finds a slowdown or a missing figure; 2 bad usage."
    )
    files: Sequence[Path] = given_by(FILES)
    contender: Sequence[str] = option("--contender A B", (), nargs=2, one_of=_SIDES,
        help="compare contender B of NEW with A of BASE; both may be in one file")
    environment: Sequence[str] = option(
        "--environment A B", (), nargs=2, type=str.lower, one_of=_SIDES,
        help="compare each contender in environment B with itself in environment A; for A and B, "
        "write the part of a contender's name after the @, or "
        f"{INSTALLED!r} for the installed packages")
    define: str = option("--define NAME", "", type=str.lower, one_of=_SIDES,
        help="compare the first value of NAME in the run's --define with each of the other values, "
        "for each contender")
    metric: Quantity | None = option("--metric NAME", type=quantity,
        help="compare this quantity instead of the speed: "
        f"{', '.join(QUANTITIES)}, or any other percentile of latencies, such as p99.5")
    ignore: Sequence[str] = several("--ignore OPTION", choices=IGNORABLE,
        help="compare cells even if they differ in this option of the run (repeatable): "
        f"{', '.join(IGNORABLE)}")
    fail_above: float | None = option("--fail-above PERCENT", type=limit,
        help="exit with status 1 if NEW takes significantly longer and the whole confidence "
        "interval of the slowdown is above PERCENT, or if NEW lacks a figure that BASE has, "
        "because the cell is missing, failed or cannot keep up")
    verbose: bool = flag("-v --verbose", help="list everything that differs besides the figures")
    format: str = option("--format FORMAT", "text", help="a format of zodbshootout show")
    # fmt: on


def run(options: CompareOptions, streams: Streams) -> int:
    """Print a comparison; return the exit status.

    :raises UserError: if something cannot be read, compared or shown
    """
    with damage_of(*options.files):
        return _compare(options, streams)


def _compare(options: CompareOptions, streams: Streams) -> int:
    write = checked_format(options.format, pictures=False)
    if len(options.files) > 2:  # noqa: PLR2004
        raise UserError("compare: give two files, or one and --contender A B")
    results = [_read_times(path) for path in options.files]
    compared = _values(options, results) if options.define else [_sides(options, results)]
    is_finding = any(sides.lost and not sides.only_new for sides in compared)
    if options.fail_above is None or not is_finding:
        _check_comparable(compared, options.files)
    reports = [
        comparison_report(
            sides, f"{sides.new} and {sides.base}" * bool(options.define), verbose=options.verbose
        )
        for sides in compared
    ]
    records = [record for report in reports for record in report.records]
    write(Report(parts=reports, records=records) if options.define else reports[0], streams.out)
    judgements = (one for sides in compared for one in judged(sides, options.fail_above))
    return status_of(judgements, streams)


def _sides(options: CompareOptions, results: Sequence[Sequence[CellResult]]) -> Comparison:
    """Compare two files, or two contenders or environments."""
    files = options.files
    titles = labels(files) if len(files) > 1 else ["", ""]
    base, new = results[0], results[-1]
    names = options.environment or options.contender or _default_contenders(base, new, files)
    axis = ENVIRONMENTS if options.environment else CONTENDERS
    if names:
        if axis is CONTENDERS:
            base, new = _named_by_title(names, base, new)
        base, new = map(partial(_chosen, axis), names, (base, new), (files[0], files[-1]))
        titles = [": ".join(filter(None, words)) for words in zip(titles, names, strict=True)]
    if options.metric:
        of = names or ("", "")
        _check_recorded(options.metric, base, of[0], files[0])
        _check_recorded(options.metric, new, of[1], files[-1])
    across = axis is CONTENDERS and bool(names)
    comparison = compare(base, new, options.ignore, across=across, quantity=options.metric)
    return comparison.named(titles[0], titles[1])


def _values(options: CompareOptions, results: Sequence[Sequence[CellResult]]) -> list[Comparison]:
    """Compare the first value of a name in ``--define`` with each of the others."""
    if len(results) > 1:
        raise UserError("compare: --define compares values within one file; give one file")
    name, axes = options.define, {axis.key: axis for axis in axes_of(results[0])}
    by_value = axes[name].divided(results[0]) if name in axes else {}
    first, *others = by_value or [""]
    if not others:
        advice = suggestion(name, list(axes)) if axes else "the run was without --define"
        raise UserError(f"--define: no values of {name!r} in {options.files[0]}; {advice}")
    return [
        compare(by_value[first], by_value[value], options.ignore, quantity=options.metric).named(
            f"{name}={first}", f"{name}={value}"
        )
        for value in others
    ]


def _read_times(path: Path) -> list[CellResult]:
    results = read_results(path)
    if any(result.measured and not result.timed for result in results):
        raise UserError(f"{path} holds memory, not times: compare it with pyperf compare_to")
    return results


def _check_recorded(metric: Quantity, results: Sequence[CellResult], of: str, path: Path) -> None:
    """Check that some result has a quantity; *of* names a contender or an environment."""
    if any(result.figures[metric] for result in results):
        return
    owner = f" of {of}" if of else ""
    servers = f": the run started no server{' for it' if of else ''}" if metric.of_server else ""
    raise UserError(f"--metric: {path} has no {metric.name}{owner}{servers}")


def _default_contenders(
    base: Sequence[CellResult], new: Sequence[CellResult], files: Sequence[Path]
) -> list[str] | None:
    """Return the contenders of two files if each has one and their names differ, else ``None``."""
    of_base, of_new = (list(CONTENDERS.divided(side)) for side in (base, new))
    if len(files) == 1:
        raise UserError(
            f"compare: {files[0]} is one file; name two of its contenders with --contender: "
            f"{', '.join(dict.fromkeys(result.cell.title for result in base))}"
        )
    if len(of_base) == len(of_new) == 1 and of_base != of_new:
        return [*of_base, *of_new]
    return None


def _named_by_title(names: Sequence[str], *sides: Sequence[CellResult]) -> list[list[CellResult]]:
    """Return the sides with titles as contenders' names if *names* are titles, as in ``pg [2ms]``.

    Otherwise, *names* stand for contenders at all distances.
    """
    if all(
        name in {result.cell.title for result in side}
        for name, side in zip(names, sides, strict=True)
    ):
        return [
            [replace(result, cell=result.cell.named_by_title) for result in side] for side in sides
        ]
    return [at_distances(side) for side in sides]


def _chosen(axis: Axis, name: str, results: Sequence[CellResult], path: Path) -> list[CellResult]:
    """Return the results with a value on an axis, without the value in their cells.

    :raises UserError: if there are none
    """
    known = axis.divided(results)
    if name not in known:
        raise UserError(f"--{axis.key}: no {name!r} in {path}; {suggestion(name, list(known))}")
    return known[name]


def _check_comparable(comparisons: Sequence[Comparison], files: Sequence[Path]) -> None:
    """Check that some sides have a cell in common; the error says why the first have none."""
    if any(comparison.changes for comparison in comparisons):
        return
    comparison = comparisons[0]
    if comparison.overloaded:
        raise UserError(
            f"compare: {long_name(comparison.overloaded[0].cell)} cannot keep up, so there are no "
            "latencies to compare; measure a lower --rate"
        )
    if not (comparison.only_base and comparison.only_new):
        empty = files[-1] if comparison.only_base else files[0]
        raise UserError(f"compare: {empty} holds nothing that could be compared")
    for base in comparison.only_base:
        for new in comparison.only_new:
            if base.cell.benchmark == new.cell.benchmark:
                names = differing(base.cell, new.cell)
                options = [option for option in IGNORABLE if option in names]
                if options:
                    advice = " ".join(f"--ignore {option}" for option in options)
                    raise UserError(
                        f"compare: {long_name(base.cell)} and {long_name(new.cell)} differ in "
                        f"{', '.join(options)}; to compare them anyway, add {advice}"
                    )
    raise UserError(
        "compare: no benchmark of a contender was measured on both sides; "
        "to compare two contenders, add --contender A B"
    )
