"""Build a release from a commit, and try what a package index would get of it.

``tox -e release -- TAG`` builds the source distribution and the wheel from a clean clone at that
tag, or at ``HEAD`` without one, and checks both.  With each supported Python that is installed, it
installs the wheel into a new environment and runs :data:`COMMANDS` there, outside the checkout; it
also runs tests from the unpacked source distribution.  If all of that works, the files are put
into ``dist``.  Packages come from the index; nothing is uploaded.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.fetch_wheels import python_with

ROOT = Path(__file__).parents[1]
COMMANDS = (
    "zodbshootout --version",
    "zodbshootout -p 1 -n 1 --object-counts 10 -o first.json",
    "zodbshootout sample",
    "zodbshootout fs-sample -c 2 --threads --list",
    "python -m zodbshootout show first.json",
)
"""The commands to run with each Python."""
TESTED = ("tests/results", "tests/reports")
"""Tests to run from the source distribution; they need no servers."""
UV = (sys.executable, "-m", "uv", "--quiet")


def main(words: Sequence[str]) -> int:
    """Build and try the release at a tag; return the exit status."""
    revision = words[0] if words else "HEAD"
    pythons = {version: python_with(version) for version in supported()}
    with tempfile.TemporaryDirectory(prefix="release") as place:
        source, built = Path(place, "source"), Path(place, "dist")
        try:
            clone(revision, source)
            build(source, built)
            check_version(revision, built)
            for version, python in pythons.items():
                if python is not None:
                    try_wheel(python, built, Path(place, version))
            try_source(built, Path(place, "unpacked"))
        except subprocess.CalledProcessError as error:
            return report(f"failed with status {error.returncode}: {shlex.join(error.cmd)}", 1)
        except ValueError as error:
            return report(str(error), 1)
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        shutil.copytree(built, ROOT / "dist")
    missing = [version for version, python in pythons.items() if python is None]
    tried = [version for version in pythons if version not in missing]
    report(f"dist has the release of {revision}, tried with Python {', '.join(tried)}")
    if missing:
        report(f"not tried, because not installed: Python {', '.join(missing)}")
    return 0


def report(line: str, status: int = 0) -> int:
    """Print a line; return the exit status."""
    sys.stderr.write(f"release: {line}\n")
    return status


def supported() -> list[str]:
    """Return the versions of Python that the package is declared to support."""
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', declared)


def clone(revision: str, source: Path) -> None:
    """Make a clean tree at a *revision*, which lacks whatever is not committed."""
    run("git", "clone", "--quiet", "--no-checkout", str(ROOT), str(source))
    run("git", "-C", str(source), "checkout", "--quiet", "--detach", revision)


def build(source: Path, built: Path) -> None:
    """Build the source distribution, and the wheel from it, and check both."""
    run("check-manifest", str(source))
    run(sys.executable, "-m", "build", "--outdir", str(built), str(source))
    run("twine", "check", "--strict", *map(str, sorted(built.iterdir())))


def check_version(revision: str, built: Path) -> None:
    """Raise a ValueError if a tag is not the version of what was built from it."""
    version = next(built.glob("*.whl")).name.split("-")[1]
    command = ["git", "-C", str(ROOT), "tag", "--list", revision]
    is_tag = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    if is_tag and revision.removeprefix("v") != version:
        raise ValueError(f"the tag is {revision}, but pyproject.toml says {version}")


def try_wheel(python: str, built: Path, place: Path) -> None:
    """Install the wheel into a new environment, and run the commands in an empty directory."""
    programs = environment(python, place, str(next(built.glob("*.whl"))))
    (place / "work").mkdir()
    for command in COMMANDS:
        program, *words = shlex.split(command)
        run(str(programs / program), *words, directory=place / "work")


def try_source(built: Path, place: Path) -> None:
    """Unpack the source distribution, and run some of its tests on what is installed from it."""
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        # Python 3.11.2, which is in Debian 12, has no filters.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(place)
    (source,) = place.iterdir()
    programs = environment(sys.executable, place / "environment", f"{source}[test]")
    run(str(programs / "python"), "-m", "pytest", "-q", *TESTED, directory=source)


def environment(python: str, place: Path, *packages: str) -> Path:
    """Make an environment that has the *packages*; return the directory of its programs."""
    run(*UV, "venv", "--python", python, str(place))
    run(*UV, "pip", "install", "--python", str(place / "bin" / "python"), *packages)
    return place / "bin"


def run(*words: str, directory: Path | None = None) -> None:
    """Print a command and run it.

    :raises subprocess.CalledProcessError: if its status is not 0
    """
    report(shlex.join(words))
    subprocess.run(words, cwd=directory, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
