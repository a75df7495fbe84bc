"""A wheel of the sources, as it is published."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from uv import find_uv_bin

ROOT = Path(__file__).parents[1]


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
