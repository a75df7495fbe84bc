"""The fork servers of a run; each round has new ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from zodbshootout.model.outcome import Failed
from zodbshootout.model.specification import Interpreter
from zodbshootout.workers.coordinator import ForkServer, Launcher


class _Round:
    """The fork servers of a round, which end with its stack."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self.ending = ExitStack()
        self.current: dict[Interpreter | None, ForkServer] = {}
        """The fork server of each Python."""

    def fork_server(self, interpreter: Interpreter | None) -> ForkServer:
        """Return the fork server of a Python, which is started if there is none."""
        current = self.current.get(interpreter)
        if current is None or not current.is_usable():
            # A failed fork server is kept until the round ends: its workers may still be in use.
            current = self.ending.enter_context(self._launcher.fork_server(interpreter))
            self.current[interpreter] = current
        return current


class ForkServers:
    """The fork servers of a round.  They end with the next round or when the context ends.

    A fork server needs about a second to import what workers need.  So the fork servers of the next
    round can be started before this round ends, and pause while slices are taken.
    """

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher
        self._rounds: dict[int, _Round] = {}
        """The rounds whose workers may still be in use: the current one and the one before."""
        self._spare: _Round | None = None
        """The round that is next, whatever its number."""

    def __enter__(self) -> ForkServers:
        return self

    def __exit__(self, *exc_info: object) -> None:
        with ExitStack() as stack:
            for one in [*self._rounds.values(), *filter(None, [self._spare])]:
                stack.push(one.ending)

    def for_round(
        self, number: int, interpreter: Interpreter | None = None, modules: Sequence[str] = ()
    ) -> ForkServer:
        """Return the fork server of a Python in a round, and let it import *modules*.

        All work of one Python in a round shares a fork server, unless the fork server fails.  Each
        round has new fork servers, so that every run of a cell has another process and hash seed.

        :raises Failed: if the fork server cannot be started, or ends
        """
        if number not in self._rounds:
            while len(self._rounds) > 1:
                self._rounds.pop(next(iter(self._rounds))).ending.close()
            self.go_on()
            self._rounds[number], self._spare = self._spare or _Round(self.launcher), None
        current = self._rounds[number].fork_server(interpreter)
        current.import_modules(modules)
        return current

    def start_next(self, number: int) -> None:
        """Start fork servers for the next round, which has this *number*, unless they run."""
        if self._spare is None and number not in self._rounds:
            self._spare = _Round(self.launcher)
            latest = self._rounds[next(reversed(self._rounds))]
            for interpreter, current in latest.current.items():
                try:
                    self._spare.fork_server(interpreter).start_import(current.imported)
                except Failed:
                    return  # the next round reports it
        self.go_on()

    def pause(self) -> None:
        """Let the fork servers of the next round pause."""
        for server in self._spare.current.values() if self._spare else ():
            server.pause()

    def go_on(self) -> None:
        """Let the fork servers of the next round go on after a pause."""
        for server in self._spare.current.values() if self._spare else ():
            server.go_on()
