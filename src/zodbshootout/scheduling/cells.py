"""What workers are told about cells, and what is recorded of these beside what is measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.client.benchmarks.benchmark import Benchmark
from zodbshootout.client.data.records import Item, content_size, record_size
from zodbshootout.client.distributions import installed_versions
from zodbshootout.client.specification import Specification
from zodbshootout.client.storage_info import Cache, StorageInfo
from zodbshootout.client.tasks import Prepare
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.private_servers import caches_of_server
from zodbshootout.crews.cluster import Cluster
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import file_name, varied_parameters
from zodbshootout.scheduling.plan import Plan
from zodbshootout.scheduling.preparing import Step
from zodbshootout.workers.summary import storable
from zodbshootout.workers.task import Measure, Profiling


@dataclass(frozen=True)
class CellTasks:
    """Makes the tasks of a plan's cells."""

    plan: Plan
    treatment: Mapping[str, Mapping[str, bool]]
    """What is done to the database of each contender, for the metadata."""
    leaks: bool = False
    profiles: Path | None = None
    """The directory that profiles of the clients go to, if they do."""
    profiler: str = "cprofile"
    label: str = ""
    """What the user calls this run."""
    command: str = ""
    """What the user has typed."""
    cluster: Cluster | None = None
    """Whose hosts the clients are on; ``None`` where they are here."""
    variables: Sequence[str] = ()
    """The variables of the environment that the configuration refers to."""

    def modules(self, cells: Iterable[Cell]) -> list[str]:
        """Return the modules that opening the contenders of some cells imports."""
        contenders = [self.plan.contender(cell) for cell in cells]
        return list(dict.fromkeys(name for each in contenders for name in each.info.modules))

    def specification(self, cell: Cell) -> Specification:
        """Return what the clients of a cell are told."""
        storage = self.plan.contender(cell).storage
        parameters = replace(cell.parameters, owner=cell.contender)
        return Specification(storage, cell.benchmark, parameters)

    def preparing(self, cell: Cell, step: Step) -> Prepare:
        """Return how the database of a cell is prepared."""
        return Prepare(self.specification(cell), step.zap, step.pack, step.may_write)

    def measuring(
        self, cell: Cell, round_name: str, *, restarted: bool
    ) -> Callable[[Path], Measure]:
        """Return what makes the task to measure a cell when it is told where the run goes.

        Runs of one *round_name* are made at the same time.
        """
        profiling = self._profiling(cell)
        precision = self.plan.effort.precision
        asked = {"precision": precision} if precision else {}
        return lambda run_file: Measure(
            self.specification(cell),
            {**self.metadata(cell, restarted=restarted), "round": round_name, **asked},
            run_file,
            self.leaks,
            profiling,
            self.cluster,
            self.variables,
        )

    def _profiling(self, cell: Cell) -> Profiling | None:
        if self.profiles is None:
            return None
        name = file_name(cell, varied_parameters(self.plan.cells))
        return Profiling(str(self.profiles), name, self.profiler)

    def metadata(self, cell: Cell, *, restarted: bool) -> dict[str, str | int | float]:
        """Return what is known of a run before it begins."""
        contender = self.plan.contender(cell)
        benchmark = benchmarks()[cell.benchmark]
        settings = contender.settings
        left = caches_left(contender, restarted=restarted)
        # Text of several lines, which pyperf's metadata cannot have.
        text = {"configuration_text": json.dumps(contender.text)} if contender.text else {}
        return text | storable(
            {
                **cell.metadata(),
                "work_per_iteration": benchmark.work(cell.parameters),
                "record_size_bytes": _record_size(cell, benchmark),
                "profiler": self.profiler if self.profiles else "none",
                "servers_restarted": restarted,
                **({"uncleared_caches": _listed(left)} if benchmark.cold else {}),
                "configuration": "; ".join(f"{key}={text}" for key, text in settings.items()),
                "configuration_hash": contender.fingerprint(),
                **storage_metadata(contender.info),
                **(contender.info.python if contender.environment else {}),
                "environment": contender.made_of,
                "beside": contender.beside,
                **self.treatment.get(contender.name, {}),
                "label": self.label,
                "command_line": self.command,
            }
        )


def storage_metadata(info: StorageInfo) -> dict[str, str | bool]:
    """Return what the metadata keep of what was found when a contender was opened."""
    versions = {**installed_versions(["zodbshootout"]), **info.versions}
    return {
        **{f"version_{name}": text for name, text in versions.items()},
        "driver": info.driver,
        "sharing": info.sharing.value,
        "stores_blobs": bool(info.stores_blobs),
        "storage_classes": " over ".join(info.storage_classes),
        "corrections": "; ".join(info.corrections),
    }


def caches_left(contender: Contender, *, restarted: bool) -> list[Cache]:
    """Return the caches of a contender that hold records even when it is read cold."""
    emptied = {cache for kind in contender.servers for cache in caches_of_server(kind)}
    return [cache for cache in contender.info.left if not (restarted and cache in emptied)]


def _listed(caches: Sequence[Cache]) -> str:
    return ", ".join(map(str, caches)) or "none"


def _record_size(cell: Cell, benchmark: type[Benchmark]) -> int | str:
    """Return the bytes of an object's record, and nothing where it does not hold the content."""
    if cell.parameters.blobs or benchmark.counted != "objects":
        return ""
    kind = Item if benchmark.purpose is None else benchmark.purpose.kind
    return record_size(content_size(cell.parameters.object_size, kind), kind)
