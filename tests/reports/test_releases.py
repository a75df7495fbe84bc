"""Releases in tables, in words, in charts and in records."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.reports.results import cells_of
from tests.results.of_releases import (
    IN_ORDER,
    INSTALLED,
    all_releases,
    in_release,
    name_of,
    variant_in,
)
from tests.runs import cell, unsupported
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.costs import costs_report
from zodbshootout.reports.drawing import draw
from zodbshootout.reports.elements import Chart, ChartKind
from zodbshootout.reports.html import figures_of
from zodbshootout.reports.releases import NO_STEP, RELATIVE, releases_section
from zodbshootout.reports.sections import whole_report
from zodbshootout.reports.tables import make_report, tables_with_comparisons
from zodbshootout.results.result import CellResult


def notes_of(results: Sequence[CellResult]) -> Sequence[str]:
    return [str(note) for note in make_report([ResultSet(results)]).notes]


def charts_of(results: Sequence[CellResult]) -> list[Chart]:
    report = whole_report([ResultSet(results)])
    (section,) = [part for part in report.parts if part.anchor == "over-releases"]
    return list(section.charts)


def both() -> list[CellResult]:
    """Return the results of two benchmarks, of which one has a step."""
    return [*all_releases(v4_1_0=0.08), *(in_release(one, benchmark="add") for one in IN_ORDER)]


def test_a_table_has_a_row_for_each_release_below_its_contender() -> None:
    other = cell("update", "fs")
    results = [*both(), unsupported(other, "a reason")]
    (table,) = make_report([ResultSet(results)]).tables
    assert list(table.columns) == ["update", "add"]
    assert [row.title for row in table.rows] == [
        "fs", "pg, relstorage", "  4.0.0", "  4.1.0", "  4.2.0", "  4.3.0 (installed)", "  4.10.0",
    ]  # fmt: skip
    updates = {row.title: row.entries[0] for row in table.rows}
    ratio = updates["  4.3.0 (installed)"].ratio
    assert ratio is not None
    assert ratio.value == pytest.approx(1.25, rel=0.01)
    assert (updates["fs"].text, updates["  4.0.0"].ratio) == ("n/a", None)


def test_a_table_without_releases_keeps_its_columns() -> None:
    two = [in_release("4.3.0"), in_release("4.0.0")]
    (table,) = make_report([ResultSet(two)]).tables
    assert list(table.columns) == ["pg", "pg@relstorage==4.0.0"]


def test_a_release_is_not_compared_in_a_part_of_its_own() -> None:
    assert tables_with_comparisons([ResultSet(all_releases())]).parts == []
    two = [in_release("4.3.0"), in_release("4.0.0")]
    assert len(tables_with_comparisons([ResultSet(two)]).parts) == 1


def test_a_step_is_said_with_its_interval() -> None:
    sentence, *others = notes_of(both())
    assert re.fullmatch(
        r"update: 4\.1\.0 is 1\.25\d times as fast as 4\.0\.0 \(1\.2\d+ to 1\.2\d+\)", sentence
    )
    assert not any(note.startswith("pg") for note in others)
    slower, *_ = notes_of(all_releases(v4_1_0=0.11))
    assert re.match(r"update: 4\.0\.0 is 1\.\d+ times as fast as 4\.1\.0 \(1", slower)


def test_steps_of_several_contenders_name_them() -> None:
    others = [in_release(release, contender="my") for release in IN_ORDER[:-1]]
    others.append(in_release(IN_ORDER[-1], 0.2, contender="my"))
    first, second, *_ = notes_of([*all_releases(v4_1_0=0.08), *others])
    assert first.startswith("pg, update: 4.1.0 is 1.25")
    assert re.match(r"my, update: 4\.3\.0 is [\d.]+ times as fast as 4\.10\.0", second)


def test_a_step_names_the_releases_that_were_not_measured() -> None:
    results = all_releases(v4_1_0=0.08)
    results[2] = unsupported(results[2].cell, "no wheel")
    sentence, *_ = notes_of(results)
    assert sentence.endswith("); 4.1.0 between them was not measured")


def test_it_is_said_that_there_is_no_step() -> None:
    assert notes_of(all_releases())[0] == NO_STEP
    assert NO_STEP not in notes_of([in_release("4.3.0"), in_release("4.0.0")])


def counted() -> list[CellResult]:
    """Return results with fewer round trips and more bytes from 4.2.0 on."""
    facts = {release: (12, 900) if release < "4.2" else (11, 1800) for release in IN_ORDER[:-1]}
    return [
        in_release(release, trips=str(trips), sent_bytes=str(size))
        for release, (trips, size) in facts.items()
    ]


def test_a_step_of_round_trips_is_said_in_numbers_and_others_with_all_costs() -> None:
    trips = "update, round trips: 4.1.0 takes 1.09 times as much as 4.2.0 (exactly): 12 against 11"
    assert notes_of(counted())[0] == trips
    with_all = [str(note) for note in costs_report([ResultSet(counted())]).notes]
    assert list(with_all[:2]) == [
        trips,
        (
            "update, sent to the server: 4.2.0 takes 2.00 times as much as 4.1.0 (exactly): "
            "1.8 kB against 900 B"
        ),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_chart_has_a_line_over_releases_with_intervals_and_marks_the_steps() -> None:
    update, add = charts_of(both())
    assert update.kind is ChartKind.LINES
    assert update.drawn() == ["pg"]
    assert [point.x for point in update.points] == list(range(len(IN_ORDER)))
    assert update.x.names == IN_ORDER
    assert [point.y for point in update.points] == pytest.approx(
        [1, 1.25, 1.25, 1.25, 1.25], rel=0.01
    )
    assert update.points[0].low is None
    assert all(1.2 < point.low < point.y for point in update.points[1:] if point.low)
    assert re.match(r"1\.25×, [\d,]+ objects per second", update.points[1].text)
    (mark,) = update.marks
    assert (mark.x, mark.y, mark.text) == (1, update.points[1].y, "1.25×")
    assert mark.sentence == notes_of(both())[0]
    assert "4.0.0" in update.summary()
    assert add.marks == []
    assert f"{json.dumps(IN_ORDER)}[datum.value]" in str(draw(update).to_dict())
    assert [row.entries[0].text for row in figures_of(update).rows] == IN_ORDER


@pytest.mark.slow
def test_the_releases_of_two_files_are_in_one_order() -> None:
    measured = {one.cell.title: one for one in all_releases()}
    later, earlier = (
        ResultSet([measured[name_of(release)] for release in releases], label)
        for label, releases in (("a", IN_ORDER[2:]), ("b", IN_ORDER[:4]))
    )
    report = whole_report([later, earlier])
    (section,) = [part for part in report.parts if part.anchor == "over-releases"]
    (chart,) = section.charts
    assert {chart.x.text(point.x): point.x for point in chart.points} == {
        release: number for number, release in enumerate(IN_ORDER)
    }


def test_a_cost_with_a_step_has_a_chart() -> None:
    charts = charts_of(counted())
    assert [chart.y.title for chart in charts] == [
        RELATIVE,
        "round trips per iteration (less is better)",
        "sent to the server per iteration (less is better)",
    ]
    assert [mark.text for chart in charts[1:] for mark in chart.marks] == ["0.92×", "2.00×"]


def test_a_page_begins_with_the_largest_steps() -> None:
    smaller = [in_release(release, 0.1, benchmark="add") for release in IN_ORDER[:-1]]
    smaller.append(in_release(IN_ORDER[-1], 0.09, benchmark="add"))
    report = whole_report([ResultSet([*all_releases(v4_1_0=0.08), *smaller])])
    assert report.title == "pg over relstorage"
    verdicts = [str(note) for note in report.verdicts]
    assert [re.sub(r" is .* as fast as|\(.*", "", line).split() for line in verdicts] == [
        ["update:", "4.1.0", "4.0.0"], ["add:", "4.10.0", "4.3.0"],
    ]  # fmt: skip
    assert report.without_charts[0].anchor == "over-releases"


def test_the_table_of_a_page_compares_each_release_with_the_one_before() -> None:
    (table,) = releases_section(cells_of(both())).tables
    assert [row.title for row in table.rows] == [
        f"pg, relstorage {release}" for release in IN_ORDER[1:]
    ]
    updates = [row.entries[0].value for row in table.rows]
    assert updates == pytest.approx([1.25, 1, 1, 1], rel=0.02)


def test_a_record_has_the_release_and_its_ratio_to_the_one_before() -> None:
    records = {record["contender"]: record for record in make_report([ResultSet(both())]).records
               if record["benchmark"] == "update"}  # fmt: skip
    first, second = (records[name_of(release)] for release in IN_ORDER[:2])
    assert (first["release"], first["release_before"], first["step_ratio"]) == ("4.0.0", None, None)
    assert (second["release"], second["release_before"]) == ("4.1.0", "4.0.0")
    assert second["step_low"] < 1.25 < second["step_high"]
    assert second["step_verdict"] == "faster"


def of_two_packages() -> list[CellResult]:
    """Return the releases of a storage and of its driver, each of which has a step to installed."""
    of_driver = [
        replace(one, cell=replace(one.cell, variant=variant_in(driver, "psycopg2")))
        for driver in ("2.7", "2.8")
        for one in [in_release(driver, 0.12, version_RelStorage=INSTALLED, version_psycopg2=driver)]
    ]
    of_storage = [
        in_release(release, 0.08 if release in IN_ORDER[3:] else 0.1, version_psycopg2="2.9")
        for release in IN_ORDER
    ]
    return [*of_storage[3:4], *of_storage[:3], *of_storage[4:], *of_driver]


def test_a_step_is_in_the_charts_and_records_of_its_own_package() -> None:
    storage, driver = charts_of(of_two_packages())
    assert (storage.x.names, driver.x.names) == (IN_ORDER, ["2.7", "2.8", "2.9"])
    assert [(mark.x, mark.text) for mark in storage.marks] == [(3, "1.25×")]
    assert [(mark.x, mark.text) for mark in driver.marks] == [(2, "1.50×")]
    records = make_report([ResultSet(of_two_packages())]).records
    steps = {
        record["contender"]: (record["release"], record["release_before"]) for record in records
    }
    assert steps["pg"] == (INSTALLED, "4.2.0")
    assert steps[name_of("4.1.0")] == ("4.1.0", "4.0.0")
    assert steps["pg@psycopg2==2.8"] == ("2.8", "2.7")
    assert records[0]["step_ratio"] == pytest.approx(1.25, rel=0.02)
