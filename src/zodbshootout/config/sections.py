"""What ZConfig makes of the sections that are ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ServerSection:
    """A section that describes a server; :mod:`zodbshootout.servers` knows how to start it."""

    def __init__(self, section: Any) -> None:
        self.config = section
        self.name: str = section.getSectionName()
        self.kind: str = section.getSectionType()
        """The section's type, such as ``zeoserver``."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What is passed on to the server, by name."""
        section = self.config.settings
        return section.config.values if section is not None else {}

    @property
    def programs(self) -> str | None:
        """The directory of the server's programs, where they are not to be looked for."""
        return getattr(self.config, "programs", None)

    @property
    def directory(self) -> str | None:
        """The directory in which the server keeps its data beyond the run, if it does."""
        return getattr(self.config, "directory", None)

    @property
    def listen(self) -> str | None:
        """The address of this host on which the server is to listen."""
        return getattr(self.config, "listen", None)

    @property
    def run_as(self) -> str | None:
        """The user as whom root is to run the server."""
        return getattr(self.config, "run_as", None)


class Settings:
    """A ``<settings>`` section."""

    def __init__(self, section: Any) -> None:
        self.config = section


class EnvironmentSection:
    """An ``<environment>`` section; :mod:`zodbshootout.environments` knows how to make it."""

    def __init__(self, section: Any) -> None:
        self.config = section
        self.name: str = section.getSectionName()
        self.python: str | None = section.python
        self.requirements: tuple[str, ...] = tuple(section.requirements)
        if not self.python and not self.requirements:
            raise ValueError("it needs requirements, or python")
