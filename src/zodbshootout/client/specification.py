"""What a client is told: a benchmark, a storage, and the parameters of a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from zodbshootout.client.parameters import Parameters

INSTALLED = "installed"
"""The name of the environment of contenders that are as they are installed."""


@dataclass(frozen=True)
class Interpreter:
    """Another Python than that of the command, in which a contender is opened."""

    name: str
    """What the user calls it; empty for the Python of a host."""
    executable: str
    """The path of the program."""
    modules: str
    """The directory that holds the modules of ours that it needs."""
    sees_ours: bool = False
    """Whether it is the Python of the command, and finds modules where that finds them."""
    gevent: bool = False
    """Whether gevent patches it, if it is installed there: its clients are greenlets."""


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
