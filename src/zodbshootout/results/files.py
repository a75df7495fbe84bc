"""The pyperf files that hold results.

``out.json`` holds the figures of all cells, with a unique name for each.  ``out.d/`` holds one file
for each contender.  Cells have short names there, so that pyperf can compare two contenders.
Each line of ``out.cells.jsonl`` describes one cell and its state in JSON, even if the cell has no
figure.  Every other file has these descriptions of its cells in its metadata, so that a file alone
tells what failed; only a file without any figure cannot be written.  pyperf can read every file
whose name matches ``out*.json`` or ``out.d/*.json``.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import math
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyperf

from zodbshootout.errors import SOME_FAILED, UserError
from zodbshootout.model.grouping import grouped
from zodbshootout.model.masking import Mask
from zodbshootout.model.outcome import State, describe
from zodbshootout.model.quantities import QUANTITIES
from zodbshootout.model.settings import settings_in
from zodbshootout.plugins import BrokenPlugin
from zodbshootout.results.cell import WORDS, Cell, cell_of
from zodbshootout.results.names import long_name, short_name, varied_parameters
from zodbshootout.results.replacement import locked, replace_file, to_be_replaced
from zodbshootout.results.result import CELLS, STATE, CellResult
from zodbshootout.results.trend import with_trends

MAY_DIFFER = frozenset({*WORDS, "label", "command_line", "configuration_text"})
"""Metadata in which the runs of a cell may differ: words that only describe the cell."""

_TEXT, _AS_TYPED = "configuration_text", ("command_line", "environment", "label")
"""Metadata that repeat what the user has written, in JSON and plain.

