"""The programs of a server, where distributions install them, and the user that runs them.

Database servers refuse to run as root, or run less safely.  Root can run them as another user;
every other user runs them as itself.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from zodbshootout.servers import ServerFailed

NOBODY = "nobody"


@dataclass(frozen=True)
class Installation:
    """The places of a product's programs, and its packages."""

    places: Sequence[str]
    """Patterns of directories that may hold its programs besides those in ``PATH``."""
    packages: str
    """The names of its Debian packages, as ``apt-get install`` takes them."""

    def program(self, *names: str, given: str | None) -> str:
        """Return the path of the first of the programs *names* that is installed.

        If a directory is *given*, only it and its siblings are searched; otherwise those in
        ``PATH`` and then :attr:`places`, the highest version first.

        :raises ServerFailed: if none is installed
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
    """Return *directory* and its siblings that may hold programs of the same installation."""
    first = Path(directory).absolute()
    if first.name not in _PROGRAM_DIRECTORIES:
        return [first]
    return [first, *(first.parent / name for name in _PROGRAM_DIRECTORIES)]


@dataclass(frozen=True)
class Account:
    """A user of the operating system."""

    name: str
    uid: int
    gid: int

    def first_not_enterable(self, directory: Path) -> Path | None:
        """Return the first directory on the path of *directory* that the user may not enter."""
        path = [*reversed(directory.parents), directory]
        return next((parent for parent in path if not self._may_enter(parent)), None)

    def _may_enter(self, directory: Path) -> bool:
        status = directory.stat()
        if status.st_uid == self.uid:
            return bool(status.st_mode & 0o100)
        if status.st_gid == self.gid:
            return bool(status.st_mode & 0o010)
        return bool(status.st_mode & 0o001)


def account_for(usual: Sequence[str], wanted: str | None, data: Path | None) -> Account | None:
    """Return the user to run a server as, ``None`` for the user of the run.

    For root that is the user *wanted*; or the owner of the directory *data* that an earlier run has
    left; or the first of the *usual* users that exists.

    :raises ServerFailed: if the user *wanted* does not exist, or only root could switch to it
    """
    if os.geteuid():
        if wanted and _account(wanted).uid != os.geteuid():
            raise ServerFailed(f"cannot run as {wanted}: only root can have it run as someone else")
        return None
    if wanted:
        return _account(wanted)
    if data is not None and data.exists() and (owner := data.stat()).st_uid:
        return Account(f"number {owner.st_uid}", owner.st_uid, owner.st_gid)
    for name in usual:
        with suppress(ServerFailed):
            return _account(name)
    return None


def _account(name: str) -> Account:
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise ServerFailed(f"cannot run as {name}: there is no such user, see run-as") from None
    return Account(name, user.pw_uid, user.pw_gid)
