"""Record an application with nothing but ZODB installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools.fetch_wheels import OLD

from tests.recording.recordings import counts

ROOT = Path(__file__).parents[2]
APPLICATION = """
import sys, ZODB.config
with ZODB.config.databaseFromString(sys.argv[1]).transaction() as connection:
    connection.root()["title"] = "x"
from importlib.metadata import distributions
print(sorted(distribution.metadata["Name"].lower() for distribution in distributions()))
"""
CONFIGURATION = """
%import zodbshootout.recording
<zodb>
  <recording>
    path {place}
    <mappingstorage/>
  </recording>
</zodb>
"""
NEEDED = {"zodb", "zodbshootout"}
"""The packages that are installed in addition to ZODB's requirements."""
OTHERS = {"pyperf", "rich", "zeo", "relstorage", "psutil", "hdrhistogram", "platformdirs"}


def source_in(place: Path) -> Path:
    """Return a copy of the sources to build from, because a build leaves files behind."""
    source = place / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("setup.py", "pyproject.toml", "README.rst"):
        shutil.copy(ROOT / name, source)
    return source


@pytest.mark.network
def test_recording_works_with_only_zodb_installed(tmp_path: Path) -> None:
    OLD.fetch()
    home, place = tmp_path / "venv", tmp_path / "main.workload"
    python = str(home / "bin" / "python")
    uv = str(Path(sys.executable).with_name("uv"))
    for command in (
        [uv, "venv", "-q", "--python", sys.executable, str(home)],
        [uv, "pip", "install", "-q", "--python", python, "--no-index",
         "--find-links", str(OLD.directory), "ZODB==5.8.1", "setuptools"],
        [uv, "pip", "install", "-q", "--python", python, "--no-index", "--no-deps",
         "--no-build-isolation", str(source_in(tmp_path))],
    ):  # fmt: skip
        subprocess.run(command, check=True)
    done = subprocess.run(
        [python, "-c", APPLICATION, CONFIGURATION.format(place=place)],
        capture_output=True, text=True, check=False, cwd=tmp_path, env={},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for name in NEEDED:
        assert f"'{name}'" in done.stdout
    for name in OTHERS:
        assert f"'{name}'" not in done.stdout
    assert counts(place)["FINISH"] == 2
