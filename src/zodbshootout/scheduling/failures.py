"""The handling of failed cells: a run is repeated, or the reason goes into the results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from zodbshootout.model.outcome import Failure, State
from zodbshootout.model.specification import PHASES
from zodbshootout.results.cell import Cell
from zodbshootout.scheduling.plan import Plan
from zodbshootout.scheduling.result_store import ResultStore
from zodbshootout.servers.running import RunningServers

_REFUSAL = re.compile(
    "too many clients already|remaining connection slots are reserved|too many connections|"
    "max_user_connections",
    re.IGNORECASE,
)
"""A pattern for what PostgreSQL, MySQL and poolers say if they accept no further connection."""


@dataclass
class Failures:
    """Marks a failed run for repetition, or puts the reason into the results."""

    plan: Plan
    store: ResultStore
    servers: RunningServers
    retries: int
    """The maximum number of repetitions of a run in which a process crashed."""
    connections: Callable[[Cell], int] = lambda _: 0
    """A function that returns how many connections the clients of a cell need; 0 if unknown."""
    again: list[Cell] = field(default_factory=list)
    """The cells to measure again in this round, because a process crashed."""
    _tries: dict[Cell, int] = field(default_factory=dict)
    """The number of repetitions of each cell's run in this round."""

    def begin_round(self, cells: Iterable[Cell]) -> None:
        """Let the run of each cell be repeated up to :attr:`retries` times in the new round."""
        self._tries = dict.fromkeys(cells, 0)

    def add(self, cell: Cell, failure: Failure) -> None:
        """Put a cell on the list of cells to measure again, or fail it."""
        if failure.crashed and self._tries[cell] < self.retries:
            self._tries[cell] += 1
            for one in self._phases_of(cell):
                self.again.append(one)
                self.store.note_crash(one, failure)
            return
        contender = self.plan.contender(cell)
        cause = failure.cause
        if failure.state is State.FAILED:
            cause = self._explained(contender.title, cause)
        cause = self._with_connections(cell, cause)
        if cause == failure.cause and (advice := contender.advice_on(cause)):
            cause = f"{cause}; {advice}"
        explained = replace(failure, cause=cause)
        self.store.fail_cells([(one, explained) for one in self._phases_of(cell)])

    def has_lost_server(self, cell: Cell) -> bool:
        """Fail a cell if a server that it needs has ended; return whether a server has ended.

        Clients may not notice the end of a server: RelStorage works without memcached, and other
        storages wait for a long time.
        """
        ended = self.servers.how_ended(cell.title)
        if ended is not None:
            self.store.fail_cells([(one, Failure(ended.cause)) for one in self._phases_of(cell)])
        return ended is not None

    def _phases_of(self, cell: Cell) -> list[Cell]:
        """Return the unsettled phases of a cell's operation, or the cell if it has no operation."""
        if not cell.parameters.during:
            return [cell]
        phases = [
            replace(cell, parameters=replace(cell.parameters, phase=phase)) for phase in PHASES
        ]
        return self.store.unsettled(phases)

    def _with_connections(self, cell: Cell, cause: str) -> str:
        """Add to *cause* how many connections are needed, if a server has refused one."""
        if not _REFUSAL.search(cause):
            return cause
        contender = self.plan.contender(cell)
        together = [
            self.connections(other)
            for row in self.plan.rows
            if cell in row
            for other in row
            if not contender.servers.keys().isdisjoint(self.plan.contender(other).servers)
        ] or [self.connections(cell)]
        needed, allowed = sum(together), contender.info.link.max_connections
        numbers = (
            f"needs {needed} connections at -c {cell.parameters.crew.size}, " if needed else ""
        )
        limit = f"the server allows {allowed} (max_connections): " if allowed else ""
        remedy = "raise it in <settings>" if contender.servers else "raise it on the server"
        return f"{numbers}{limit}{remedy}, or measure fewer clients at once; {cause}"

    def _explained(self, contender: str, cause: str) -> str:
        """Add to *cause* how a contender's server ended, unless *cause* quotes the server's log."""
        ended = self.servers.how_ended(contender)
        if ended is None:
            return cause
        repeats = " ".join(ended.detail.split()) in " ".join(cause.split())
        return cause if ended.detail and repeats else f"{cause}; {ended.cause}"
