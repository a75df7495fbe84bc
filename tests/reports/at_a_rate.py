"""Results of iterations that begin at a rate, and the figures of their tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.runs import in_rounds
from zodbshootout.model.latencies import Latencies
from zodbshootout.reports.headings import ResultSet
from zodbshootout.reports.tables import make_report
from zodbshootout.results.result import CellResult
from zodbshootout.workers.histograms import histogram

RUNS = 4
ITERATIONS = 400
"""The number of iterations of each run."""


def result(contender: str, rate: float, times: float = 1, **more: Any) -> CellResult:
    """Return a result at a rate, with 3 % of the latencies ten times as long as the others."""
    runs = []
    for number in range(RUNS):
        usual = 1e-3 * times * (1 + number / 1000)
        latencies = Latencies()
        latencies.record([usual] * 97 + [10 * usual] * 3)
        metadata = {
            "iterations": ITERATIONS,
            "latency_histogram": histogram(latencies).encode().decode(),
            "latency_max_s": 10 * usual,
            "part_of_schedule": 1.0,
            "lag_growth_s": "0.0",
            **more,
        }
        runs.append(in_rounds(contender, [[usual]] * RUNS, "update", **metadata).runs[number])
    made = in_rounds(contender, [[1e-3]], "update")
    parameters = replace(made.cell.parameters, rate=rate)
    return replace(made, cell=replace(made.cell, parameters=parameters), runs=tuple(runs))


def titles_and_figures(*results: CellResult) -> dict[str, list[str]]:
    (table,) = make_report([ResultSet(results)]).tables
    assert table.caption.startswith("Latency at a given rate (less is better): ")
    return {row.title: [entry.text for entry in row.entries] for row in table.rows}