Others, such as names and numbers, stay as they are even if a secret is a word in them."""
_NUMBERS = frozenset(
    {*(quantity.key for quantity in QUANTITIES.values()), "lag_growth_s", "slice_starts_s"}
)
"""Metadata that are numbers, separated by spaces if there are several."""
_BEGINNING = re.compile(rb'\s*\{\s*"(benchmarks|metadata|version)"')
"""The beginning of a file that pyperf writes, as a pattern; pyperf sorts the keys."""


@dataclass(frozen=True)
class ResultFiles:
    """The files of one run.  Each file is replaced as a whole, so it is never incomplete."""

    combined: Path
    existing: Sequence[CellResult] = ()
    """The results of other runs, to which :meth:`write` appends results."""
    begun: Sequence[CellResult] = ()
    """The earlier results of a resumed run; the argument of :meth:`write` includes them."""
    mask: Mask = field(default_factory=Mask)
    _recorded: dict[int, tuple[pyperf.Run, pyperf.Run]] = field(default_factory=dict)
    """Runs and what files hold of them, by the identity of the run: masking each run again for
    every write would take a third of its time."""

    @property
    def _stem(self) -> str:
        name = self.combined.name
        for ending in (".json.gz", ".json"):
            if name.endswith(ending) and name != ending:
                return name.removesuffix(ending)
        return name

    @property
    def directory(self) -> Path:
        return self.combined.with_name(f"{self._stem}.d")

    @property
    def cells(self) -> Path:
        return self.combined.with_name(f"{self._stem}.cells.jsonl")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs from writing to these files until the context or this process ends.

        :raises UserError: if another run writes to the files
        """
        self._check_paths()
        target = to_be_replaced(self.combined)
        if target is None:  # a pipe or a device
            yield
            return
        try:
            with locked(target.with_name(f".{ResultFiles(target)._stem}.lock")):
                yield
        except BlockingIOError:
            raise UserError(
                f"another run writes to {self.combined}; wait for its end, or name another file"
            ) from None

    @property
    def exist(self) -> Path | None:
        """The file or the directory with figures, ``None`` if neither exists.

        A run in which everything failed leaves only the list of cells.
        """
        self._check_paths()
        if self.combined.exists():
            return self.combined
        return self.directory if self.directory.exists() else None

    def appending(self) -> ResultFiles:
        """Read the results in the files; return a copy whose :meth:`write` appends to them.

        :raises UserError: if one of the files was not written by zodbshootout
        """
        self._check_paths()
        exist = self.combined.exists() or self.cells.exists()
        return replace(self, existing=read_results(self.combined) if exist else ())

    def check(self, titles: Iterable[str]) -> None:
        """Check that the names of all files can be used; *titles* are those of contenders.

        :raises UserError, OSError: if a name is too long, or belongs to something that a file
            cannot replace
        """
        self._check_paths()
        if os.path.lexists(self.directory) and not self.directory.is_dir():
            raise UserError(f"{self.directory} is not a directory; name another file of results")
        # The directory may not exist yet.
        directory = self.directory if self.directory.is_dir() else self.directory.parent
        for title in titles:
            name = _file_name(title)
            try:
                _check_path(directory / name)
            except OSError as error:
                if error.errno != errno.ENAMETOOLONG:
                    raise
                raise UserError(
                    f"{title}: the name is too long: the file of its results would have a name "
                    f"of {len(name)} characters; shorten it"
                ) from None

    def _check_paths(self) -> None:
        _check_path(self.combined)
        _check_path(self.cells)

    def conflict(self, expected: Mapping[Cell, Mapping[str, Any]], unit: str) -> str | None:
        """Describe why a cell cannot be added to the results, ``None`` if all cells can.

        *expected* are the metadata of future runs, by cell.  Runs with other metadata measure
        something else.  pyperf itself refuses to add runs of another machine or Python.
        """
        measured = [result for result in (*self.existing, *self.begun) if result.measured]
        for cell, metadata in expected.items():
            names = (cell.title, cell.benchmark)
            candidates = [
                result for result in measured if (result.cell.title, result.cell.benchmark) == names
            ]
            same = [result for result in candidates if result.cell == cell]
            for result in (same or candidates)[:1]:
                reason = _difference(result, _recorded(metadata, self.mask), unit)
                if reason:
                    return f"{cell.title}: {cell.benchmark} was measured with {reason}"
        return None

    def write(self, results: Sequence[CellResult]) -> None:
        """Write the *results* so far, added to the existing results.

        :raises UserError: if a file cannot be written; the old content of the file is kept
        """
        try:
            self._write(results)
        except (OSError, ValueError) as error:
            message = f"cannot write results: {error}; the files hold what was written before"
            raise UserError(message, SOME_FAILED) from error

    def everything(self, results: Sequence[CellResult]) -> list[CellResult]:
        """Return the *results* as the files hold them, added to the existing results."""
        return _added(self.existing, recorded(results, self.mask, self._recorded))

    def _write(self, results: Sequence[CellResult]) -> None:
        everything = self.everything(results)
        varied = varied_parameters(result.cell for result in everything)
        self.combined.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{json.dumps(_document_of(result))}\n" for result in everything)
        replace_file(self.cells, lambda path: path.write_text(lines, encoding="utf-8"))
        if any(result.measured for result in everything):
            self.directory.mkdir(exist_ok=True)
        _write_suite(self.combined, everything, long_name)
        by_title = grouped((result.cell.title, result) for result in everything)
        for title, of_title in by_title.items():
            path = self.directory / _file_name(title)
            _write_suite(path, of_title, lambda cell: short_name(cell, varied))


def recorded(
    results: Sequence[CellResult],
    mask: Mask,
    known: dict[int, tuple[pyperf.Run, pyperf.Run]] | None = None,
) -> list[CellResult]:
    """Return the *results* of a run as files hold them: without secrets.

    *known* has what earlier calls have returned, and gets what this call returns.
    """
    known = {} if known is None else known
    for run in (run for result in results for run in result.runs):
        if id(run) not in known:
            known[id(run)] = run, _recorded_run(run, mask)
    return [
        replace(
            result,
            reason=mask(result.reason),
            crashes=tuple(map(mask, result.crashes)),
            runs=tuple(known[id(run)][1] for run in result.runs),
        )
        for result in results
    ]


