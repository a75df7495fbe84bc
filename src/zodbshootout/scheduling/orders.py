"""The tasks of workers for a cell, and the metadata of the cell's runs."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.client.data.datasets import Dataset
from zodbshootout.client.data.objects import Item, content_size, record_size
from zodbshootout.client.preparation import Preparation
from zodbshootout.crews.cluster import Cluster
from zodbshootout.model.settings import nested
from zodbshootout.model.specification import Interpreter, Parameters, Specification
from zodbshootout.model.storage_facts import Sharing
from zodbshootout.results.cell import Cell
from zodbshootout.results.names import file_name, varied_parameters
from zodbshootout.scheduling.operations import operation_parameters
from zodbshootout.scheduling.plan import Plan, RunOptions
from zodbshootout.versions import installed_versions
from zodbshootout.workers.measuring import Calibrations, Measure
from zodbshootout.workers.summary import storable

ZAPPED_BEFORE = "add"
"""With ``--zap``, contenders are zapped before each run of this benchmark."""

_Key = tuple[str, Dataset | None, bool, Parameters]


@dataclass
class Tasks:
    """Makes the tasks of a plan's cells, and remembers which databases workers have prepared."""

    plan: Plan
    options: RunOptions = field(default_factory=RunOptions)
    cluster: Cluster | None = None
    """The cluster of the clients' hosts; ``None`` if the clients are on this host."""
    variables: Sequence[str] = ()
    """The environment variables that clients on other hosts need."""
    _sizes: int = field(init=False)
    """The number of database sizes in the plan."""
    calibrations: Calibrations = field(init=False, default_factory=dict)
    _filled: set[_Key] = field(init=False, default_factory=set)
    _packed: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self._sizes = len({cell.parameters.min_objects for cell in self.plan.cells})

    def modules(self, interpreter: Interpreter | None) -> list[str]:
        """Return the modules that a Python has to import for its contenders."""
        contenders = (
            contender
            for contender in self.plan.contenders
            if contender.storage.interpreter == interpreter
        )
        names = (name for contender in contenders for name in contender.info.modules)
        return list(dict.fromkeys(names))

    def preparation(self, cell: Cell) -> Preparation | None:
        """Return the task to prepare the database of a *cell*, ``None`` if there is nothing to do.

        If data are in memory, the measuring process makes them itself.  With ``--zap``, a contender
        is zapped before each run of ``add``, so that each run finds an empty database even if
        contenders share a database.
        """
        if self.plan.contender(cell).info.sharing is Sharing.VOLATILE:
            return None
        zap = self.zaps(cell)
        pack = self.options.pack and cell.title not in self._packed
        benchmark = benchmarks()[cell.benchmark]
        is_swept = self._sizes > 1
        writes = benchmark.traits.writes
        uses_data = benchmark.dataset or cell.parameters.min_objects or writes or is_swept
        if not (zap or pack) and (not uses_data or _key(cell) in self._filled):
            return None
        may_write = cell.title in self.plan.zapped or (
            cell.title in self.plan.may_write and not benchmark.traits.empties
        )
        return Preparation(self._specification(cell), zap, pack, may_write, is_swept)

    def zaps(self, cell: Cell) -> bool:
        """Return whether the preparation for each run of a cell destroys all data."""
        zapped = cell.benchmark == ZAPPED_BEFORE and cell.title in self.plan.zapped
        return zapped or benchmarks()[cell.benchmark].traits.empties

    def prepared(self, cell: Cell, task: Preparation) -> None:
        if task.zap:
            self._filled.clear()  # other contenders may use the same database
        self._filled.add(_key(cell))
        if task.pack:
            self._packed.add(cell.title)

    def measuring(self, cell: Cell, *, tries_first: bool) -> Measure:
        profile = None
        if self.options.profiles is not None:
            # An older Python cannot load a path that Python 3.13 has pickled.
            name = file_name(cell, varied_parameters(self.plan.cells))
            profile = str(self.options.profiles / name)
        precision = self.plan.effort.precision
        target = {"precision": precision} if precision else {}
        specification = self._specification(cell, run=secrets.token_hex(4))
        return Measure(
            specification,
            {**self.metadata(cell), **target},
            tries_first,
            self.options.leaks,
            profile,
            self.cluster,
            self.variables,
            self.calibrations,
        )

    def operation(self, cell: Cell) -> Specification:
        """Return the operation to carry out while a cell is measured."""
        parameters = operation_parameters(cell.parameters)
        storage = self.plan.contender(cell).storage
        owned = replace(parameters, owner=cell.title)
        return Specification(storage, cell.parameters.during, owned)

    def counting(self, cell: Cell) -> Specification:
        return self._specification(cell, run=secrets.token_hex(4))

    def _specification(self, cell: Cell, run: str = "") -> Specification:
        storage = self.plan.contender(cell).storage
        workload = replace(cell.parameters.workload, run=run)
        parameters = replace(cell.parameters, owner=cell.title, workload=workload)
        return Specification(storage, cell.benchmark, parameters)

    def metadata(self, cell: Cell) -> dict[str, str | int | float]:
        """Return the metadata that are known before a run begins."""
        contender, options = self.plan.contender(cell), self.options
        info, benchmark = contender.info, benchmarks()[cell.benchmark]
        environment = contender.environment
        versions = {**installed_versions(["zodbshootout"]), **info.versions}
        durability, durability_detail = info.promise
        uncleared = json.dumps(info.caches_left)
        duration = self.plan.effort.duration
        documents = {"settings": json.dumps(nested(contender.settings))}
        if contender.text:  # pyperf's metadata cannot have several lines
            documents["configuration_text"] = json.dumps(contender.text)
        return (
            documents
            | cell.metadata()
            | storable(
                {
                    "work_per_iteration": benchmark.shape(cell.parameters).work,
                    **({"for_s": duration} if duration else {}),
                    "record_size_bytes": _record_size(cell, benchmark),
                    "profiler": "cprofile" if options.profiles else "none",
                    **({"uncleared_caches": uncleared} if benchmark.traits.cold else {}),
                    **{f"version_{name}": version for name, version in versions.items()},
                    "driver": info.driver,
                    "durability": durability.value,
                    "durability_detail": durability_detail,
                    "sharing": info.sharing.value,
                    "server_place": info.server_place.value if info.server_place else "",
                    "encryption": info.link.encryption,
                    "idle_limit": info.link.idle_limit,
                    "stores_blobs": bool(info.stores_blobs),
                    "storage_classes": " over ".join(info.storage_classes),
                    "corrections": "; ".join(info.corrections),
                    "persistent_cache": info.persistent_cache,
                    "persistent_cache_flaw": info.persistent_cache_flaw,
                    **(info.python if environment else {}),
                    "environment": environment.description if environment else "",
                    "packed": options.pack,
                    "zapped": contender.title in self.plan.zapped,
                    "label": options.label,
                    "command_line": shlex.join(["zodbshootout", *options.arguments]),
                }
            )
        )


def _key(cell: Cell) -> _Key:
    # The preparation for a cell that writes checks whether the database may be written to.  So such
    # a cell needs its own preparation, even if the database was prepared for a cell that reads.
    benchmark = benchmarks()[cell.benchmark]
    return cell.title, benchmark.dataset, benchmark.traits.writes, cell.parameters


def _record_size(cell: Cell, benchmark: type[Benchmark]) -> int | str:
    """Return an object's record size in bytes, ``""`` if the record does not hold the content."""
    if cell.parameters.blobs or benchmark.counted != "objects":
        return ""
    kind = Item if benchmark.dataset is None else benchmark.dataset.kind
    return record_size(content_size(cell.parameters.object_size, kind), kind)
