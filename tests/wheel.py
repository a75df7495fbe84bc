"""A wheel of the sources, as it is published."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from uv import find_uv_bin

ROOT = Path(__file__).parents[1]
OURS = re.compile("zodbshootout", re.IGNORECASE)


def build_wheel(directory: Path) -> Path:
    """Build a wheel in *directory*, from a copy of the sources, and return its path.

    Nothing is written where other processes may read the sources meanwhile, and metadata that an
    installation has left there are not used.
    """
    copied = directory / "sources"
    copied.mkdir(parents=True)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copied)
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", copied / "src", ignore=left_out)
    built = directory / "built"
    subprocess.run(
        [
            find_uv_bin(), "build", "--wheel", "--quiet", "--no-cache", "--offline",
            "--no-build-isolation", "--python", sys.executable, "--out-dir", built, copied,
        ],
        check=True,
    )  # fmt: skip
    (wheel,) = built.glob("*.whl")
    return wheel


def make_python(directory: Path, left_out: re.Pattern[str] = OURS) -> Path:
    """Make a virtual environment with what is installed for the tests, and return its Python.

    Whatever has *left_out* in its name is missing.  uv sees only metadata that are in the
    environment itself, as a directory.
    """
    venv.create(directory, with_pip=False, symlinks=True)
    (packages,) = directory.glob("lib/*/site-packages")
    for place in (Path(path) for path in sys.path if path.endswith("site-packages")):
        for path in place.iterdir():
            if left_out.search(path.name):
                continue
            if path.name.endswith("-info"):
                shutil.copytree(path, packages / path.name)
            else:
                (packages / path.name).symlink_to(path)
    return directory / "bin" / "python"


def install_wheel(directory: Path) -> Path:
    """Make an environment with the wheel, and return the directory of its programs."""
    python = make_python(directory / "environment")
    subprocess.run(
        [
            find_uv_bin(), "pip", "install", "--quiet", "--no-cache", "--offline", "--no-deps",
            "--python", python, build_wheel(directory),
        ],
        check=True,
    )  # fmt: skip
    return python.parent
