"""``zodbshootout history``: what it prints, its page, its feed, its exports and its gate."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from benchmarks.histories import Simulated, simulated, step

from tests.commands import outcome
from tests.results.points import FIRST, with_trips
from zodbshootout.cli.main import command_in
from zodbshootout.reports.history_report import ATOM
from zodbshootout.results.history import write_point

SLOWER = f"{FIRST} takes 1.05"


def run(*arguments: str | Path) -> tuple[int, str, str]:
    status, out, err = outcome("history", *arguments)
    return status, " ".join(out.split()), err


def written(directory: Path, history: Simulated) -> Path:
    for point in history.points:
        write_point(point, directory)
    return directory


@pytest.fixture
def slower(tmp_path: Path) -> Path:
    return written(tmp_path / "history", simulated("slower", step(3), points=4))


def test_the_newest_verdicts_come_first(slower: Path) -> None:
    status, out, err = run(slower)
    assert (status, err) == (0, "")
    previous, anchor = (out.index(f"as {base}") for base in ("at the previous", "with the anchor"))
    assert previous < anchor < out.index("Newest point")
    assert out.startswith(f"2026-01-01T0003: {SLOWER}")


def test_a_newest_point_without_verdicts_says_what_it_would_have_found(tmp_path: Path) -> None:
    _, out, _ = run(written(tmp_path / "history", simulated("nothing", points=2)))
    assert "no change was found; changes of" in out
    assert "% would have been" in " ".join(out.split())


def test_a_change_beyond_the_limit_fails(slower: Path) -> None:
    status, _, err = run(slower, "--fail-above", "1%")
    assert status == 1
    assert err.count("zodbshootout: beyond 1 %") == 2
    assert run(slower, "--fail-above", "10%")[0] == 0


def test_more_round_trips_fail(tmp_path: Path) -> None:
    history = simulated("trips", points=2)
    history.points[-1] = with_trips(
        history.points[-1], candidate=[12, 12, 12], previous=[11, 11, 11], anchor=[12, 12, 12]
    )
    directory = written(tmp_path / "history", history)
    status, _, err = run(directory, "--fail-above", "5%")
    assert status == 1
    assert f"{FIRST}: 12 round trips per iteration, 11 at the previous point" in err
    assert run(directory, "--fail-above", "10%")[0] == 0


def test_an_accepted_change_is_silent(slower: Path) -> None:
    (slower / "accepted.toml").write_text(
        '[[change]]\nbenchmark = "benchmark0"\npoint = "2026-01-01T0003"\nreason = "safer"\n'
    )
    status, out, err = run(slower, "--fail-above", "1%")
    assert (status, err) == (0, "")
    assert SLOWER not in out
    assert out.endswith("benchmark0 2026-01-01T0003 safer")


@pytest.mark.parametrize(
    ("text", "reason"),
    [('[[change]]\npoint = "x"\nreason = "y"', "number 1 needs point, reason, and benchmark or"),
     ('[[change]]\ncell = "a"\nbenchmark = "a"\npoint = "x"\nreason = "y"', "number 1 needs"),
     ('[[change]]\ncell = "a"\npoint = "x"\nreason = "y"', "no point 'x'; there are"),
     ("[change]\n", "write [[change]]"), ("[[change", "accepted.toml")],
)  # fmt: skip
def test_a_mistake_in_accepted_toml_is_one_line(slower: Path, text: str, reason: str) -> None:
    (slower / "accepted.toml").write_text(text)
    status, _, err = run(slower)
    assert status == 2
    assert reason in err
    assert err.count("\n") == 1


def test_machines_are_side_by_side(slower: Path) -> None:
    other = simulated("other machine", points=3)
    for point in other.points:
        write_point(
            point.__class__(**{**vars(point), "name": f"{point.name}-b", "machine": {"name": "b"}}),
            slower,
        )
    _, out, _ = run(slower)
    assert out.index("2026-01-01T0003:") < out.index("2026-01-01T0002-b:")
    assert "2026-01-01T0002-b: no change was found" in out


def test_csv_and_json_have_each_cell_of_each_point(slower: Path) -> None:
    status, out, _ = outcome("history", slower, "--format", "csv")
    assert status == 0
    rows = list(csv.DictReader(out.splitlines()))
    assert len(rows) == 4 * 8
    changed = [(row["point"], row["cell"]) for row in rows if row["changed"] == "True"]
    assert changed == [("2026-01-01T0003", FIRST)]
    assert float(rows[-8]["position"]) == pytest.approx(float(rows[-8]["ratio_to_anchor"]))


@pytest.mark.parametrize(
    ("name", "value"), [("customBiggerIsBetter", 0.95), ("customSmallerIsBetter", 1.05)]
)
def test_exports_are_what_github_action_benchmark_takes(
    slower: Path, name: str, value: float
) -> None:
    status, out, _ = outcome("history", slower, "--format", name)
    assert status == 0
    first, *others = json.loads(out)
    assert set(first) == {"name", "unit", "value", "range", "extra"}
    assert (first["name"], len(others)) == (FIRST, 7)
    assert first["value"] == pytest.approx(value, abs=0.02)


@pytest.mark.slow
def test_a_page_has_a_chart_of_each_cell_and_a_feed_beside_it(slower: Path, tmp_path: Path) -> None:
    page = tmp_path / "history.html"
    status, out, _ = run(slower, "--report", page)
    assert status == 0
    text = page.read_text(encoding="utf-8").replace("<wbr>", "")
    assert text.count("data-chart=") == 8
    changed = "RelStorage 4.2.0 → 4.3.0" in text
    assert changed
    feed = ET.parse(tmp_path / "history.atom").getroot()
    (entry,) = feed.findall(f"{{{ATOM}}}entry")
    assert (entry.findtext(f"{{{ATOM}}}title") or "").startswith(SLOWER)
    assert out.endswith(f"Report: {page} Feed: {tmp_path / 'history.atom'}")


def test_what_holds_no_points_is_an_error(tmp_path: Path) -> None:
    status, _, err = run(tmp_path)
    assert (status, "holds no points; to make one" in err) == (2, True)
    (tmp_path / "x.json").write_text("[]")
    status, _, err = run(tmp_path)
    assert (status, "is not a point of a history" in err) == (2, True)
    (tmp_path / "x.json").write_text('{"zodbshootout_history": 99}')
    status, _, err = run(tmp_path)
    assert (status, "later version" in err) == (2, True)


def test_history_without_a_directory_is_the_benchmark(tmp_path: Path) -> None:
    assert command_in(["history", "-p", "2"])[0] == "run"
    assert command_in(["history"])[0] == "run"
    assert command_in(["history", "update"])[0] == "run"
    assert command_in(["history", str(tmp_path)])[0] == "history"
    assert command_in(["history", "missing"])[0] == "history"
    assert command_in(["history", "--help"])[0] == "history"
    assert command_in(["history", "-h"])[0] == "history"
