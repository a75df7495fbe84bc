"""What a worker is told and what it tells: two JSON files beside pyperf's own."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from zodbshootout.config.configuration import Source, parse
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.model import Cell, cell_from_json, to_json

TASK_FILE = "task.json"
REPORT_FILE = "report.json"
RUN_FILE = "run.json"
"""What the directory of a task holds: what to do, how it ended, and pyperf's run."""


@dataclass(frozen=True)
class Subject:
    """Where a worker finds its contender: a configuration as it was when the run began."""

    source: Source
    names: Mapping[str, str]
    """What is defined in the source beside what it defines itself."""

    def contender(self, name: str) -> Contender:
        """Return the contender of that name.

        :raises ConfigurationError: when the configuration cannot be read in this process
        """
        contenders = contenders_of(parse(self.source, self.names))
        return next(contender for contender in contenders if contender.name == name)


class Action(enum.Enum):
    """What a worker can do."""

    LOOK = "look"
    """Open the contender and tell what it consists of."""
    PREPARE = "prepare"
    """Bring the database into the state that the cell's benchmark expects to find."""
    MEASURE = "measure"
    """Measure the cell."""


@dataclass(frozen=True)
class Profiling:
    """Where a profile of the clients goes."""

    directory: str
    name: str
    """What the files are called, but for their endings."""
    profiler: str


@dataclass(frozen=True)
class Task:
    """One worker's work."""

    action: Action
    subject: Subject
    contender: str
    cell: Cell | None = None
    """``None`` where the action is to look."""
    collector: str = "mean"
    log: str | None = None
    """A level's name, or the path of a ZConfig logging file."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the look at the contender found, for the metadata of its runs."""
    zap: bool = False
    """Whether preparing begins with destroying all data."""
    pack: bool = False
    """Whether preparing includes packing."""
    leaks: bool = False
    """Whether measuring includes telling of which classes there are more objects than before."""
    profiling: Profiling | None = None
    restart: bool = False
    """Whether the servers are to be restarted before each value, see :mod:`.restarting`."""

    def write(self, path: Path) -> None:
        """Write the task where only this user can read it: configurations hold passwords."""
        document = {
            "action": self.action.value,
            "path": str(self.subject.source.path),
            "text": self.subject.source.text,
            "names": dict(self.subject.names),
            "contender": self.contender,
            "cell": to_json(self.cell) if self.cell else None,
            "collector": self.collector,
            "log": self.log,
            "facts": dict(self.facts),
            "zap": self.zap,
            "pack": self.pack,
            "leaks": self.leaks,
            "profiling": asdict(self.profiling) if self.profiling else None,
            "restart": self.restart,
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(document), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Task:
        """Read what :meth:`write` wrote."""
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        source = Source(Path(document["path"]), document["text"])
        return cls(
            action=Action(document["action"]),
            subject=Subject(source, document["names"]),
            contender=document["contender"],
            cell=cell_from_json(document["cell"]) if document["cell"] else None,
            collector=document["collector"],
            log=document["log"],
            facts=document["facts"],
            zap=document["zap"],
            pack=document["pack"],
            leaks=document["leaks"],
            profiling=Profiling(**document["profiling"]) if document["profiling"] else None,
            restart=document["restart"],
        )


@dataclass(frozen=True)
class Report:
    """How a worker ended."""

    state: str
    """``done``, ``failed``, ``unsupported``, or ``misconfigured``: the user has to act."""
    cause: str = ""
    """One line."""
    detail: str = ""
    """A traceback."""
    facts: Mapping[str, str] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the report."""
        document = {
            "state": self.state,
            "cause": self.cause,
            "detail": self.detail,
            "facts": dict(self.facts),
        }
        # A worker that is killed while it writes leaves no report rather than half of one.
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(document), encoding="utf-8")
        temporary.replace(path)

    @classmethod
    def read(cls, path: Path) -> Report:
        """Read what :meth:`write` wrote.

        :raises FileNotFoundError: when the worker did not get so far
        """
        return cls(**json.loads(path.read_text(encoding="utf-8")))
