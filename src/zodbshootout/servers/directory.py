"""The directory of a server: its log, its data and the files that it reads.

The files that the run writes belong to its user, the subdirectories to the server's user.  Links
are not followed, for another user could have put one where root writes.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from zodbshootout.servers import ServerFailed
from zodbshootout.servers.installation import Account

LOG = "server.log"


class ServerDirectory:
    """A directory that is made for a server, or kept from an earlier run."""

    def __init__(self, path: Path, *, kept: bool) -> None:
        self.path = path
        self.kept = kept
        self._account: Account | None = None
        self._log: IO[bytes] | None = None

    def make(self, account: Account | None) -> None:
        """Make the directory, with a log in it, for a server that runs as *account*.

        :raises ServerFailed: if another server uses it, it holds other things, or that user may
            not enter it
        """
        self.close()
        self._account = account
        new = not self.path.exists()
        self.path.mkdir(mode=0o700, parents=self.kept, exist_ok=True)
        if self.kept and not new and not (self.path / LOG).exists() and any(self.path.iterdir()):
            raise ServerFailed(
                f"cannot keep its data in {self.path}: other things are there; name an empty "
                "directory, or one that such a server has made"
            )
        if account is not None:
            self._make_reachable(account, new=new)
        self._log = os.fdopen(self._open(LOG, os.O_RDWR | os.O_APPEND), "ab+")
        try:
            # The server inherits the lock with the log, and holds it as long as it runs.
            fcntl.flock(self._log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise ServerFailed(
                f"cannot keep its data in {self.path}: another server has its data there now"
            ) from None

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    @property
    def log(self) -> IO[bytes]:
        """The file that the server's output goes to; :meth:`make` opens it."""
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
        """Return a directory that belongs to the server's user; it is made if it is missing."""
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
