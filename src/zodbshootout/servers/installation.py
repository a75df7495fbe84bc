"""The programs and the directory of a server, and the user that runs the server.

Database servers refuse to run as root, or are less safe as root.  Therefore, if root starts a
server, the server runs as another user.  If any other user starts a server, the server runs as this
user.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from zodbshootout.servers import ServerFailed

NOBODY = "nobody"
LOG = "server.log"
MARK = ".zodbshootout"
"""The name of an empty file that says that a run of zodbshootout created a directory."""


@dataclass(frozen=True)
class Installation:
    """The locations of a product's programs, and the packages that contain them."""

    places: Sequence[str]
    """Patterns of directories, besides those in ``PATH``, that may contain the programs."""
    packages: str
    """The names of the Debian packages, for ``apt-get install``."""

    def program(self, *names: str, given: str | None) -> str:
        """Return the path of the first installed program among *names*.

        If a directory is *given*, only this directory and its siblings are searched; otherwise the
        directories in ``PATH`` and then :attr:`places`, the highest version first.
        """
        directories = list(_with_siblings(given) if given else self._default_directories())
        for name in names:
            for directory in directories:
                if path := shutil.which(name, path=str(directory)):
                    return path
        wanted = " or ".join(names)
        if given:
            raise ServerFailed(f"has no program {wanted} in {given}; see the server's programs key")
        raise ServerFailed(
            f"has no program {wanted} in PATH or in {', '.join(self.places)}; install it (on "
            f"Debian: apt-get install {self.packages}), or set the programs key to its directory"
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
    # Not mariadb-server, which starts a service.  mariadb-install-db needs a client program.
    packages="mariadb-server-core mariadb-client-core",
)
MEMCACHED = Installation(
    places=("/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"), packages="memcached"
)
PGBOUNCER = Installation(
    places=("/usr/sbin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"), packages="pgbouncer"
)

_PROGRAM_DIRECTORIES = ("bin", "sbin", "libexec", "scripts")


def _version(path: Path) -> list[int]:
    """Return the numbers in *path* as a sort key, so that 10 comes after 9."""
    return [int(number) for number in re.findall(r"\d+", str(path))]


def _with_siblings(directory: str) -> Iterable[Path]:
    """Return *directory* and siblings that may contain programs of the same installation."""
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
        """Return the first directory on the path to *directory* that the user may not enter."""
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
    """Return the user that a server runs as; ``None`` for the user of the run.

    If root is the user of the run, the server runs as the user *wanted*, else as the owner of the
    directory *data* from an earlier run, else as the first of the *usual* users that exists.

    :raises ServerFailed: if the user *wanted* does not exist, or only root could switch to it
    """
    if os.geteuid():
        if wanted and _account(wanted).uid != os.geteuid():
            raise ServerFailed(f"cannot run as {wanted}: only root can run it as another user")
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
        raise ServerFailed(
            f"cannot run as {name}: there is no such user; see the server's run-as key"
        ) from None
    return Account(name, user.pw_uid, user.pw_gid)


class ServerDirectory:
    """The directory of a server's log, its data and the files that the server reads.

    Files that the run writes belong to the run's user, subdirectories to the server's user.  The
    run follows no links, because another user could have placed a link where root writes.
    """

    def __init__(self, path: Path, *, kept: bool) -> None:
        self.path = path
        """The path of the directory."""
        self.kept = kept
        """Whether the directory outlives the run."""
        self._account: Account | None = None
        self._log: IO[bytes] | None = None

    def make(self, account: Account | None) -> None:
        """Create the directory, with a log in it, for a server that runs as *account*.

        :raises ServerFailed: if another server uses the directory, if it contains other files, or
            if the user *account* may not enter it
        """
        self.close()
        self._account = account
        new = not self.path.exists()
        self.path.mkdir(mode=0o700, parents=self.kept, exist_ok=True)
        if self.kept and not (self.path / MARK).exists():
            if any(self.path.iterdir()):
                raise ServerFailed(
                    f"cannot keep its data in {self.path}: it contains files, but no {MARK}, so it "
                    "is not a directory that such a server created; name an empty directory"
                )
            os.close(self._open(MARK, os.O_WRONLY))
        if account is not None:
            self._make_reachable(account, new=new)
        self._log = os.fdopen(self._open(LOG, os.O_RDWR | os.O_APPEND), "ab+")
        try:
            # The server inherits the lock with the log, and holds the lock as long as it runs.
            fcntl.flock(self._log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise ServerFailed(
                f"cannot keep its data in {self.path}: another server is using it"
            ) from None

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    @property
    def log(self) -> IO[bytes]:
        """The file that receives the server's output; :meth:`make` opens it."""
        assert self._log is not None
        return self._log

    @property
    def log_size(self) -> int:
        return os.fstat(self.log.fileno()).st_size

    def logged(self, start: int) -> str:
        """Return the log after its first *start* bytes."""
        size = self.log_size - start
        return os.pread(self.log.fileno(), size, start).decode(errors="replace")

    def subdirectory(self, name: str) -> Path:
        """Return a directory that belongs to the server's user; create it if it is missing."""
        path = self.path / name
        if not path.exists():
            path.mkdir(mode=0o700)
            if self._account is not None:
                os.chown(path, self._account.uid, self._account.gid)
        return path

    def write(self, name: str, text: str) -> None:
        """Write a file that only the run and the server may read."""
        with os.fdopen(self._open(name, os.O_WRONLY | os.O_TRUNC), "w") as file:
            if self._account is not None:
                os.fchown(file.fileno(), -1, self._account.gid)
                os.fchmod(file.fileno(), 0o640)
            file.write(text)

    def _open(self, name: str, flags: int) -> int:
        return os.open(self.path / name, flags | os.O_CREAT | os.O_NOFOLLOW, 0o600)

    def _make_reachable(self, account: Account, *, new: bool) -> None:
        """Let the server's user enter the directory, but not list it."""
        if new:
            self.path.chmod(0o711)
        if not self.kept:
            self.path.parent.chmod(0o711)
        if closed := account.first_not_enterable(self.path):
            setting = "directory" if self.kept else "TMPDIR"
            raise ServerFailed(
                f"has to run as user {account.name}, who may not enter {closed}; choose another "
                f"{setting}, or another user with run-as"
            )
