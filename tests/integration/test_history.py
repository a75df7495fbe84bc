"""Add points to a history in real runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.command import open_directory, run
from tests.integration.sections import contender, filestorage
from zodbshootout.results.anchor import read_anchor
from zodbshootout.results.history import ANCHOR, CANARY, PREVIOUS, read_points

QUICK = (
    "--object-counts", "5", "-p", "3", "-n", "1", "--min-time", "0.001", "-c", "1", "-q",
    "-o",
)  # fmt: skip


@pytest.fixture
def directory() -> Iterator[Path]:
    with open_directory() as path:
        (path / "fs.conf").write_text(
            contender("fs", filestorage("$scratch/x.fs")), encoding="utf-8"
        )
        yield path


def test_a_point_follows_the_one_before_even_if_that_cannot_be_installed_any_more(
    directory: Path,
) -> None:
    command = ("fs.conf", "tpc", "--history", "watched")
    done = run(directory, *command, *QUICK, "1.json")
    assert (done.status, done.err) == (0, "")
    watched = directory / "watched"
    (first,) = read_points(watched)
    assert f"Point: watched/{first.name}.json" in done.out
    assert [set(cell.ratios) for cell in first.cells] == [{"candidate/anchor", CANARY}]
    assert first.packages[ANCHOR] == first.packages["candidate"]
    anchor = read_anchor(watched)
    assert anchor is not None
    assert f"ZODB=={first.packages[ANCHOR]['ZODB'].version}" in anchor.requirements
    file = watched / f"{first.name}.json"
    written = json.loads(file.read_text(encoding="utf-8"))
    written["packages"]["candidate"]["ZODB"]["version"] = "1999.9"
    file.write_text(json.dumps(written), encoding="utf-8")
    done = run(directory, *command, *QUICK, "2.json")
    assert (done.status, done.err) == (0, "")
    _, second = read_points(watched)
    assert second.previous == first.name
    assert "environment previous cannot be made" in second.absent[PREVIOUS]
    assert set(second.cells[0].ratios) == {"candidate/anchor", CANARY}
    shown = run(directory, "history", "watched")
    assert (shown.status, shown.err) == (0, "")
    assert "no ratio to the previous point: environment previous cannot be made" in shown.out
