"""Results of iterations that begin at a rate, and the figures of their tables."""

from __future__ import annotations

from typing import Any

from tests.runs import cell, measured
from zodbshootout.model.latencies import Latencies
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.tables import make_report
from zodbshootout.results.result import CellResult
from zodbshootout.workers.histograms import histogram

RUNS = 4
ITERATIONS = 400
"""The number of iterations of each run."""


def result(contender: str, rate: float, times: float = 1, **more: Any) -> CellResult:
    """Return a result at a rate, with 3 % of the latencies ten times as long as the others."""

    usual = [1e-3 * times * (1 + number / 1000) for number in range(RUNS)]

    def recorded(number: int) -> Any:
        latencies = Latencies()
        latencies.record([usual[number]] * 97 + [10 * usual[number]] * 3)
        return histogram(latencies).encode().decode()

    facts = {
        "iterations": ITERATIONS,
        "latency_histogram": recorded,
        "latency_max_s": lambda number: 10 * usual[number],
        "part_of_schedule": 1.0,
        "lag_growth_s": "0.0",
        **more,
    }
    return measured(cell("update", contender, rate=rate), *([each] for each in usual), **facts)


def titles_and_figures(*results: CellResult) -> dict[str, list[str]]:
    (table,) = make_report([ResultSet(results)]).tables
    assert table.caption.startswith("Latency at a given rate (less is better): ")
    return {row.title: [entry.shown for entry in row.entries] for row in table.rows}
