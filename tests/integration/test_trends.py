"""Storages that slow down, in the report of a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.integration.command import run
from tests.integration.sections import contender, filestorage, slowing

SLEEPING = 50
"""Milliseconds: so much longer than the rest of a commit that what else the machine does hardly
matters."""
FILES = {name: filestorage(f"$scratch/{name}.fs") for name in ("steady", "growing")}
CONTENDERS = (
    "%import faulty\n"
    + contender("steady", slowing(FILES["steady"], SLEEPING))
    + contender("growing", slowing(FILES["growing"], SLEEPING, "per-megabyte 900"))
)
EFFORT = ("-c", "1", "--object-counts", "5", "-s", "1000", "-p", "7", "-n", "4", "-l", "2")


def test_a_storage_that_slows_down_is_reported_and_not_measured_for_longer(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(CONTENDERS)
    done = run(tmp_path, "x.conf", "update", *EFFORT, "-o", "a.json")
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert [line for line in lines if line.startswith("growing: gets slower with time: ")]
    # Only the figure of the steady one may be imprecise, which depends on the machine.
    assert set(re.findall("imprecise: (.*) figures", done.out)) <= {"1 of 2"}
    compared = run(tmp_path, "compare", "a.json", "--contender", "steady", "growing")
    assert compared.status == 0, compared.err
    assert "more minute" not in compared.out
    records = json.loads(run(tmp_path, "show", "a.json", "--format", "json").out)
    p_values = {record["contender"]: record["trend_p_value"] for record in records}
    assert p_values["growing"] <= 0.01 < p_values["steady"]
    report = run(tmp_path, "report", "a.json", "-o", "a.html")
    assert report.status == 0, report.err
    assert "minutes since the start of the first run" in (tmp_path / "a.html").read_text()
