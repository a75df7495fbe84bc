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
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyperf

from zodbshootout.client import parameters as shapes
from zodbshootout.client.outcome import State
from zodbshootout.client.parameters import CrewShape, MappingType, Parameters, Unit
from zodbshootout.model import Cell
from zodbshootout.results import CellResult, long_name, short_name, varied_parameters


class NotWritten(Exception):  # noqa: N818
    """Results could not be written; the message tells why."""


class Unusable(Exception):  # noqa: N818
    """A file cannot be read or added to; the message tells why."""


@dataclass(frozen=True)
class ResultFiles:
    """The files of one run.  Each is replaced as a whole, so that none is ever half written."""

    combined: Path
    existing: Sequence[pyperf.Benchmark] = ()
    """What the combined file held before, where results are appended."""
    existing_by_contender: Mapping[str, Sequence[pyperf.Benchmark]] = field(default_factory=dict)
    existing_cells: Sequence[Mapping[str, Any]] = ()

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
        return self.directory / f"{quote(contender, safe='')}.json"

    def appending(self) -> ResultFiles:
        """Return the same files, set to keep what they hold.

        :raises Unusable: when a file is there and is not one of ours
        """
        by_contender = {path.stem: _load(path) for path in sorted(self.directory.glob("*.json"))}
        return replace(
            self,
            existing=_load(self.combined),
            existing_by_contender=by_contender,
            existing_cells=_load_cells(self.cells),
        )

    def conflict(
        self, cells: Sequence[Cell], told: Mapping[str, Mapping[str, str]], unit: str
    ) -> str | None:
        """Say which of *cells* cannot be added to what is there, or return ``None``.

        A contender's file names a benchmark by what varies within one run, so that results of
        another size, crew or configuration would come under the same name; *told* has what the
        metadata of each contender's runs will say beside what their cells do.  pyperf for its
        part adds nothing that was measured elsewhere, or with another Python.
        """
        varied = varied_parameters(cells)
        for cell in cells:
            name = short_name(cell, varied)
            for there in self.existing_by_contender.get(self.of_contender(cell.contender).stem, ()):
                if there.get_name() != name:
                    continue
                wanted = {**cell.metadata(), **told.get(cell.contender, {})}
                differences = _differences(there.get_metadata(), wanted)
                if differences:
                    return f"{cell.contender}: {name} is there with {', '.join(differences)}"
                incompatible = _incompatibility(there, unit)
                if incompatible:
                    return f"{cell.contender}: {name}: {incompatible}"
        return None

    def write(self, results: Sequence[CellResult]) -> None:
        """Write everything that was measured so far.

        :raises NotWritten: when a file cannot be written; what stood there before still does
        """
        try:
            self._write(results)
        except (OSError, ValueError) as error:
            raise NotWritten(str(error)) from error

    def _write(self, results: Sequence[CellResult]) -> None:
        varied = varied_parameters(result.cell for result in results)
        self.combined.parent.mkdir(parents=True, exist_ok=True)
        self.directory.mkdir(exist_ok=True)
        _replace(self.cells, lambda path: self._write_cells(path, results))
        measured = [result for result in results if result.measured]
        fresh = [result.benchmark(long_name(result.cell)) for result in measured]
        _write_suite(self.combined, self.existing, fresh)
        for contender in dict.fromkeys(result.cell.contender for result in results):
            path = self.of_contender(contender)
            fresh = [
                result.benchmark(short_name(result.cell, varied))
                for result in measured
                if result.cell.contender == contender
            ]
            _write_suite(path, self.existing_by_contender.get(path.stem, ()), fresh)

    def _write_cells(self, path: Path, results: Iterable[CellResult]) -> None:
        document = [
            *self.existing_cells,
            *(
                {
                    **result.cell.to_json(),
                    "state": result.state.value,
                    "reason": result.reason,
                    "runs": len(result.runs),
                }
                for result in results
            ),
        ]
        lines = (f"{json.dumps(each)}\n" for each in document)
        path.write_text("".join(lines), encoding="utf-8")


