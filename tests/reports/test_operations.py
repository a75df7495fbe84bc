"""Tables and notes of cells that were measured before, during and after an operation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.reports.at_a_rate import RUNS, result, titles_and_figures
from tests.reports.results import cells_of
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.charts import distributions
from zodbshootout.reports.tables import make_report
from zodbshootout.results.names import long_name, short_name
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import compare


def in_phase(contender: str, phase: str, times: float = 1, **more: Any) -> CellResult:
    made = result(contender, 20, times, **more)
    parameters = replace(made.cell.parameters, during="pack", phase=phase)
    return replace(made, cell=replace(made.cell, parameters=parameters))


def phases(contender: str, times: float = 1, **after: Any) -> list[CellResult]:
    """Return the results of a contender whose latencies are longer during a pack."""
    recovered: dict[str, Any] = after or {"recovered_s": 2.5}
    return [
        in_phase(contender, "before", unobserved_s=0.1, on_clock_s=20.0),
        in_phase(
            contender, "during", times, operation_s=4.0, unobserved_s=0.1, on_clock_s=20.0,
        ),
        in_phase(contender, "after", unobserved_s=0.1, on_clock_s=20.0, **recovered),
    ]  # fmt: skip


def note(*results: CellResult) -> str:
    notes = map(str, make_report([ResultSet(results)]).notes)
    (line,) = [line for line in notes if "pack during" in line]
    return line


def test_each_phase_has_rows_of_its_own() -> None:
    shown = titles_and_figures(*phases("a"), *phases("b", 3))
    titles = [title for title in shown if "pack" in title]
    assert titles == [
        "update 20/s before pack reached",
        "update 20/s during pack reached",
        "update 20/s after pack reached",
    ]


def test_the_cells_of_phases_have_different_names() -> None:
    cells = [one.cell for one in phases("a")]
    assert [short_name(cell, ()) for cell in cells] == [
        "update before pack", "update during pack", "update after pack",
    ]  # fmt: skip
    assert len({long_name(cell) for cell in cells}) == 3


def test_a_chart_for_each_contender_has_a_line_for_each_phase() -> None:
    charts = list(distributions(cells_of([*phases("a"), *phases("b", 3)])))
    assert [chart.subtitle.partition(",")[0] for chart in charts] == ["a", "b"]
    for chart in charts:
        lines = ["before pack", "during pack", "after pack"]
        assert "pack" not in chart.title
        assert chart.columns == lines
        assert list(dict.fromkeys(point.column for point in chart.points)) == lines


def test_phases_are_compared_with_the_same_phase_of_another_contender() -> None:
    comparison = compare(phases("a"), phases("b", 3), across=True)
    times = {change.new.cell.parameters.phase: change.ratio for change in comparison.changes}
    assert set(times) == {"before", "during", "after"}
    assert times["during"].value < 0.5 < times["before"].value


@pytest.mark.slow
def test_a_note_says_how_long_the_operation_took_and_when_latencies_were_back() -> None:
    assert note(*phases("a")) == (
        f"a: pack during update at 20/s took 4 seconds (4 to 4 s in {RUNS} runs); p99 was back "
        "after 2.5 seconds"
    )
    assert "p99 was back at once" in note(*phases("a", recovered_s=0.0))
    late = note(*phases("a", not_recovered_s=61.0))
    assert f"p99 was not back within 61 seconds, in {RUNS} of {RUNS} runs" in late


def test_a_note_names_repeated_iterations_and_what_was_not_observed() -> None:
    results = phases("a")
    during = in_phase("a", "during", operation_s=4.0, unobserved_s=5.0, on_clock_s=20.0, retries=3)
    line = note(results[0], during, results[2])
    assert "12 of 1,600 iterations were repeated meanwhile" in line
    assert "11% of the time, between slices, was not observed" in line


def test_latencies_during_an_operation_are_shown_even_if_the_queue_grows() -> None:
    overloaded = in_phase("a", "during", part_of_schedule=0.5, operation_s=1.0)
    assert overloaded.keeps_up
    assert not replace(overloaded, cell=overloaded.cell.without_operation).keeps_up


def test_a_note_counts_lost_commits_and_errors_after_a_restart() -> None:
    line = note(
        *phases(
            "a", recovered_s=0.0, acknowledged_commits=778, lost_commits=1, failed_iterations=2,
            first_transaction_s=1.5, hundredth_transaction_s=3.0, reconnections=3,
        )
    )  # fmt: skip
    assert "the first transaction after 1.5 seconds; the hundredth transaction after 3 s" in line
    assert (
        "3 seconds; 12 reconnections; 8 errors reached the application; 4 of 3,112 commits lost"
        in line
    )


def test_a_note_names_no_commits_if_there_were_none_to_lose() -> None:
    restarted = {"acknowledged_commits": 0, "lost_commits": 0, "failed_iterations": 1}
    line = note(*phases("a", recovered_s=0.0, **restarted))
    assert line.endswith("4 errors reached the application")
