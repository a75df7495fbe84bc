"""The table of costs, and the bars that show who takes most."""

from __future__ import annotations

from typing import Any

from tests.reports.results import cells_of
from tests.runs import cell, measured
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.costs import costs_report, costs_section
from zodbshootout.reports.drawing import draw
from zodbshootout.reports.elements import Chart
from zodbshootout.reports.html import figures_of
from zodbshootout.reports.sections import whole_report
from zodbshootout.results.result import CellResult


def taking(
    benchmark: str, contender: str, trips: int, cpu: float, rtt: float | None = None, **facts: Any
) -> CellResult:
    facts |= {"server_place": "this machine, private", "trips": f"{trips} {trips}"}
    return measured(
        cell(benchmark, contender, rtt=rtt), [0.1], [0.1], [0.1], server_cpu_s=str(cpu), **facts
    )


RESULTS = [
    taking("add", "zeo", 3, 0.02, sent_bytes="400800", network_bytes="411200"),
    taking("add", "pg", 12, 0.005, sent_bytes="1250000", network_bytes="1200000"),
    taking("cold", "zeo", 1000, 0.2),
    taking("cold", "pg", 500, 0.1),
]


def charts() -> dict[str, Chart]:
    section = costs_section(cells_of(RESULTS))
    return {chart.title: chart for chart in section.charts}


def lines_of(*results: CellResult) -> dict[str, list[str]]:
    table = costs_report([ResultSet(results)]).tables[0]
    return {row.title.strip(): [entry.shown for entry in row.entries] for row in table.rows}


def test_the_longest_bar_of_a_benchmark_is_that_of_the_greatest_cost() -> None:
    trips = charts()["Round trips"]
    drawn = draw(trips).to_dict()
    (bars,) = drawn["datasets"].values()
    assert [(bar["at"], bar["column"], bar["part"], bar["text"]) for bar in bars] == [
        ("add", "zeo", 0.25, "3"),
        ("add", "pg", 1.0, "12"),
        ("cold", "zeo", 1.0, "1,000"),
        ("cold", "pg", 0.5, "500"),
    ]
    assert {layer["mark"]["type"] for layer in drawn["layer"]} == {"bar", "text"}


def test_a_chart_of_costs_lists_its_figures_by_benchmark() -> None:
    table = figures_of(charts()["Processor time, server"])
    assert list(table.columns) == ["benchmark", "figure"]
    assert [[row.title, *(entry.shown for entry in row.entries)] for row in table.rows] == [
        ["zeo", "add", "20.0 ms"],
        ["zeo", "cold", "200 ms"],
        ["pg", "add", "5.00 ms"],
        ["pg", "cold", "100 ms"],
    ]


def test_a_cost_without_figures_has_no_chart() -> None:
    assert list(charts()) == ["Round trips", "Sent and received", "Processor time, server"]


def test_sizes_have_three_digits() -> None:
    lines = lines_of(*RESULTS)
    assert lines["sent to the server"] == ["401 kB", "1.25 MB"]
    assert "sent and received" not in lines


def test_of_several_round_trip_times_the_costs_of_the_shortest_are_shown() -> None:
    results = [
        taking("add", name, trips, rtt or 0.02, rtt)
        for name, trips in (("zeo", 3), ("pg", 12))
        for rtt in (0.0, 2e-3)
    ]
    assert lines_of(*results)["processor time, server"] == ["20.0 ms", "20.0 ms"]
    report = costs_report([ResultSet(results)])
    assert [record["contender"] for record in report.records] == [
        "zeo [0]", "zeo [2ms]", "pg [0]", "pg [2ms]"
    ]  # fmt: skip


def test_costs_and_distance_come_first_in_a_whole_report() -> None:
    report = whole_report([ResultSet(RESULTS)])
    assert [part.title for part in report.parts][:2] == ["Costs", "At a distance"]