def read_results(path: Path) -> list[CellResult]:
    """Return what a combined file, or that of a contender, holds of each cell.

    Beside a combined file stands which cells have no number and why; without that list there are
    those that do.

    :raises Unusable: when the file is not there, or was not written by this program
    """
    if not path.is_file():
        raise Unusable(f"there is no file {path}")
    benchmarks = _load(path)
    runs: dict[Cell, list[pyperf.Run]] = {}
    for benchmark in benchmarks:
        cell = _cell_of(benchmark)
        if cell is None:
            raise Unusable(
                f"{path} was not written by zodbshootout; pyperf shows it: pyperf show {path}"
            )
        runs.setdefault(cell, []).extend(benchmark.get_runs())
    found: dict[Cell, CellResult] = {}
    for told in _load_cells(ResultFiles(path).cells):
        result = _result_of(told)
        earlier = found.get(result.cell)
        if earlier is None or result.state is State.MEASURED:
            found[result.cell] = result
    for cell, of_cell in runs.items():
        result = found.get(cell, CellResult(cell, State.MEASURED))
        found[cell] = replace(result, runs=tuple(of_cell))
    return list(found.values())


def _result_of(told: Mapping[str, Any]) -> CellResult:
    parameters = shapes.from_json(told["parameters"])
    cell = Cell(told["benchmark"], told["contender"], parameters)
    return CellResult(cell, State(told["state"]), told["reason"])


def _cell_of(benchmark: pyperf.Benchmark) -> Cell | None:
    """Return the cell of which the metadata of its runs tell, ``None`` where they do not."""
    told = benchmark.get_metadata()
    try:
        size = told["concurrency"]
        crews = (CrewShape(size, *kind) for kind in product(Unit, (False, True)))
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
    except (KeyError, StopIteration):
        return None


def _differences(there: Mapping[str, Any], wanted: Mapping[str, str | int | float]) -> list[str]:
    return [
        f"{key}={there[key]}" for key, value in wanted.items() if there.get(key, value) != value
    ]


def _incompatibility(there: pyperf.Benchmark, unit: str) -> str | None:
    """Say why pyperf would not add a run of this machine and Python, or return ``None``."""
    here = pyperf.Run([1.0], metadata={"name": there.get_name(), "unit": unit})
    try:
        pyperf.Benchmark(there.get_runs()).add_run(here)
    except ValueError as error:
        return " ".join(str(error).split())
    return None


def _load(path: Path) -> list[pyperf.Benchmark]:
    if not path.exists():
        return []
    try:
        return list(pyperf.BenchmarkSuite.load(str(path)))
    except (OSError, EOFError, zlib.error) as error:
        raise Unusable(f"cannot read {path}: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unusable(f"{path} is not a file of pyperf's") from error


def _load_cells(path: Path) -> list[Mapping[str, Any]]:
    if not path.exists():
        return []
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, TypeError) as error:
        raise Unusable(f"cannot read {path}: {error}") from error


def _write_suite(
    path: Path, existing: Iterable[pyperf.Benchmark], fresh: Iterable[pyperf.Benchmark]
) -> None:
    merged: dict[str, list[pyperf.Run]] = {}
    for benchmark in [*existing, *fresh]:
        merged.setdefault(benchmark.get_name(), []).extend(benchmark.get_runs())
    if not merged:
        path.unlink(missing_ok=True)
        return
    suite = pyperf.BenchmarkSuite([pyperf.Benchmark(runs) for runs in merged.values()])
    _replace(path, lambda temporary: suite.dump(str(temporary), replace=True))


def _replace(path: Path, write: Callable[[Path], None]) -> None:
    # pyperf compresses what it writes to a name that ends in .gz, so the ending stays.
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        write(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