def _recorded_run(run: pyperf.Run, mask: Mask) -> pyperf.Run:
    metadata = _recorded(run.get_metadata(), mask)
    return pyperf.Run(run.values, warmups=run.warmups, metadata=metadata, collect_metadata=False)


def _recorded(metadata: Mapping[str, Any], mask: Mask) -> dict[str, Any]:
    """Return metadata without secrets, and with a hash of what is left of the settings."""
    known = {**metadata, **{key: mask(metadata[key]) for key in _AS_TYPED if key in metadata}}
    if _TEXT in metadata:
        known[_TEXT] = json.dumps(mask(json.loads(metadata[_TEXT])))
    if "settings" in metadata:
        settings = mask.settings(json.loads(metadata["settings"]))
        named = {".".join(path): text for path, text in settings_in(settings).items()}
        digest = hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()
        known |= {"settings": json.dumps(settings), "configuration_hash": digest[:16]}
    return known


def _file_name(title: str) -> str:
    return f"{quote(title, safe='@=+,')}.json"


def _check_path(path: Path) -> None:
    """Check that the system accepts a path, and that it is not the path of a pipe or a device."""
    if to_be_replaced(path) is None:
        raise UserError(f"{path} is not a regular file; name another one")


def _added(existing: Sequence[CellResult], results: Sequence[CellResult]) -> list[CellResult]:
    """Return one result for each cell, with the cell's latest state and all runs."""
    merged = {result.cell: result for result in existing}
    for result in results:
        before = merged.get(result.cell)
        if before is None or not before.measured:
            merged[result.cell] = result
        elif result.state is not State.NOT_RUN:
            merged[result.cell] = replace(
                result,
                runs=(*before.runs, *result.runs),
                crashes=(*before.crashes, *result.crashes),
            )
    return list(merged.values())


def _document_of(result: CellResult) -> dict[str, Any]:
    return {
        **result.cell.metadata(),
        "state": result.state.value,
        "reason": result.reason,
        "crashes": list(result.crashes),
        "values": _values_of(result),
    }


def _values_of(result: CellResult) -> int:
    return sum(len(run.values) for run in result.runs)


def read_results(path: Path) -> list[CellResult]:
    """Return the results in a combined file or in a contender's file, with their trends.

    Cells without a figure come from the file's own list, or from the list beside a combined file.

    :raises UserError: if the file does not exist or is damaged, or zodbshootout did not write it
    """
    if path.is_dir() or not path.name:
        raise UserError(f"{path} is a directory; name a file of results")
    listed = ResultFiles(path).cells
    if not path.is_file() and not listed.is_file():  # a run without figures leaves only the list
        is_other = path.exists()
        raise UserError(f"{path} is not a regular file" if is_other else f"there is no file {path}")
    with damage_of(path):
        return _read(path, listed)


@contextmanager
def damage_of(*paths: Path) -> Iterator[None]:
    """Turn an exception in the context into a message that one of the files is damaged.

    :raises UserError: instead of all exceptions but ``BrokenPlugin`` and ``OSError``
    """
    try:
        yield
    except (UserError, BrokenPlugin, OSError):
        raise
    except Exception as error:
        names = " or ".join(map(str, paths))
        raise UserError(f"{names} is damaged: {describe(error)}") from error


def _read(path: Path, listed: Path) -> list[CellResult]:
    suite = _load(path)
    of_file = next((one.get_metadata().get(CELLS, "[]") for one in suite), "[]")
    documents = json.loads(of_file)
    results = {one.cell: one for one in [*_load_cells(listed), *map(_result_of, documents)]}
    for benchmark in suite:
        metadata = benchmark.get_metadata()
        if "benchmark_title" not in metadata:
            raise UserError(
                f"{path} was not written by zodbshootout; pyperf shows it: pyperf show {path}"
            )
        cell = cell_of(metadata)
        before = results.get(cell, CellResult(cell))
        has_failed = State.FAILED in {before.state, State(metadata.get(STATE, State.MEASURED))}
        state = State.FAILED if has_failed else State.MEASURED
        results[cell] = replace(before.with_run(benchmark), state=state)
    expected = {cell_of(one): one["values"] for one in documents}
    for result in filter(attrgetter("measured"), results.values()):
        if flaw := _damage(result, expected.get(result.cell)):
            raise UserError(f"{path} is damaged: {long_name(result.cell)} has {flaw}")
    return with_trends(
        [
            CellResult(cell) if result.state is State.MEASURED and not result.measured else result
            for cell, result in results.items()
        ]
    )


