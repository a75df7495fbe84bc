"""What is carried to another Python: those of our modules that run in a client."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path

CARRIED = ("__init__.py", "client", "crews", "errors.py", "guardian.py", "mysql", "newt")
"""They need ZODB, the storage and nothing else."""


def carry_to(directory: Path) -> Path:
    """Copy the modules into a new directory; return what is to be in the path of a Python."""
    target = directory / "zodbshootout"
    target.mkdir(parents=True)
    with as_file(files("zodbshootout")) as ours:
        for name in CARRIED:
            if (ours / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ours / name, target / name, ignore=ignored)
            else:
                shutil.copy(ours / name, target / name)
    return directory
