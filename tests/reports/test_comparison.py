"""The report of a comparison: which of the differences it lists first."""

from __future__ import annotations

import json

import pytest

from tests.runs import cell, measured
from zodbshootout.reports.comparison import comparison_report
from zodbshootout.results.result import CellResult
from zodbshootout.results.sides import compare


@pytest.mark.parametrize("same_kind", [False, True])
def test_what_matters_of_the_differences_comes_first_and_the_rest_can_be_folded(
    *, same_kind: bool
) -> None:
    def side(name: str, kind: str, **settings: str) -> list[CellResult]:
        settings = {"path": f"$scratch/{name}", "one": "-", **settings}
        metadata = {"settings": json.dumps(settings), "storage_classes": kind}
        return [measured(cell("add", name), [1.0], **metadata)]

    differing = {"pragma": "off", "cache": "5", "wait": "1", "threads": "2"}
    base = side("a", "FileStorage", cache="1", wait="2", threads="3")
    new = side("b", "FileStorage" if same_kind else "ZEO", **differing)
    sides = compare(base, new, across=True).named("a", "b")
    kind = [] if same_kind else ["storage_classes: FileStorage against ZEO"]
    own = ["pragma: - against off"]
    both = ["cache: 1 against 5", "wait: 2 against 1", "threads: 3 against 2"]
    path = ["path: $scratch/a against $scratch/b"]
    listed = [*both, *own, *path] if same_kind else [*kind, *both, *path, *own]
    report = comparison_report(sides, verbose=True)
    assert [note for note in map(str, report.notes) if "differs" in note] == [
        f"differs: {difference}" for difference in listed[:4]
    ]
    assert [listing.text for listing in report.listings] == ["\n".join(listed[4:])]
    briefly = comparison_report(sides)
    more = len(listed) - 4
    notes = list(map(str, briefly.notes))
    assert f"differs: {'; '.join(listed[:4])}; and {more} more (--verbose)" in notes
    assert not briefly.listings
