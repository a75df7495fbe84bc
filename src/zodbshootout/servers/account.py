"""The user of the operating system as which a server runs.

Database servers refuse to run as root, or run less safely.  Root can run them as another user;
every other user runs them as itself.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from zodbshootout.servers import ServerFailed

NOBODY = "nobody"


@dataclass(frozen=True)
class Account:
    """A user of the operating system."""

    name: str
    uid: int
    gid: int

    def first_not_enterable(self, directory: Path) -> Path | None:
        """Return the first directory on the path of *directory* that the user may not enter."""
        path = [*reversed(directory.parents), directory]
        return next((each for each in path if not self._may_enter(each)), None)

    def _may_enter(self, directory: Path) -> bool:
        status = directory.stat()
        if status.st_uid == self.uid:
            return bool(status.st_mode & 0o100)
        if status.st_gid == self.gid:
            return bool(status.st_mode & 0o010)
        return bool(status.st_mode & 0o001)


def account_for(usual: Sequence[str], wanted: str | None, data: Path | None) -> Account | None:
    """Return the user as which a server runs, or ``None`` where it is the user of the run.

    For root that is the user *wanted*; or the owner of the directory *data*, which an earlier run
    has kept; or the first of the *usual* users that exists.

    :raises ServerFailed: when the user *wanted* does not exist, or only root could switch to it
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
        try:
            return _account(name)
        except ServerFailed:
            continue
    return None


def _account(name: str) -> Account:
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise ServerFailed(f"cannot run as {name}: there is no such user, see run-as") from None
    return Account(name, found.pw_uid, found.pw_gid)
