"""Which of the iterations of a run are read back from the database when it has ended."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Generic, TypeVar

from zodbshootout.client.client import Client

T = TypeVar("T")

SAMPLED_OBJECTS = 1000
"""Objects that each client reads back at most, beside those of its last iteration."""


class IterationSample(Generic[T]):
    """The last iteration and some before it, all with the same chance; the seed decides.

    To read back everything would take as long as to write it.
    """

    def __init__(self, client: Client) -> None:
        parameters = client.parameters
        self._random = random.Random(f"{parameters.seed}/{client.index}")  # noqa: S311
        self._most = max(1, min(50, SAMPLED_OBJECTS // max(1, parameters.objects)))
        self._chosen: list[T] = []
        self._last: list[T] = []
        self._seen = 0

    def note(self, iterations: Sequence[T]) -> None:
        """Take note of *iterations*, each represented by whatever it can be found by."""
        for iteration in iterations:
            self._seen += 1
            if len(self._chosen) < self._most:
                self._chosen.append(iteration)
            elif (place := self._random.randrange(self._seen)) < self._most:
                self._chosen[place] = iteration
        self._last = list(iterations[-1:])

    @property
    def chosen(self) -> list[T]:
        """Return those that are read back."""
        return [*self._chosen, *self._last]
