"""What ZConfig makes of the sections that are ours."""

from __future__ import annotations

from typing import Any


class ServerSection:
    """A section that describes a server; :mod:`zodbshootout.servers` knows how to start it."""

    def __init__(self, section: Any) -> None:
        self.config = section
        self.name: str = section.getSectionName()
        self.kind: str = section.getSectionType()
        """The section's type, such as ``zeoserver``."""
