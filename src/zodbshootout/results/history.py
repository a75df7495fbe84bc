"""A history of points: runs in which a candidate and its baselines took turns.

A point is a JSON file in the directory of the history.  The format of the file has a number, and
``docs/formats.rst`` documents every field, so that later versions can read all files.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pyperf

from zodbshootout.errors import UserError
from zodbshootout.model.costs import BY_NAME, COSTS, NUMBER
from zodbshootout.model.grouping import grouped
from zodbshootout.model.parameters import PARAMETERS, Plain
from zodbshootout.results.estimate import Estimate
from zodbshootout.results.names import long_name
from zodbshootout.results.replacement import replace_file
from zodbshootout.results.result import CellResult
from zodbshootout.results.verdicts import Ratio, compare

FORMAT = 1
"""The number of the format.  A new format gets a higher number if older versions cannot read it."""
FORMAT_KEY = "zodbshootout_history"
CANDIDATE, ANCHOR, PREVIOUS, FORMER, TWIN = "candidate", "anchor", "previous", "former", "twin"
"""The roles of contenders in a point.  The candidate is watched; the anchor stays the same from
point to point.  ``previous`` is the candidate of the previous point, ``former`` is the previous
anchor, and ``twin`` is the anchor once more."""
POSITION = f"{CANDIDATE}/{ANCHOR}"
STEP = f"{CANDIDATE}/{PREVIOUS}"
CANARY = f"{TWIN}/{ANCHOR}"
LINK = f"{ANCHOR}/{FORMER}"
CLOSURE = f"{PREVIOUS}/{FORMER}"
FROM_FORMER = f"{CANDIDATE}/{FORMER}"
"""Names of ratios: the speed of the first role as a multiple of the speed of the second role."""
RATIOS = (POSITION, STEP, CANARY, LINK, CLOSURE, FROM_FORMER)
_SERVERS = ("PostgreSQL", "MySQL", "MariaDB", "Oracle", "memcached", "SQLite")


@dataclass(frozen=True)
class Package:
    """A version of a package, with the facts from which it can be installed again."""

    version: str
    commit: str = ""
    """The commit in a checkout or a repository; empty for a release."""
    url: str = ""
    """The URL from which the package was installed, as in :class:`~zodbshootout.versions.Origin`;
    empty for a package index."""
    modified: bool = False
    """Whether the checkout differed from its commit."""

    def __str__(self) -> str:
        modified = ", modified" if self.modified else ""
        return f"{self.version} (git {self.commit[:12]}{modified})" if self.commit else self.version


Packages = Mapping[str, Package]


@dataclass(frozen=True)
class PointCell:
    """A cell of a point: one benchmark of one contender."""

    name: str
    """The long name of the cell, followed by the percentile if the figure is a latency."""
    benchmark: str
    contender: str
    measure: str
    """The percentile that is compared, such as ``p99``; empty for the speed."""
    parameters: Mapping[str, Plain]
    """The parameters that differ from defaults.  So :attr:`series` stays the same if a later
    version adds a parameter."""
    code: str
    """A hash of the benchmark's code."""
    durability: str
    figure: float
    """The objects per second, or the latency in seconds, of the candidate."""
    ratios: Mapping[str, Ratio]
    """The known ratios of speeds, by their names in :data:`RATIOS`."""
    costs: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    """Costs, by name and then by role: the minimum, mean and maximum over runs."""

    @property
    def series(self) -> str:
        """A hash of the code and the parameters, which are the same in all points of a series."""
        described = json.dumps([self.code, dict(self.parameters)], sort_keys=True)
        return hashlib.sha256(described.encode()).hexdigest()[:12]

    def differing_counts(self, base: str) -> Iterator[tuple[str, float, float]]:
        """Yield the counted costs that differ between the candidate and *base*, with their amounts.

        Counts have no measuring error.  Two differ if their ranges over all runs do not overlap.
        """
        for name, amounts in self.costs.items():
            is_count = name in BY_NAME and BY_NAME[name].unit == NUMBER
            if is_count and {CANDIDATE, base} <= amounts.keys():
                new, old = amounts[CANDIDATE], amounts[base]
                if new[0] > old[2] or new[2] < old[0]:
                    yield name, new[1], old[1]


