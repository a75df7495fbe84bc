"""What servers with databases, users and a directory of data have in common."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from pathlib import Path

from zodbshootout.servers.server import DATA, Server

_UNFINISHED = f"{DATA}.unfinished"


class DatabaseServer(Server):
    """A server with the databases and users that its section names."""

    @property
    def data(self) -> Path:
        """Where the server keeps its data."""
        return self.directory.path / DATA

    def prepare(self) -> None:
        """Make the directory of data, if it is not there, and users with this run's password."""
        if not self.data.exists():
            shutil.rmtree(self.directory.path / _UNFINISHED, ignore_errors=True)
            unfinished = self.directory.subdirectory(_UNFINISHED)
            self.initialize(unfinished)
            unfinished.rename(self.data)
        self.create_accounts()

    @abstractmethod
    def initialize(self, data: Path) -> None:
        """Have the server's own programs fill the empty directory *data*.

        :raises ServerFailed: when they fail
        """

    @abstractmethod
    def create_accounts(self) -> None:
        """Create missing databases and users, and give every user this run's password.

        :raises ServerFailed: when it cannot be done
        """

    @property
    def databases(self) -> list[str]:
        """Return the names of the databases in the section."""
        return list(self.section.config.database)

    @property
    def users(self) -> list[str]:
        """Return the names of the users in the section."""
        return list(self.section.config.user)
