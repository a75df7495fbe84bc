"""One large BTree with the objects of ``--min-objects`` and, among them, the objects under test.

::

    root["zodbshootout"]["grown IOBTree"]     a GrownTree
        .tree                                 an IOBTree with all objects

With ``--grown``, a mapping of a dataset is a :class:`Part`, which has some keys of this tree.  Keys
are integers of 31 bits in an IOBTree, or their decimal digits in an OOBTree.  The keys of
``--min-objects`` are even, so that a key of an object under test fits between any two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Union

from persistent import Persistent

Key = Union[int, str]

LAYERS = 32
"""The maximum number of times that a tree can grow.  For each of these times, a separate 32nd of
the even keys is reserved."""
LAYER = 2**31 // (2 * LAYERS)
"""The maximum number of objects by which a tree can grow at a time."""
ODD_KEYS = 2**29
"""The number of odd keys that :meth:`GrownTree.place` can use; ``vacant`` has as many others."""
SCATTER = 0x1E3779B1
"""A factor that scatters keys.  It multiplies consecutive numbers, and the products modulo
:data:`ODD_KEYS` are far apart.  It is odd, so that no product occurs twice."""


class GrownTree(Persistent):
    """A tree, and counts of its objects."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree
        self.layers = 0
        """The number of times that the tree has grown."""
        self.total = 0
        """The number of objects of ``--min-objects``."""
        self.placed = 0
        """The number of objects under test, not counting those that benchmarks added."""
        self.added = 0
        """The number of keys that :meth:`vacant` has handed out."""

    def next_layer(self, count: int) -> Iterator[Key]:
        """Yield *count* new keys, evenly spread and in ascending order.

        :raises ValueError: if the tree has no room for them
        """
        if count > LAYER or self.layers == LAYERS:
            raise ValueError(f"a tree can grow {LAYERS} times, by up to {LAYER} objects each time")
        offset = 2 * self.layers
        return (self._key(number * LAYER // count * 2 * LAYERS + offset) for number in range(count))

    def place(self, count: int) -> Part:
        """Return a part for *count* objects that are far from each other."""
        first = self.placed
        self.placed += count
        numbers = range(first, self.placed)
        return self._part(4 * (number * SCATTER % ODD_KEYS) + 1 for number in numbers)

    def vacant(self, count: int) -> Part:
        """Return a part with *count* new keys that are far from each other."""
        first = self.added
        self.added += count
        numbers = range(first, self.added)
        return self._part(4 * (number * SCATTER % ODD_KEYS) + 3 for number in numbers)

    def _part(self, keys: Iterable[int]) -> Part:
        return Part(self.tree, list(map(self._key, keys)))

    def _key(self, number: int) -> Key:
        return number if "IO" in type(self.tree).__name__ else f"{number:010d}"


class Part(Persistent):
    """A mapping from positions to objects; a tree contains these objects at some of its keys."""

    def __init__(self, tree: Any, keys: list[Key]) -> None:
        self.tree = tree
        self.keys = keys

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, position: Key) -> Any:
        return self.tree[self.keys[int(position)]]

    def __setitem__(self, position: Key, item: Any) -> None:
        self.tree[self.keys[int(position)]] = item

    def values(self) -> list[Any]:
        """Return the objects; each is looked up separately."""
        return [self.tree[key] for key in self.keys]
