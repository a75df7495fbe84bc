"""The table of quantities, from a run's metadata to everything that shows a number."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.files import written
from tests.commands import outcome
from tests.reports.at_a_rate import result as at_a_rate
from tests.runs import cell, measured, noisy
from zodbshootout.model import quantities
from zodbshootout.model.quantities import QUANTITIES, Quantity, Shown, recorded
from zodbshootout.model.units import NUMBER
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.sections import whole_report
from zodbshootout.results.files import read_results
from zodbshootout.results.result import CellResult


def counting(contender: str, widgets: int) -> CellResult:
    return measured(cell("add", contender), *noisy(1), widgets=widgets)


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of two contenders, and a quantity that is added by the next line."""
    widgets = Quantity("widgets", "widgets", NUMBER, recorded("widgets"), "widgets_counted")
    monkeypatch.setitem(quantities.QUANTITIES, "widgets", widgets)
    return written(tmp_path / "a.json", counting("fs", 7), counting("zeo", 9))


def test_a_quantity_is_added_by_a_line_and_shown_everywhere(both: Path) -> None:
    status, out, _ = outcome("show", both, "--unit", "widgets")
    assert (status, "Widgets" in out) == (0, True)
    assert {"7", "9"} <= set(out.split())
    assert "widgets" in outcome("show", both, "--costs")[1]
    fs, zeo = csv.DictReader(io.StringIO(outcome("show", both, "--format", "csv")[1]))
    assert (fs["widgets_counted"], zeo["widgets_counted"]) == ("7.0", "9.0")
    (fs, zeo) = json.loads(outcome("show", both, "--format", "json")[1])
    assert (fs["widgets_counted"], zeo["widgets_counted"]) == (7, 9)
    page = whole_report([ResultSet(read_results(both))])
    rows = {
        row.title.strip(): [entry.value for entry in row.entries]
        for part in page.parts
        for table in [*part.tables, *(table for one in part.parts for table in one.tables)]
        for row in table.rows
    }
    assert rows["widgets"] == [7, 9]


def test_a_new_quantity_is_compared_gated_and_required(both: Path) -> None:
    words = ("compare", both, "--contender", "fs", "zeo", "--metric", "widgets")
    status, out, _ = outcome(*words)
    assert (status, "zeo takes 1.29 times as much (exactly)" in out) == (0, True)
    assert outcome(*words, "--fail-above", "20%")[0] == 1
    assert outcome(*words, "--fail-above", "30%")[0] == 0
    from zodbshootout.cli.gate import Outcome, Requirement

    for result in read_results(both):
        (judgement,) = Requirement.parsed("add widgets <= 8").judged([result])
        assert (judgement.outcome is Outcome.KEPT) is (result.cell.contender == "fs")


def numbers_of(result: CellResult) -> Iterator[tuple[str, float | None]]:
    for name, quantity in QUANTITIES.items():
        figure = result.figures[quantity]
        yield name, None if figure is None else figure.value


def test_each_number_has_one_value_wherever_it_is_shown(tmp_path: Path) -> None:
    latencies = at_a_rate("zeo", 20, 3).metadata
    cost: dict[str, Any] = {
        "client_cpu_s": "0.02 0.03",
        "trips": "12 12",
        "conflicts": 3,
        "iterations": 400,
    }
    both = [
        at_a_rate("fs", 20),
        measured(
            cell("hot", "fs"), [0.02, 0.03], [0.04, 0.02], [0.03, 0.03],
            **{key: latencies[key] for key in ("latency_histogram", "latency_max_s")}, **cost,
        ),
    ]  # fmt: skip
    path = written(tmp_path / "a.json", *both)
    from zodbshootout.cli.gate import Requirement

    records = json.loads(outcome("show", path, "--format", "json")[1])
    lines = list(csv.DictReader(io.StringIO(outcome("show", path, "--format", "csv")[1])))
    for result, record, line in zip(read_results(path), records, lines, strict=True):
        numbers = dict(numbers_of(result))
        assert sum(number is not None for number in numbers.values()) >= 8
        for name, number in numbers.items():
            quantity = QUANTITIES[name]
            assert record[quantity.key] == number, name
            assert (float(line[quantity.key]) if line[quantity.key] else None) == number, name
            if number is None:
                continue
            figure = result.figures[quantity]
            assert figure is not None
            limit = Requirement.parsed(f"{result.cell.benchmark} {name} >= 0{unit_of(quantity)}")
            assert limit.figure(result) == figure
            shown = outcome("show", path, "--unit", name)[1]
            assert figure.entry.split()[0] in shown, name


def unit_of(quantity: Quantity) -> str:
    return "ms" if quantity.unit.symbol == "s" else ""


def test_the_rows_of_a_rate_have_the_values_of_their_quantities(tmp_path: Path) -> None:
    """The percentiles of a rate are those of all runs, and the longest is the longest."""
    result = at_a_rate("fs", 20)
    path = written(tmp_path / "a.json", result)
    (table,) = whole_report([ResultSet(read_results(path))]).tables
    shown = {row.title.split()[-1]: row.entries[0].value for row in table.rows}
    numbers = dict(numbers_of(result))
    assert shown == {name: numbers[name] for name in ("reached", "p50", "p99", "max")}
    assert shown["max"] == max(facts["latency_max_s"] for facts in result.facts)


def test_every_quantity_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "results.rst").read_text(encoding="utf-8")
    assert [name for name in QUANTITIES if f"``{name}``" not in page] == [
        "read_only_p90", "read_only_p99", "writing_p50", "writing_p90",
    ]  # fmt: skip


def test_keys_and_names_of_quantities_are_distinct_and_costs_have_work() -> None:
    keys = [quantity.key for quantity in QUANTITIES.values()]
    assert len(set(keys)) == len(keys)
    assert all(quantity.title for quantity in QUANTITIES.values())
    assert {one.name for one in quantities.quantities(Shown.LATENCY)} == {
        "p50",
        "p90",
        "p99",
        "max",
    }
