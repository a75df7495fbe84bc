"""Count the connections of a crew, and those that were made again while slices were taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from zodbshootout.client.connections import Socket
from zodbshootout.crews.crew import Crew
from zodbshootout.model.specification import Address


class ConnectionCount:
    """Looks at the connections of a crew before and after slices, while nothing is measured.

    A connection was made again if it is gone after the slices, and there is a new one to the same
    address: a server, a pooler or a balancer has closed it, for instance because its client waited
    for a turn, and its client has opened another one on the clock.
    """

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._before: Mapping[Socket, Address] = {}
        self._most: Counter[Address] = Counter()
        """The maximum number of connections at once, by address."""
        self._most_together = 0
        self._again = 0

    def before(self) -> None:
        """Look at the connections before slices, which are prepared."""
        self._before = self._now()

    def after(self, *, is_whole: bool) -> None:
        """Look at the connections after the slices.

        If a slice was not prepared as a whole, its preparation may have opened connections, too, so
        that none can be said to have been made again.
        """
        now = self._now()
        if is_whole:
            lost = Counter(self._before[one] for one in self._before.keys() - now.keys())
            gained = Counter(now[one] for one in now.keys() - self._before.keys())
            self._again += sum((lost & gained).values())

    def _now(self) -> Mapping[Socket, Address]:
        """Return the connections now; clients of one process share them."""
        now: dict[Socket, Address] = {}
        for connections in self._crew.call("sockets"):
            now |= connections
        self._most |= Counter(now.values())
        self._most_together = max(self._most_together, len(now))
        return now

    def metadata(self) -> Mapping[str, int]:
        """Return the numbers of connections and reconnections.

        If the clients are on other hosts, only reconnections are known: there, other connections
        connect the clients with the coordinator.
        """
        counted = {"reconnections": self._again} if self._again else {}
        if self._crew.hosts or not self._most_together:
            return counted
        named: Counter[str] = Counter()
        for address, number in self._most.items():
            if name := self._crew.servers.get(address):
                named[name] += number
        of_servers = {f"connections_{name}": number for name, number in named.items()}
        return {
            "connections": self._most_together,
            **(of_servers if len(named) > 1 else {}),
            **counted,
        }