def _damage(result: CellResult, expected: int | None) -> str:
    """Return what is impossible about the figures of a cell in a file; "" if nothing is."""
    there = _values_of(result)
    if expected not in {None, there}:
        return f"{there} of {expected} values"
    for run in result.runs:
        facts = run.get_metadata()
        numbers = [*run.values, *(fact for fact in facts.values() if isinstance(fact, float))]
        for key in facts.keys() & _NUMBERS:
            numbers += map(float, str(facts[key]).split())
        if wrong := [number for number in numbers if not math.isfinite(number)]:
            return f"the number {wrong[0]}"
    return ""


def holds_results(path: Path) -> bool:
    """Return whether *path* is a file of results that pyperf or zodbshootout wrote."""
    if path.name.endswith(".cells.jsonl"):
        return path.exists()
    try:
        return path.is_file() and _begins_as_results(path)
    except (OSError, EOFError, zlib.error):
        return False


def _begins_as_results(path: Path) -> bool:
    """Return whether a file, perhaps a large database, begins like a file of pyperf."""
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "rb") as file:
        return _BEGINNING.match(file.read(1024)) is not None


def _load(path: Path) -> list[pyperf.Benchmark]:
    if not path.exists():
        return []
    try:
        if _begins_as_results(path):
            return list(pyperf.BenchmarkSuite.load(str(path)))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error}") from error
    raise UserError(f"{path} was not written by pyperf")


def _load_cells(path: Path) -> list[CellResult]:
    if not path.exists():
        return []
    with damage_of(path):
        lines = path.read_text(encoding="utf-8").splitlines()
        return [_result_of(json.loads(line)) for line in lines]


def _result_of(document: Mapping[str, Any]) -> CellResult:
    return CellResult(
        cell_of(document),
        State(document["state"]),
        str(document["reason"]),
        crashes=tuple(map(str, document.get("crashes", ()))),
    )


def _difference(result: CellResult, expected: Mapping[str, Any], unit: str) -> str | None:
    """Describe how existing runs differ from expected runs, ``None`` if they do not differ."""
    metadata = result.benchmark().get_metadata()
    # Without --for, expected runs have no for_s.
    wanted = {"for_s": None, **expected}
    differing = [
        f"{key}={metadata.get(key, 'nothing')}"
        for key, value in wanted.items()
        if metadata.get(key) != value and key not in MAY_DIFFER
    ]
    if differing:
        return ", ".join(differing)
    # pyperf adds facts about this Python to every run that has no facts about a Python.  So the run
    # gets the facts about the environment's Python, if the cell was measured in an environment.
    others = metadata if metadata.get("environment") else {}
    python = {key: text for key, text in others.items() if key.startswith("python_")}
    here = pyperf.Run([1.0], metadata={**python, "name": "cell", "unit": unit})
    try:
        result.benchmark().add_run(here)
    except ValueError as error:
        return f"metadata that pyperf keeps apart: {' '.join(str(error).split())}"
    return None


def _write_suite(path: Path, results: Sequence[CellResult], name_of: Callable[[Cell], str]) -> None:
    cells = {CELLS: json.dumps(list(map(_document_of, results)))}
    benchmarks = [
        one.benchmark(name_of(one.cell), **cells, **{STATE: one.state.value})
        for one in results
        if one.measured
    ]
    if not benchmarks:
        (to_be_replaced(path) or path).unlink(missing_ok=True)
        return
    suite = pyperf.BenchmarkSuite(benchmarks)
    replace_file(path, lambda temporary: suite.dump(str(temporary), replace=True))
