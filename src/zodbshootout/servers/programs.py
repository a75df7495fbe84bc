"""Finding the programs of a server where distributions and others install them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from zodbshootout.servers import ServerFailed


@dataclass(frozen=True)
class Installation:
    """Where the programs of a product are, and how to install it."""

    places: Sequence[str]
    """Directories, as patterns, that may hold its programs beside those in ``PATH``."""
    packages: str
    """The names of its Debian packages, as ``apt-get install`` takes them."""

    def program(self, *names: str, given: str | None) -> str:
        """Return the path of the program with the first of these *names* that is found.

        With a directory *given*, only that one and those beside it are searched; otherwise those
        in ``PATH`` and then :attr:`places`, the highest version first.

        :raises ServerFailed: when none is found
        """
        directories = [*(_with_siblings(given) if given else self._default_directories())]
        for name in names:
            for directory in directories:
                if path := shutil.which(name, path=str(directory)):
                    return path
        wanted = " or ".join(names)
        if given:
            raise ServerFailed(f"has no program {wanted} in {given}, see programs")
        raise ServerFailed(
            f"has no program {wanted}, in PATH or in {', '.join(self.places)}; install it (on "
            f"Debian: apt-get install {self.packages}), or name its directory with programs"
        )

    def _default_directories(self) -> Iterator[str | Path]:
        yield from filter(None, os.environ.get("PATH", "").split(os.pathsep))
        for pattern in self.places:
            yield from sorted(Path("/").glob(pattern[1:]), key=_version, reverse=True)


POSTGRESQL = Installation(
    places=(
        "/usr/lib/postgresql/*/bin",
        "/usr/pgsql-*/bin",
        "/usr/local/pgsql/bin",
        "/opt/homebrew/opt/postgresql@*/bin",
        "/usr/local/opt/postgresql@*/bin",
        "/Applications/Postgres.app/Contents/Versions/*/bin",
    ),
    packages="postgresql",
)
MYSQL = Installation(
    places=(
        "/usr/sbin",
        "/usr/libexec",
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/local/mysql/bin",
        "/usr/local/mysql/scripts",
        "/opt/homebrew/bin",
    ),
    # mariadb-server would start a service.  Its core lacks a program that mariadb-install-db calls.
    packages="mariadb-server-core mariadb-client-core",
)
MEMCACHED = Installation(
    places=("/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"), packages="memcached"
)

_PROGRAM_DIRECTORIES = ("bin", "sbin", "libexec", "scripts")


def _version(path: Path) -> list[int]:
    """Return the numbers in *path*, so that 10 comes after 9."""
    return [int(number) for number in re.findall(r"\d+", str(path))]


def _with_siblings(directory: str) -> Iterable[Path]:
    """Return *directory* and those beside it that may hold programs of the same installation."""
    first = Path(directory).absolute()
    if first.name not in _PROGRAM_DIRECTORIES:
        return [first]
    return [first, *(first.parent / name for name in _PROGRAM_DIRECTORIES)]
