"""The fork servers of a run; each round has new ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from zodbshootout.model.specification import Interpreter
from zodbshootout.workers.coordinator import ForkServer, Launcher


class ForkServers:
    """The fork servers of a round.  They end when the next round begins or the context ends."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher
        self._ending = ExitStack()
        self._round = 0
        self._current: dict[Interpreter | None, ForkServer] = {}
        """The fork server of each Python."""

    def __enter__(self) -> ForkServers:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ending.close()

    def for_round(
        self, number: int, interpreter: Interpreter | None = None, modules: Sequence[str] = ()
    ) -> ForkServer:
        """Return the fork server of a Python in a round, and let it import *modules*.

        All work of one Python in a round shares a fork server, unless the fork server fails.  Each
        round has new fork servers, so that every run of a cell has another process and hash seed.

        :raises Failed: if the fork server cannot be started, or ends
        """
        if number != self._round:
            self._current.clear()
            self._ending.close()
            self._round = number
        current = self._current.get(interpreter)
        if current is None or not current.is_usable():
            # A failed fork server is kept until the round ends: its workers may still be in use.
            current = self._ending.enter_context(self.launcher.fork_server(interpreter))
            self._current[interpreter] = current
        current.import_modules(modules)
        return current
