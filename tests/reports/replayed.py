"""The result of a replayed workload."""

from __future__ import annotations

from typing import Any

from hdrh.histogram import HdrHistogram

from tests.runs import cell, measured
from zodbshootout.model.specification import ReplayedWorkload
from zodbshootout.results.result import CellResult

WORKLOAD = ReplayedWorkload(
    name="main.workload", digest="12", transactions=200, connections=2, conflicts=50, retries=20,
    path="/somewhere",
)  # fmt: skip


def encoded(microseconds: int) -> str:
    histogram = HdrHistogram(1, 10**12, 3)
    histogram.record_value(1000 * microseconds, 100)
    return str(histogram.encode().decode())


def result(contender: str, times: int = 1, **more: Any) -> CellResult:
    """Return a result with the usual metadata of a replay, *times* times as slow.

    Metadata that are ``None`` in *more* are missing.
    """
    metadata = {
        "iterations": 100,
        **{f"{step}_ns": 100_000 * times * at for at, step in enumerate(
            ("begin", "load", "store", "vote", "finish"), 1)},
        "conflicts": 10 * times, "retries": 10 * times, "waits": 0, "extra_loads": 30,
        "read_only_latency_histogram": encoded(50 * times),
        **more,
    }  # fmt: skip
    known = {key: value for key, value in metadata.items() if value is not None}
    return measured(
        cell("replay", contender, workload=WORKLOAD), *[[1e-3 * times] * 3] * 4, **known
    )
