"""What servers with databases, users and a directory of data have in common."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from pathlib import Path

from zodbshootout.servers.private import DATA, Server

CONNECTIONS = 300
"""Clients that a server lets in: RelStorage takes up to two connections for each."""

_UNFINISHED = f"{DATA}.unfinished"


class DatabaseServer(Server):
    """A server with the databases and users that its section names."""

    @property
    def data(self) -> Path:
        """Where the server keeps its data."""
        return self.home.path / DATA

    def prepare(self) -> None:
        """Make the directory of data, if it is not there, and accounts with this run's password."""
        if not self.data.exists():
            shutil.rmtree(self.home.path / _UNFINISHED, ignore_errors=True)
            unfinished = self.home.directory(_UNFINISHED)
            self.initialize(unfinished)
            unfinished.rename(self.data)
        self.create_accounts()

    @abstractmethod
    def initialize(self, data: Path) -> None:
        """Fill the directory *data*, which is empty, with a server's."""

    @abstractmethod
    def create_accounts(self) -> None:
        """See to it that databases and users are there, and that the password is this run's."""

    @property
    def databases(self) -> list[str]:
        """Return the names of the databases in the section."""
        return list(self.section.config.database)

    @property
    def users(self) -> list[str]:
        """Return the names of the users in the section."""
        return list(self.section.config.user)
