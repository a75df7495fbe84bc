"""What a client is told: one small document, with a version, that JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zodbshootout.client import parameters as shapes
from zodbshootout.client.parameters import Parameters

VERSION = 1
"""What :meth:`Specification.from_json` reads; it changes whenever the meaning of a part does."""


@dataclass(frozen=True)
class Interpreter:
    """Another Python than that of the command, in which a contender is opened."""

    name: str
    """What the user calls it."""
    executable: str
    """The path of the program."""
    modules: str
    """The directory that holds the modules of ours that it needs."""
    sees_ours: bool = False
    """Whether it is the Python of the command, and finds modules where that finds them."""


@dataclass(frozen=True)
class Storage:
    """How to open a contender."""

    section: str = ""
    """The text of its section in ZConfig's language, after the imports and definitions it needs."""
    uri: str = ""
    """A ZODB URI in place of that."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What is defined in the section beside what it defines itself."""
    interpreter: Interpreter | None = None
    """Where it is opened; ``None`` in the Python of whoever reads this."""


@dataclass(frozen=True)
class Specification:
    """A benchmark, a storage and the parameters of a cell."""

    storage: Storage
    benchmark: str
    parameters: Parameters

    def to_json(self) -> dict[str, Any]:
        """Return the specification as JSON can hold it."""
        return {
            "version": VERSION,
            "section": self.storage.section,
            "uri": self.storage.uri,
            "names": dict(self.storage.names),
            "benchmark": self.benchmark,
            "parameters": shapes.to_json(self.parameters),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Specification:
        """Return what :meth:`to_json` wrote.

        :raises ValueError: when it was written by another version
        """
        if document.get("version") != VERSION:
            raise ValueError(
                f"a specification of version {document.get('version')!r}, where "
                f"{VERSION} is understood"
            )
        storage = Storage(document["section"], document["uri"], document["names"])
        return cls(storage, document["benchmark"], shapes.from_json(document["parameters"]))
