"""Of which classes there are more and more objects."""

from __future__ import annotations

from typing import Any

import objgraph

from zodbshootout.engine.sample import ClientSample, CrewSample

LISTED = 10
"""Classes that are told of after a value, those first that have grown most."""


class Growth:
    """Compares the objects of this process with those that there were before."""

    def __init__(self) -> None:
        """Take what there is now for the state before."""
        self._peaks: dict[str, int] = {}
        self._values = 0
        self._look()

    def _look(self) -> list[tuple[str, int, int]]:
        found: list[tuple[str, int, int]] = objgraph.growth(
            limit=None, peak_stats=self._peaks, shortnames=False, filter=_not_ours
        )
        return found

    def since_last(self, what: str) -> list[str]:
        """Return a line for each class of which there are more objects than ever before."""
        self._values += 1
        grown = self._look()[:LISTED]
        head = f"leaks: {what}, value {self._values}: "
        if not grown:
            return [f"{head}no class has more objects than before"]
        return [f"{head}{name} +{more}, now {count}" for name, count, more in grown]


def _not_ours(thing: Any) -> bool:
    """Leave out what the measuring itself keeps of every value."""
    return not isinstance(thing, (ClientSample, CrewSample))
