"""The workflow of the documentation: its own lines, with one environment in place of two."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml

WORKFLOW = Path(__file__).parents[2] / "docs" / "examples" / "benchmark.yml"
STORAGE = """
%import relstorage
<zodb sqlite>
    cache-size 5000
    <relstorage>
        keep-history false
        <sqlite3>
            data-dir $scratch/sqlite
        </sqlite3>
    </relstorage>
</zodb>
"""


def steps() -> dict[str, str]:
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return {
        step["name"]: step["run"] for step in workflow["jobs"]["compare"]["steps"] if "run" in step
    }


def run(step: str, directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GITHUB_STEP_SUMMARY": str(directory / "summary.md")}
    return subprocess.run(
        ["bash", "-e", "-c", step],
        check=False, capture_output=True, text=True, cwd=directory, env=environment, timeout=250,
    )  # fmt: skip


def test_the_workflow_measures_compares_and_lets_pass_what_is_the_same(tmp_path: Path) -> None:
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bin").symlink_to(Path(sys.executable).parent)
    (tmp_path / "benchmarks.conf").write_text(STORAGE, encoding="utf-8")
    briefly = (
        steps()["Measure both in turn"]
        .replace("1 2 3 4 5 6 7 8", "1 2 3")
        .replace("-p 1", "-p 1 -n 3 --object-counts 20")
    )
    measured = run(briefly, tmp_path)
    assert (measured.returncode, measured.stderr) == (0, "")
    # A limit that no noise of so few runs can close the gate at.
    compared = run(steps()["Compare"].replace("5%", "10000%"), tmp_path)
    assert (compared.returncode, compared.stderr) == (0, "")
    assert "Geometric mean of 3 ratios" in compared.stdout
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert summary.count("| Read 20 Cold Objects |") == 1
    assert "the runs were made at different times" in summary
