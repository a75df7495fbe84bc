"""Fetch what the tests make environments from, and build what there is no wheel of, once.

``python tests/fetch_wheels.py`` puts wheels into ``.tox/wheels``, a directory for each set.  From
these alone pip then makes the environments of the tests.  It needs a package index and, for two of
the sets, what ``tests/install_servers.py`` installs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
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
        """Where they are; a wheel may fit one Python only."""
        return WHEELS / f"{self.name}-{sys.implementation.cache_tag}"

    def is_there(self) -> bool:
        """Say whether all of them were fetched before, for the same requirements."""
        marker = self.directory / COMPLETE
        return marker.exists() and marker.read_text() == " ".join(self.requirements)

    def fetch(self) -> None:
        """Fetch or build them.

        :raises subprocess.CalledProcessError: when that fails
        """
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
                env={"LDCXXSHARED": "c++ -shared", **os.environ},
            )  # fmt: skip
        (self.directory / COMPLETE).write_text(" ".join(self.requirements))


RELSTORAGE = WheelSet("relstorage", ["RelStorage==4.2.0"])
OLD = WheelSet("old", ["ZODB==5.8.1"])
NEWT = WheelSet(
    "newt", ["newt.db==0.9.0", "RelStorage<3", "ZODB<6", "psycopg2-binary", "setuptools<81"]
)
PYPY = WheelSet("pypy", ["ZODB"], "pypy3")
SETS = (PYPY, NEWT, RELSTORAGE, OLD)
"""All sets, the one that takes longest first."""


def main() -> int:
    """Fetch what is not there, two sets at a time; return the exit status."""
    with ThreadPoolExecutor(2) as pool:
        fetched = list(pool.map(_is_fetched, SETS))
    return int(not all(fetched))


def _is_fetched(wheels: WheelSet) -> bool:
    """Fetch a set if it is not there; say whether it is there then."""
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
