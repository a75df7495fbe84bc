"""A wheel of the sources, as it is published."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
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


def make_base_python(directory: Path) -> Path:
    """Make a virtual environment with what an installation without extras has, but for ours."""
    venv.create(directory, with_pip=False, symlinks=True)
    (packages,) = directory.glob("lib/*/site-packages")
    for name in required("zodbshootout") - {"zodbshootout"}:
        for file in distribution(name).files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                path = packages / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(file.locate())
    return directory / "bin" / "python"


def required(name: str) -> set[str]:
    """Return the packages that a package without extras needs, itself among them."""
    found: set[str] = set()
    wanted = [Requirement(name)]
    while wanted:
        requirement = wanted.pop()
        for extra in ("", *requirement.extras):
            key = canonicalize_name(requirement.name) + (f"[{extra}]" if extra else "")
            if key not in found:
                found.add(key)
                further = map(Requirement, distribution(requirement.name).requires or ())
                wanted += [
                    one
                    for one in further
                    if one.marker is None or one.marker.evaluate({"extra": extra})
                ]
    return {key for key in found if not key.endswith("]")}


def install_wheel(python: Path, wheel: Path) -> Path:
    """Install a wheel for a Python that has what it needs; return the directory of programs."""
    uv = (find_uv_bin(), "pip")
    offline = ("--quiet", "--no-cache", "--offline", "--no-deps")
    subprocess.run([*uv, "install", *offline, "--python", python, wheel], check=True)
    subprocess.run([*uv, "check", "--quiet", "--python", python], check=True)
    return python.parent
