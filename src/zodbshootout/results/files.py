"""The pyperf files that hold what was measured.

``out.json`` holds everything, each benchmark under a name of its own.  ``out.d/`` holds one file
for each contender, with short names, so that two contenders can be compared.  What has no number
is in neither: it is listed in ``out.cells.jsonl``, a line of JSON for each cell, with every other
cell and its state.  None of these stands where ``out*.json`` or ``out.d/*.json`` would find it
that pyperf cannot read.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyperf

from zodbshootout.client import specification as shapes
from zodbshootout.client.outcome import State
from zodbshootout.client.specification import ClientKind, CrewShape, MappingType, Parameters
from zodbshootout.errors import SOME_FAILED, UserError
from zodbshootout.results.cell import Cell
from zodbshootout.results.kinds import strange_metadata, strange_values
from zodbshootout.results.result import CellResult, long_name, short_name, varied_parameters

MAY_DIFFER = frozenset({"label", "command_line", "configuration_text"})
"""What may differ in runs of one cell: what the user calls them and has typed, and how a
configuration is written whose settings, of which there is a hash, are the same."""


@dataclass(frozen=True)
class ResultFiles:
    """The files of one run.  Each is replaced as a whole, so that none is ever half written."""

    combined: Path
    existing: Sequence[CellResult] = ()
    """What they held before, where results are appended."""
    begun: Sequence[CellResult] = ()
    """What they held before of a run that is resumed, and is written again as part of its
    results."""

    @property
    def _stem(self) -> str:
        name = self.combined.name
        for ending in (".json.gz", ".json"):
            if name.endswith(ending) and name != ending:
                return name.removesuffix(ending)
        return name

    @property
    def directory(self) -> Path:
        """Where the files of the contenders are."""
        return self.combined.with_name(f"{self._stem}.d")

    @property
    def cells(self) -> Path:
        """The list of all cells and what became of them."""
        return self.combined.with_name(f"{self._stem}.cells.jsonl")

    @property
    def all(self) -> tuple[Path, ...]:
        """Every path that is written."""
        return self.combined, self.directory, self.cells

    def of_contender(self, contender: str) -> Path:
        """Return the file of one contender."""
        return self.directory / f"{quote(contender, safe='@=+,')}.json"

    def appending(self) -> ResultFiles:
        """Return the same files, set to keep what they hold.

        :raises UserError: if a file is there and is not one of ours
        """
        there = self.combined.exists() or self.cells.exists()
        return replace(self, existing=read_results(self.combined) if there else ())

    def resuming(self) -> ResultFiles:
        """Return the same files, set to go on with the run whose results they hold.

        :raises UserError: if no file is there, or it is not one of ours
        """
        return replace(self, begun=read_results(self.combined))

    def conflict(self, expected: Mapping[Cell, Mapping[str, Any]], unit: str) -> str | None:
        """Say which cell cannot be added to what is there, or return ``None``.

        *expected* has what the metadata of a cell's runs will say.  Runs that differ in anything of
        that are of something else, and would pass for the same.  pyperf for its part adds nothing
        that was measured elsewhere, or with another Python.
        """
        there = [each for each in (*self.existing, *self.begun) if each.measured]
        for cell, metadata in expected.items():
            alike = [
                each
                for each in there
                if (each.cell.contender, each.cell.benchmark) == (cell.contender, cell.benchmark)
            ]
            found = next((each for each in alike if each.cell == cell), alike[0] if alike else None)
            reason = found and _difference(found, metadata, unit)
            if reason:
                return f"{cell.contender}: {cell.benchmark} is there with {reason}"
        return None

    def write(self, results: Sequence[CellResult]) -> None:
        """Write everything that was measured so far.

        :raises UserError: if a file cannot be written; its former content is unchanged
        """
        try:
            self._write(results)
        except (OSError, ValueError) as error:
            message = f"cannot write results: {error}; the files hold what was written before"
            raise UserError(message, SOME_FAILED) from error

    def _write(self, results: Sequence[CellResult]) -> None:
        everything = _added(self.existing, results)
        varied = varied_parameters(result.cell for result in everything)
        self.combined.parent.mkdir(parents=True, exist_ok=True)
        self.directory.mkdir(exist_ok=True)
        _replace(self.cells, lambda path: _write_cells(path, everything))
        measured = [result for result in everything if result.measured]
        _write_suite(self.combined, [each.benchmark(long_name(each.cell)) for each in measured])
        for contender in dict.fromkeys(result.cell.contender for result in everything):
            of_contender = [each for each in measured if each.cell.contender == contender]
            _write_suite(
                self.of_contender(contender),
                [each.benchmark(short_name(each.cell, varied)) for each in of_contender],
            )


def _added(existing: Sequence[CellResult], results: Sequence[CellResult]) -> list[CellResult]:
    """Return all results, those of one cell made one: what became of it last, with all its runs."""
    found = {result.cell: result for result in existing}
    for result in results:
        before = found.get(result.cell)
        if before is None or not before.measured:
            found[result.cell] = result
        elif result.state is not State.NOT_RUN:
            found[result.cell] = replace(
                result,
                runs=(*before.runs, *result.runs),
                crashes=(*before.crashes, *result.crashes),
            )
    return list(found.values())


def _write_cells(path: Path, results: Iterable[CellResult]) -> None:
    lines = (
        json.dumps(
            {
                **result.cell.to_json(),
                "state": result.state.value,
                "reason": result.reason,
                "runs": len(result.runs),
                "crashes": list(result.crashes),
            }
        )
        for result in results
    )
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_results(path: Path) -> list[CellResult]:
    """Return what a combined file, or that of a contender, holds of each cell.

    Beside a combined file stands which cells have no number and why; without that list there are
    those that do.

    :raises UserError: if the file is not there, or was not written by this program
    """
    if path.is_dir() or not path.name:
        raise UserError(f"{path} is a directory; name a file of results")
    listed = ResultFiles(path).cells
    if not path.is_file() and not listed.is_file():  # where nothing was measured there is the list
        raise UserError(f"there is no file {path}")
    found = {result.cell: result for result in _load_cells(listed)}
    for benchmark in _load(path):
        cell = _cell_of(benchmark)
        if cell is None:
            raise UserError(
                f"{path} was not written by zodbshootout; pyperf shows it: pyperf show {path}"
            )
        strange = strange_values(benchmark.get_runs())
        if strange:
            raise UserError(f"{path} is damaged: {strange} has an unexpected value")
        before = found.get(cell, CellResult(cell))
        state = State.FAILED if before.state is State.FAILED else State.MEASURED
        found[cell] = replace(before.with_run(benchmark), state=state)
    lost = {result.cell for result in found.values() if result.state is State.MEASURED}
    lost -= {result.cell for result in found.values() if result.measured}
    return [CellResult(cell) if cell in lost else result for cell, result in found.items()]


def _result_of(told: Mapping[str, Any]) -> CellResult:
    parameters = shapes.from_json(told["parameters"])
    cell = Cell(told["benchmark"], told["contender"], parameters)
    strange = strange_metadata(cell.metadata())
    if strange:
        raise ValueError(f"{strange} has an unexpected value")
    crashes = tuple(map(str, told.get("crashes", ())))
    return CellResult(cell, State(told["state"]), str(told["reason"]), crashes=crashes)


def _cell_of(benchmark: pyperf.Benchmark) -> Cell | None:
    """Return the cell of which the metadata of its runs tell, ``None`` where they do not."""
    told = benchmark.get_metadata()
    try:
        size = told["concurrency"]
        hosts = told.get("hosts", 0)
        crews = (CrewShape(size, *kind, hosts=hosts) for kind in product(ClientKind, (False, True)))
        parameters = Parameters(
            crew=next(crew for crew in crews if str(crew) == told["crew"]),
            objects=told["objects"],
            min_objects=told["min_objects"],
            seed=told["seed"],
        )
        if "mapping" in told:
            parameters = replace(
                parameters,
                object_size=told["object_size_bytes"],
                mapping=MappingType(told["mapping"]),
                leaf_size=told["btree_leaf_size"],
                internal_size=told["btree_internal_size"],
                blobs=told["blobs"],
                compressibility=told["compressibility"],
            )
        return Cell(told["benchmark"], told["contender"], parameters)
    except (KeyError, StopIteration, ValueError):
        return None


def _difference(there: CellResult, expected: Mapping[str, Any], unit: str) -> str | None:
    """Say what is otherwise in the runs that are there, or return ``None``."""
    metadata = there.benchmark().get_metadata()
    otherwise = [
        f"{key}={metadata.get(key, 'nothing')}"
        for key, value in expected.items()
        if metadata.get(key) != value and key not in MAY_DIFFER
    ]
    if otherwise:
        return ", ".join(otherwise)
    # pyperf adds what Python this is; that of an environment is compared above.
    elsewhere = metadata if metadata.get("environment") else {}
    python = {key: text for key, text in elsewhere.items() if key.startswith("python_")}
    here = pyperf.Run([1.0], metadata={**python, "name": "cell", "unit": unit})
    try:
        there.benchmark().add_run(here)
    except ValueError as error:
        return f"runs that pyperf keeps apart: {' '.join(str(error).split())}"
    return None


def _load(path: Path) -> list[pyperf.Benchmark]:
    if not path.exists():
        return []
    try:
        return list(pyperf.BenchmarkSuite.load(str(path)))
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not a file of pyperf's") from error


def _load_cells(path: Path) -> list[CellResult]:
    if not path.exists():
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [_result_of(json.loads(line)) for line in lines]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"cannot read {path}: {error}") from error


def _write_suite(path: Path, benchmarks: Sequence[pyperf.Benchmark]) -> None:
    if not benchmarks:
        path.unlink(missing_ok=True)
        return
    suite = pyperf.BenchmarkSuite(benchmarks)
    _replace(path, lambda temporary: suite.dump(str(temporary), replace=True))


def _replace(path: Path, write: Callable[[Path], None]) -> None:
    temporary = temporary_beside(path)
    try:
        write(temporary)
        _sync(temporary)  # or a power cut may leave the new name with nothing in it
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def temporary_beside(path: Path) -> Path:
    """Return a name for what is going to replace a file, of the same ending and no longer than 32.

    pyperf compresses what it writes to a name that ends in ``.gz``.
    """
    return path.with_name(f".{os.getpid()}{path.suffix[-20:]}")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