@dataclass(frozen=True)
class Point:
    """One run in a history."""

    name: str
    date: str
    """The time at which the run ended, in ISO 8601."""
    machine: Mapping[str, Plain]
    python: str
    packages: Mapping[str, Packages]
    """The packages with which each role was measured, by role."""
    cells: Sequence[PointCell]
    servers: Mapping[str, str] = field(default_factory=dict)
    """The versions of servers, by name."""
    label: str = ""
    previous: str = ""
    """The previous point of this machine; empty for the first point."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """The reasons why roles were not measured, by role."""
    other_load: float = 0.0
    """The mean fraction of the processors' time that other programs used."""
    steal: float = 0.0
    """The mean fraction of the processors' time that other virtual machines used."""

    @property
    def machine_name(self) -> str:
        return str(self.machine["name"])


def machine_facts() -> dict[str, Plain]:
    """Return facts about this machine, including a name.

    Machines of one kind share a name.  So runs in CI belong to one history, even on different
    hosts.  A shared name does no harm: ratios compare contenders on the same host at the same time.
    """
    facts = pyperf.Run([1.0], collect_metadata=True).get_metadata()
    known = {
        key: facts[key]
        for key in ("hostname", "cpu_model_name", "cpu_count", "platform")
        if key in facts
    }
    processor = known.get("cpu_model_name", str(known.get("platform", "machine")))
    name = f"{' '.join(str(processor).split())}, {known.get('cpu_count', 1)} CPUs"
    return {"name": name, **known}


def named_now(machine: Mapping[str, Plain]) -> tuple[str, str]:
    """Return the name and the date, in UTC, of a point that was just measured on a machine."""
    now = datetime.datetime.now(datetime.timezone.utc)
    of_machine = hashlib.sha256(str(machine["name"]).encode()).hexdigest()[:6]
    return f"{now:%Y-%m-%dT%H.%M.%S}-{of_machine}", now.isoformat(timespec="seconds")


def point_cells(roles: Mapping[str, Sequence[CellResult]]) -> list[PointCell]:
    """Return the cells of a point, with their ratios, from the results of each role."""
    ratios: dict[tuple[str, str], dict[str, Ratio]] = {}
    candidates: dict[tuple[str, str], CellResult] = {}
    for name in RATIOS:
        new, base = name.split("/")
        for pair in compare(roles.get(base, ()), roles.get(new, ()), across=True).pairs:
            key = _key(pair.new), pair.new.measure
            ratios.setdefault(key, {})[name] = pair.speed
            if new == CANDIDATE:
                candidates[key] = pair.new
    by_cell = {
        role: {_key(result): result for result in results if result.measured}
        for role, results in roles.items()
    }
    return [
        _point_cell(
            result,
            ratios[key],
            {role: own[key[0]] for role, own in by_cell.items() if key[0] in own},
        )
        for key, result in candidates.items()
    ]


def _key(result: CellResult) -> str:
    """Return the name of a cell without its contender."""
    return long_name(result.cell).removeprefix(f"{result.cell.contender}: ")


def _point_cell(
    result: CellResult, ratios: Mapping[str, Ratio], roles: Mapping[str, CellResult]
) -> PointCell:
    cell, metadata = result.cell, result.metadata
    return PointCell(
        " ".join(filter(None, [long_name(cell), result.measure])),
        cell.benchmark,
        cell.contender,
        result.measure,
        {
            one.key: one.written(cell.parameters)
            for one in PARAMETERS
            if one.of(cell.parameters) != one.default
        },
        str(metadata.get("benchmark_code", "")),
        str(metadata.get("durability", "")),
        result.mean if result.measure else result.objects_per_second,
        {name: ratio for name, ratio in ratios.items() if ratio.is_known},
        {} if result.measure else dict(_costs(roles)),
    )


def _costs(roles: Mapping[str, CellResult]) -> Iterator[tuple[str, dict[str, Sequence[float]]]]:
    for cost in COSTS:
        amounts: dict[str, Sequence[float]] = {
            role: [min(of_cost.values), of_cost.mean, max(of_cost.values)]
            for role, result in roles.items()
            if role != TWIN and (of_cost := result.with_cost(cost)) is not None
        }
        if CANDIDATE in amounts:
            yield cost.name, amounts


