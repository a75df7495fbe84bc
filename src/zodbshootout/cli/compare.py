"""``zodbshootout compare``: say which of two is faster, by how much, and whether that is sure."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from zodbshootout.cli import argument_values
from zodbshootout.cli.arguments import raise_usage_errors
from zodbshootout.cli.show import TEXTS, check_format, headings, labels, results_in, write_as
from zodbshootout.cli.streams import Streams
from zodbshootout.client.specification import INSTALLED
from zodbshootout.errors import UserError, suggestion
from zodbshootout.reports.comparison import comparison_report
from zodbshootout.results.comparison import Ambiguous, Comparison, compare, differing
from zodbshootout.results.result import CellResult, long_name

PARAMETERS = {
    "concurrency": "concurrency",
    "threads": "threads",
    "hosts": "hosts",
    "object-counts": "objects",
    "object-size": "object_size",
    "btrees": "mapping",
    "btree-leaf-size": "leaf_size",
    "btree-internal-size": "internal_size",
    "blobs": "blobs",
    "compressibility": "compressibility",
    "min-objects": "min_objects",
    "seed": "seed",
}
"""The options that are parameters of a cell, and what these are called."""
TWO = 2


def compare_files(arguments: Sequence[str], streams: Streams) -> bool:
    """Print a comparison; return whether it found what ``--fail-above`` forbids.

    :raises UserError: with one line for the user
    :raises SystemExit: after ``--help``
    """
    found = parser().parse_args(arguments)
    check_format(found.format, TEXTS)
    if len(found.files) > TWO:
        raise UserError("compare: give two files, or one and --contender A B")
    names = labels(found.files) if len(found.files) == TWO else ["", ""]
    sides = [_timed(path) for path in found.files]
    base, new = sides if len(sides) == TWO else sides * 2
    chosen = found.contender
    if not (chosen or found.environment):
        chosen = _only_contenders(base, new, found.files)
    if chosen or found.environment:
        words = chosen or found.environment
        part = _of if chosen else _of_environment
        base = part(words[0], base, found.files[0])
        new = part(words[1], new, found.files[-1])
        names = [": ".join(filter(None, each)) for each in zip(names, words, strict=True)]
    comparison = _compared(base, new, found.ignore, across=bool(chosen))
    _check_comparable(comparison, found.files)
    report = comparison_report(comparison, names[0], names[1], headings())
    write_as(found.format, report, streams.out)
    return _failing(comparison, found.fail_above, streams)


def _failing(comparison: Comparison, above: float | None, streams: Streams) -> bool:
    if above is None:
        return False
    slower = [pair for pair in comparison.pairs if pair.slower_than(above)]
    if slower:
        cells = ", ".join(long_name(pair.new.cell) for pair in slower)
        streams.complain(f"significantly slower by more than {100 * above:g} %: {cells}")
    return bool(slower)


def _timed(path: Path) -> list[CellResult]:
    results = results_in(path)
    if any(result.measured and result.unit != "second" for result in results):
        raise UserError(f"{path} holds memory, not time: compare it with pyperf compare_to")
    return results


def _contenders(results: Sequence[CellResult]) -> list[str]:
    return list(dict.fromkeys(result.cell.contender for result in results))


def _only_contenders(
    base: Sequence[CellResult], new: Sequence[CellResult], files: Sequence[Path]
) -> list[str] | None:
    """Return whom to compare where nobody said so, or ``None`` for those of the same name."""
    found = [_contenders(side) for side in (base, new)]
    if len(files) == 1:
        raise UserError(
            f"compare: {files[0]} is one file; name two of its contenders with --contender: "
            f"{', '.join(found[0])}"
        )
    if len(found[0]) == len(found[1]) == 1 and found[0] != found[1]:
        return [found[0][0], found[1][0]]
    return None


def _of(contender: str, results: Sequence[CellResult], path: Path) -> list[CellResult]:
    names = _contenders(results)
    if contender not in names:
        raise UserError(f"--contender: no {contender!r} in {path}; {suggestion(contender, names)}")
    return [result for result in results if result.cell.contender == contender]


def _of_environment(
    environment: str, results: Sequence[CellResult], path: Path
) -> list[CellResult]:
    """Return what was measured in an environment, under the names of what is installed."""
    known = list(dict.fromkeys(result.environment for result in results))
    if environment not in known:
        raise UserError(
            f"--environment: no {environment!r} in {path}; {suggestion(environment, known)}"
        )
    return [
        replace(result, cell=replace(result.cell, contender=result.beside or result.cell.contender))
        for result in results
        if result.environment == environment
    ]


def _compared(
    base: Sequence[CellResult], new: Sequence[CellResult], ignore: Sequence[str], *, across: bool
) -> Comparison:
    try:
        return compare(base, new, [PARAMETERS[name] for name in ignore], across=across)
    except Ambiguous as error:
        raise UserError(f"--ignore: which of these is meant: {error}?") from None


def _check_comparable(comparison: Comparison, files: Sequence[Path]) -> None:
    """Refuse what has no cell in common, and say why it has none."""
    if comparison.pairs:
        return
    if not (comparison.only_base and comparison.only_new):
        empty = files[-1] if comparison.only_base else files[0]
        raise UserError(f"compare: nothing that could be compared was measured in {empty}")
    for base in comparison.only_base:
        for new in comparison.only_new:
            if base.cell.benchmark == new.cell.benchmark:
                names = differing(base.cell, new.cell)
                options = [option for option, name in PARAMETERS.items() if name in names]
                if options:
                    advice = " ".join(f"--ignore {option}" for option in options)
                    raise UserError(
                        f"compare: {long_name(base.cell)} and {long_name(new.cell)} differ in "
                        f"{', '.join(options)}; to compare them all the same, add {advice}"
                    )
    raise UserError(
        "compare: no benchmark of a contender was measured on both sides; "
        "to compare two contenders, add --contender A B"
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments after ``compare``."""
    made = argparse.ArgumentParser(
        prog="zodbshootout compare",
        usage="zodbshootout compare BASE NEW [option ...]\n"
        "       zodbshootout compare FILE --contender A B [option ...]\n"
        "       zodbshootout compare FILE --environment A B [option ...]",
        description="Say which of two is faster, by how much, and whether the difference is "
        "significant.",
        epilog="Exit status: 0, or 1 where --fail-above finds a slowdown; 2 bad usage.",
        allow_abbrev=False,
    )
    raise_usage_errors(made)
    made.add_argument(
        "files", nargs="+", type=Path, metavar="FILE",
        help="files that -o or --append has named, or those of a contender beside them",
    )  # fmt: skip
    sides = made.add_mutually_exclusive_group()
    sides.add_argument(
        "--contender", nargs=2, metavar=("A", "B"),
        help="compare contender B of NEW with A of BASE; both may be in one file",
    )  # fmt: skip
    sides.add_argument(
        "--environment", nargs=2, metavar=("A", "B"), type=str.lower,
        help="compare each contender in environment B with itself in A, as --against has named "
        f"them; {INSTALLED!r} is the one without --against",
    )  # fmt: skip
    made.add_argument(
        "--ignore", action="append", default=[], metavar="OPTION", choices=list(PARAMETERS),
        help="compare cells that differ in this option of the run (repeatable): "
        f"{', '.join(PARAMETERS)}",
    )  # fmt: skip
    made.add_argument(
        "--fail-above", type=argument_values.percentage, metavar="PERCENT",
        help="exit with status 1 if NEW takes more than PERCENT longer: the difference is "
        "significant, and its whole interval lies above PERCENT",
    )  # fmt: skip
    made.add_argument(
        "--format", default="text", metavar="FORMAT", help="as that of zodbshootout show"
    )
    return made
