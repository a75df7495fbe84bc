"""Run the steps of the documented workflow, with a virtual environment as the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import yaml

from tests.integration import command

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
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        **os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(directory / "summary.md")
    }  # fmt: skip
    return subprocess.run(
        ["bash", "-e", "-c", step],
        check=False, capture_output=True, text=True, cwd=directory, env=environment, timeout=250,
    )  # fmt: skip


def make_environment(directory: Path) -> None:
    """Create a virtual environment with the packages that are installed for the tests."""
    venv.create(directory, with_pip=False, symlinks=True)
    (packages,) = directory.glob("lib/*/site-packages")
    lines = (f"import site; site.addsitedir({path!r})\n" for path in sys.path if "site-p" in path)
    (packages / "tests.pth").write_text("".join(lines), encoding="utf-8")


def test_the_workflow_measures_compares_and_passes_if_nothing_changed(tmp_path: Path) -> None:
    make_environment(tmp_path / "before")
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "benchmarks.conf").write_text(STORAGE, encoding="utf-8")
    briefly = steps()["Measure both in turn"].replace(
        "-p 8", "-p 3 -n 1 --object-counts 5 --min-time 0.001"
    )
    measured = run(briefly, repository)
    assert (measured.returncode, measured.stderr) == (0, "")
    assert "the speed as a multiple of that of its original, for a variant" in measured.stdout
    # The noise of only three runs cannot exceed this limit.
    compared = run(steps()["Compare"].replace("5%", "10000%"), repository)
    assert (compared.returncode, compared.stderr) == (0, "")
    assert "the ratios are those of values that were taken in turn" in compared.stdout
    summary = (repository / "summary.md").read_text(encoding="utf-8")
    assert summary.count("| cold |") == 1


def test_a_run_is_a_gate_on_what_it_measures_against(tmp_path: Path) -> None:
    make_environment(tmp_path / "same")
    venv.create(tmp_path / "empty", with_pip=False, symlinks=True)
    (tmp_path / "benchmarks.conf").write_text(STORAGE, encoding="utf-8")
    command = (
        "zodbshootout benchmarks.conf add -c 1 -p 3 -n 1 --object-counts 5 --min-time 0.001 -q "
        "--fail-above 10000%"
    )
    same = run(f"{command} --against ./same", tmp_path)
    assert (same.returncode, same.stderr) == (0, "")
    empty = run(f"{command} --against ./empty", tmp_path)
    assert empty.returncode == 1
    assert empty.stderr.count("\n") == 1
    assert "failed, but the base has a figure: sqlite@empty: add" in empty.stderr


QUICK = ("-c", "1", "-p", "3", "-n", "1", "--object-counts", "5", "--min-time", "0.001", "-q")


def test_a_run_whose_limits_are_not_kept_ends_with_status_1(place: Path) -> None:
    (place / "benchmarks.conf").write_text(STORAGE, encoding="utf-8")
    words = ("benchmarks.conf", "add", *QUICK, "--require", "add objects > 0", "--require")
    done = command.run(place, *words, "sqlite: add max <= 100s")
    assert (done.status, done.err) == (0, "")
    assert done.out.count("kept: ") == 2
    done = command.run(place, *words, "add max <= 0.0001ms")
    assert (done.status, done.out.count("kept: ")) == (1, 1)
    assert done.complaint.startswith("zodbshootout: broken: add max <= 0.0001ms: ")
    refused = command.run(place, *words, "zeo: add max <= 1s")
    assert (refused.status, refused.out) == (2, "")
    assert "--require: no contender 'zeo'; there are sqlite" in refused.complaint
