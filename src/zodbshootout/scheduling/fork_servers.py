"""The fork servers of a run, in generations."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from zodbshootout.model.outcome import Failed
from zodbshootout.model.specification import Interpreter
from zodbshootout.workers.coordinator import ForkServer, Launcher


class _Generation:
    """The fork servers of a generation, which end with its stack."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self.ending = ExitStack()
        self.current: dict[Interpreter | None, ForkServer] = {}
        """The fork server of each Python."""

    def fork_server(self, interpreter: Interpreter | None) -> ForkServer:
        """Return the fork server of a Python, which is started if there is none."""
        current = self.current.get(interpreter)
        if current is None or not current.is_usable():
            # A failed fork server is kept until its generation ends: workers may still be in use.
            current = self.ending.enter_context(self._launcher.fork_server(interpreter))
            self.current[interpreter] = current
        return current


class ForkServers:
    """The fork servers of a run.  They end with a later generation or when the context ends.

    No two runs of a cell have the same generation, so each has another process and hash seed.

    A fork server needs about a second to import what workers need.  So the fork servers of the next
    generation can be started early, and pause while slices are taken.
    """

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher
        self._current: dict[int, _Generation] = {}
        """The generations whose workers may still be in use: the latest, and the one before."""
        self._spare: _Generation | None = None
        """The next generation."""

    def __enter__(self) -> ForkServers:
        return self

    def __exit__(self, *exc_info: object) -> None:
        with ExitStack() as stack:
            for one in [*self._current.values(), *filter(None, [self._spare])]:
                stack.push(one.ending)
            for server in self._spares:
                server.end_now()

    def of_generation(
        self, number: int, interpreter: Interpreter | None = None, modules: Sequence[str] = ()
    ) -> ForkServer:
        """Return the fork server of a Python in a generation, and let it import *modules*.

        All work of one Python in a generation shares a fork server, unless the fork server fails.

        :raises Failed: if the fork server cannot be started, or ends
        """
        if number not in self._current:
            while len(self._current) > 1:
                self._current.pop(next(iter(self._current))).ending.close()
            self.go_on()
            self._current[number], self._spare = self._spare or _Generation(self.launcher), None
        server = self._current[number].fork_server(interpreter)
        server.import_modules(modules)
        return server

    def start_next(self, number: int) -> None:
        """Start the fork servers of generation *number*, or let them go on after a pause."""
        if self._spare is None and number not in self._current:
            self._spare = _Generation(self.launcher)
            latest = self._current[next(reversed(self._current))]
            for interpreter, server in latest.current.items():
                try:
                    self._spare.fork_server(interpreter).start_import(server.imported)
                except Failed:
                    return  # the next generation reports it
        self.go_on()

    def pause(self) -> None:
        """Let the fork servers of the next generation pause."""
        for server in self._spares:
            server.pause()

    def go_on(self) -> None:
        """Let the fork servers of the next generation go on after a pause."""
        for server in self._spares:
            server.go_on()

    @property
    def _spares(self) -> list[ForkServer]:
        return list(self._spare.current.values()) if self._spare is not None else []