def facts_of_runs(results: Iterable[CellResult]) -> dict[str, Any]:
    """Return a point's facts from the metadata of runs: Python, servers, label and load."""
    measured = [result for result in results if result.measured]
    metadata = [run.get_metadata() for result in measured for run in result.runs]
    first = measured[0].metadata
    versions = {key.removeprefix("version_"): str(facts[key]) for facts in metadata
                for key in facts if key.startswith("version_")}  # fmt: skip
    python = f"{first.get('python_implementation', 'cpython')} {first.get('python_version', '')}"

    def mean_of(key: str) -> float:
        return statistics.fmean(float(facts.get(key, 0.0)) for facts in metadata)

    return {
        "python": " ".join(python.split()[:2]),
        "servers": {name: versions[name] for name in versions
                    if name in _SERVERS or name.endswith("_server")},
        "label": str(first.get("label", "")),
        "other_load": mean_of("other_load"),
        "steal": mean_of("steal"),
    }  # fmt: skip


def write_point(point: Point, directory: Path) -> Path:
    """Write a point to a file in the directory of the history; return the file's path.

    :raises UserError: if the file cannot be written
    """
    path = directory / f"{point.name}.json"
    text = json.dumps(_as_json(point), indent=1, allow_nan=False) + "\n"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        replace_file(path, lambda place: place.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise UserError(f"--history: cannot write {path}: {error.strerror}") from error
    return path


def _as_json(point: Point) -> dict[str, Any]:
    facts = {name: value for name, value in vars(point).items() if name not in {"name", "cells"}}
    packages = {
        role: {name: _without_defaults(asdict(package)) for name, package in of_role.items()}
        for role, of_role in point.packages.items()
    }
    cells = [
        {**vars(cell), "ratios": {name: _written(ratio) for name, ratio in cell.ratios.items()}}
        for cell in point.cells
    ]
    return {FORMAT_KEY: FORMAT, **facts, "packages": packages, "cells": cells}


def _without_defaults(package: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in package.items() if value}


def _written(ratio: Ratio) -> dict[str, Plain]:
    low, high = ratio.interval
    return {
        "ratio": ratio.value,
        "low": low,
        "high": high,
        "log_standard_error": math.sqrt(ratio.log.variance),
        "df": ratio.log.df,
        "runs": ratio.runs,
    }


def _ratio(written: Mapping[str, Any]) -> Ratio:
    log = Estimate(math.log(written["ratio"]), written["log_standard_error"] ** 2, written["df"])
    return Ratio(log, written["runs"], paired=True)


def read_point(path: Path) -> Point:
    """Read the file of a point.

    :raises UserError: if the file is not a point, or has a later format
    """
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        number = written.pop(FORMAT_KEY)
        if number > FORMAT:
            raise UserError(
                f"{path} was written by a later version of zodbshootout; update zodbshootout"
            )
        packages = {
            role: {name: Package(**_known(Package, package)) for name, package in of_role.items()}
            for role, of_role in written.pop("packages").items()
        }
        cells = [
            replace(
                PointCell(**_known(PointCell, cell)),
                ratios={name: _ratio(ratio) for name, ratio in cell["ratios"].items()},
            )
            for cell in written.pop("cells")
        ]
        return Point(path.stem, packages=packages, cells=cells, **_known(Point, written))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is not a point of a history: {error!r}") from error


def _known(kind: Any, written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the items of *written* whose names are fields of the class *kind*."""
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in written.items() if name in names}


def read_points(directory: Path) -> list[Point]:
    """Return the points in a directory, the oldest first."""
    return sorted(map(read_point, directory.glob("*.json")), key=lambda point: point.name)


def by_machine(points: Iterable[Point]) -> dict[str, list[Point]]:
    """Return points by the machine on which they were measured."""
    return grouped((point.machine_name, point) for point in points)


def with_aliases(point: Point) -> Point:
    """Copy ratios and costs to the role ``previous`` from another role with the same packages.

    The role ``previous`` itself is not measured if another role has its packages.
    """
    previous = point.packages.get(PREVIOUS)
    others = (ANCHOR, FORMER, CANDIDATE)
    same = next((role for role in others if point.packages.get(role) == previous), None)
    if previous is None or same is None or PREVIOUS in point.absent:
        return point
    names = {STEP: f"{CANDIDATE}/{same}", CLOSURE: f"{same}/{FORMER}"}
    cells = []
    for cell in point.cells:
        known = {name: cell.ratios[other] for name, other in names.items() if other in cell.ratios}
        costs = {
            name: {PREVIOUS: amounts[same], **amounts} if same in amounts else amounts
            for name, amounts in cell.costs.items()
        }
        cells.append(replace(cell, ratios={**known, **cell.ratios}, costs=costs))
    return replace(point, cells=cells)
