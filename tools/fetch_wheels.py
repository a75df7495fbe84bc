"""Fetch the wheels from which the tests make environments, or build them, once.

``python tools/fetch_wheels.py`` puts wheels into ``.tox/wheels``, a directory for each set.  The
tests then have uv make their environments from these alone.  The script needs a package index and,
for two of the sets, the packages that ``tools/install_servers.py`` installs.
"""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

WHEELS = Path(__file__).parents[1] / ".tox" / "wheels"
COMPLETE = "complete"


@dataclass(frozen=True)
class WheelSet:
    """The wheels for one Python."""

    name: str
    requirements: Sequence[str]
    python: str = sys.executable

    @property
    def directory(self) -> Path:
        """The directory of the wheels, one for each Python, because a wheel may fit only one."""
        return WHEELS / f"{self.name}-{sys.implementation.cache_tag}"

    def is_there(self) -> bool:
        """Return whether all wheels were fetched earlier, for the same requirements."""
        marker = self.directory / COMPLETE
        return marker.exists() and marker.read_text() == " ".join(self.requirements)

    def fetch(self) -> None:
        """Fetch or build the wheels, unless another process does: then wait until they are there.

        :raises subprocess.CalledProcessError: if pip fails
        """
        WHEELS.mkdir(parents=True, exist_ok=True)
        with self.directory.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.is_there():
                self._fetch()

    def _fetch(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        with tempfile.TemporaryDirectory() as place:
            # Another Python need not have pip itself, and that of tox may be an old one.
            subprocess.run([self.python, "-m", "venv", place], check=True)
            subprocess.run(
                [
                    f"{place}/bin/python", "-m", "pip", "wheel", "-qqq",
                    "--disable-pip-version-check", "--wheel-dir", str(self.directory),
                    *self.requirements,
                ],
                check=True,
                # Compiling takes most of the time, and nothing is timed in these environments.
                env={"LDCXXSHARED": "c++ -shared", "CFLAGS": "-O0", **os.environ},
            )  # fmt: skip
        (self.directory / COMPLETE).write_text(" ".join(self.requirements))


def python_since(major: int, minor: int) -> str | None:
    """Return a Python of that version or a later one, this one if it is, ``None`` without any."""
    return _python_that(f"sys.version_info >= ({major}, {minor})")


def python_with(version: str) -> str | None:
    """Return a Python of exactly that version, such as ``3.13``, ``None`` if none is installed."""
    return _python_that(f"'.'.join(map(str, sys.version_info[:2])) == {version!r}")


def _python_that(condition: str) -> str | None:
    question = f"import sys; sys.exit(not ({condition}))"
    for python in _pythons():
        answer = subprocess.run([python, "-c", question], check=False, capture_output=True)
        if answer.returncode == 0:
            return python
    return None


def _pythons() -> Iterator[str]:
    yield sys.executable
    programs = (shutil.which(f"python3.{minor}") for minor in range(14, 9, -1))
    yield from filter(None, programs)
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, root.glob("versions/3.*/bin/python"))


RELSTORAGE = WheelSet("relstorage", ["RelStorage==4.2.0"])
OLD = WheelSet("old", ["ZEO==5.4.1", "ZODB==5.8.1"])
# newt.db needs RelStorage[postgresql]; without the extra, pip would try all later releases first.
NEWT = WheelSet(
    "newt",
    ["newt.db==0.9.0", "RelStorage[postgresql]<3", "ZODB<6", "psycopg2-binary", "setuptools<81"],
)
PYPY = WheelSet("pypy", ["ZODB"], "pypy3")


@functools.cache
def pgjsonb() -> WheelSet | None:
    """Return the wheels of zodb-pgjsonb, ``None`` if there is no Python on which it runs."""
    python = python_since(3, 12)
    requirements = ["zodb-pgjsonb", "RelStorage", "psycopg2-binary"]
    return WheelSet("pgjsonb", requirements, python) if python else None


def main() -> int:
    """Fetch the missing sets, two at a time; return the exit status."""
    longest_first = (PYPY, NEWT, RELSTORAGE, OLD, pgjsonb())
    with ThreadPoolExecutor(2) as pool:
        fetched = list(pool.map(_ensure_fetched, filter(None, longest_first)))
    return int(not all(fetched))


def _ensure_fetched(wheels: WheelSet) -> bool:
    """Fetch a set unless it is complete; return whether it is complete afterwards."""
    if wheels.is_there():
        return True
    requirements = ", ".join(wheels.requirements)
    sys.stderr.write(f"fetching {requirements}\n")
    try:
        wheels.fetch()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"{requirements} not fetched: {error}\n")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
