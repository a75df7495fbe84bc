"""What was measured, as typed records, and the pyperf files that hold it.

``out.json`` holds everything, each benchmark under a name of its own.  ``out.d/`` holds one file
for each contender, with short names, so that two contenders can be compared.  What has no number
is in neither: it is listed in ``out.cells.json``, with every other cell and its state.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyperf

from zodbshootout.client.outcome import Failure, State
from zodbshootout.client.parameters import Parameters
from zodbshootout.model import Cell


class NotWritten(Exception):  # noqa: N818
    """Results could not be written; the message tells why."""


class Unusable(Exception):  # noqa: N818
    """A file cannot be added to; the message tells why."""


@dataclass(frozen=True)
class CellResult:
    """A cell, what became of it, and its runs."""

    cell: Cell
    state: State = State.NOT_RUN
    reason: str = ""
    """One line: why there is no number, or what is to be said against it."""
    detail: str = ""
    """A traceback, where there is one."""
    runs: tuple[pyperf.Run, ...] = ()

    def with_run(self, benchmark: pyperf.Benchmark) -> CellResult:
        """Return this result with the run of a worker added."""
        return replace(self, state=State.MEASURED, runs=(*self.runs, *benchmark.get_runs()))

    def without_number(self, failure: Failure) -> CellResult:
        """Return this result as one that has no number, and why; runs it had are dropped."""
        return replace(
            self, state=failure.state, reason=failure.cause, detail=failure.detail, runs=()
        )

    @property
    def measured(self) -> bool:
        """Whether there is a number."""
        return bool(self.runs)

    def benchmark(self, name: str = "cell") -> pyperf.Benchmark:
        """Return the runs as pyperf has them, under some name."""
        benchmark = pyperf.Benchmark(self.runs)
        benchmark.update_metadata({"name": name})
        return benchmark

    @property
    def unit(self) -> str:
        """Return pyperf's unit of the values: ``second``, or ``byte`` where memory was traced."""
        return str(self.benchmark().get_unit())

    @property
    def servers_restarted(self) -> bool:
        """Return whether private servers were restarted before each value."""
        return any(run.get_metadata().get("servers_restarted", "no") != "no" for run in self.runs)

    @property
    def uncleared_caches(self) -> str:
        """Return the caches that could not be emptied before cold reads; empty where all were."""
        left = self.runs[0].get_metadata().get("uncleared_caches", "none") if self.runs else "none"
        return "" if left == "none" else str(left)

    @property
    def mean(self) -> float:
        """Return the mean of all values: seconds per iteration, or bytes."""
        return float(self.benchmark().mean())

    @property
    def spread(self) -> float | None:
        """Return the values' standard deviation as a fraction of their mean, if there are two."""
        benchmark = self.benchmark()
        if benchmark.get_nvalue() < 2:  # noqa: PLR2004 - one value has no deviation
            return None
        return float(benchmark.stdev()) / float(benchmark.mean())

    @property
    def objects_per_second(self) -> float:
        """Return how many objects all clients together wrote or read in a second.

        Where it is transactions that are counted, it is these.
        """
        parameters = self.cell.parameters
        work = self.runs[0].get_metadata().get("work_per_iteration", parameters.objects)
        return parameters.crew.size * float(work) / self.mean


def long_name(cell: Cell) -> str:
    """Return a name that tells a cell from every other one in any file."""
    parameters = cell.parameters
    objects = _objects(parameters) if parameters.objects else []
    return f"{cell.contender}: {' '.join([cell.benchmark, *objects, parameters.crew.code])}"


def _objects(parameters: Parameters) -> list[str]:
    mapping = parameters.mapping.value
    return [
        f"{parameters.objects}x{parameters.object_size}B",
        *(["blobs"] if parameters.blobs else []),
        *([] if mapping == "PersistentMapping" else [mapping]),
    ]


def short_name(cell: Cell, varied: Iterable[str]) -> str:
    """Return a name that tells a cell from the others of its contender in this run.

    *varied* names what has more than one value in the run: ``concurrency``, ``objects``, ``size``.
    """
    parameters = cell.parameters
    values = {"concurrency": f"c={parameters.crew.size}"}
    if parameters.objects:
        values |= {"objects": f"n={parameters.objects}", "size": f"s={parameters.object_size}"}
    return " ".join([cell.benchmark, *(values[name] for name in values if name in set(varied))])


def file_name(cell: Cell, varied: Iterable[str]) -> str:
    """Return a name for files about a cell, alike in what it tells apart."""
    words = short_name(cell, varied).replace("=", "").split()
    return quote("-".join([cell.contender, *words]), safe="")


def varied_parameters(cells: Iterable[Cell]) -> frozenset[str]:
    """Return the names of the parameters that have more than one value among *cells*."""
    seen: dict[str, set[int]] = {"concurrency": set(), "objects": set(), "size": set()}
    for cell in cells:
        seen["concurrency"].add(cell.parameters.crew.size)
        if cell.parameters.objects:
            seen["objects"].add(cell.parameters.objects)
            seen["size"].add(cell.parameters.object_size)
    return frozenset(name for name, values in seen.items() if len(values) > 1)


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
        return self.combined.with_name(f"{self._stem}.cells.json")

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
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


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
        return list(json.loads(path.read_text(encoding="utf-8")))
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
