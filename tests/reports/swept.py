"""Results of a sweep, with the latencies and counts of a run."""

from __future__ import annotations

import random
from typing import Any

from tests.runs import cell, failed, measured, unsupported
from zodbshootout.model.latencies import Latencies
from zodbshootout.model.specification import CrewShape
from zodbshootout.results.cell import Cell
from zodbshootout.results.result import CellResult
from zodbshootout.workers.histograms import histogram

CLIENTS = (1, 2, 4, 8)
RUNS = 5
ITERATIONS = 400
SATURATED = {"fs": 2, "zeo": 4, "pg": 16}
"""The number of clients beyond which a contender is no faster."""


def swept(benchmark: str = "add", names: tuple[str, ...] = ("fs", "zeo", "pg")) -> list[CellResult]:
    """Return results of each contender for several numbers of clients, with 2 % of noise.

    The rate rises with the number of clients until the contender is saturated.
    """
    return [
        _result(cell(benchmark, name, crew=CrewShape(clients), objects=100), number)
        for clients in CLIENTS
        for number, name in enumerate(names)
    ]


def _result(cell: Cell, number: int) -> CellResult:
    chance = random.Random(f"{cell.contender}{cell.parameters.crew.size}")
    clients = cell.parameters.crew.size
    active = min(clients, list(SATURATED.values())[number % len(SATURATED)])
    rate = 10_000.0 * (number + 1) * active
    seconds = clients * cell.parameters.objects / rate
    runs = [[seconds * chance.uniform(0.98, 1.02) for _ in range(3)] for _ in range(RUNS)]
    metadata: dict[str, Any] = {**cell.metadata(), **_metadata(cell, seconds, chance)}
    return measured(cell, *runs, **metadata)


def _metadata(cell: Cell, seconds: float, chance: random.Random) -> dict[str, Any]:
    latencies = Latencies()
    latencies.record(seconds * chance.lognormvariate(0, 0.3) for _ in range(ITERATIONS))
    return {
        "work_per_iteration": cell.parameters.objects,
        "iterations": ITERATIONS,
        "latency_histogram": histogram(latencies).encode().decode(),
        "latency_max_s": latencies.longest,
        "storage_classes": "ZODB.FileStorage.FileStorage.FileStorage",
        "version_ZODB": "6.4",
        "configuration_text": '"<zodb fs>\\n  <filestorage>\\n  </filestorage>\\n</zodb>"',
        "command_line": "zodbshootout x.conf -c 1,2,4,8",
        "cpu_model_name": "a processor",
        "python_version": "3.11",
    }


def _hot(contender: str) -> Cell:
    return cell("hot", contender, crew=CrewShape(1), objects=100)


CONFLICTS: dict[str, Any] = {"conflicts": 30, "resolutions": 20, "retries": 10}
SWEPT = [
    *swept(),
    *swept("cold"),
    failed(_hot("fs"), "it was <b>not</b> there"),
    unsupported(_hot("pg"), "it makes no sense"),
    measured(
        cell("conflicts", "zeo", crew=CrewShape(2), objects=100),
        [0.1], [0.11],
        iterations=10, work_per_iteration=50, **CONFLICTS,
    ),
]  # fmt: skip
