"""Of which classes there are more and more objects."""

from __future__ import annotations

from collections.abc import Sequence

from zodbshootout.crews.sample import Sample

LISTED = 10
"""Classes that are told of after a value, those first that have grown most."""
PREFIX = "leaks: "
"""How each line begins."""


class Growth:
    """Compares the objects of this process with the most that there were before."""

    def __init__(self) -> None:
        """Take what there is now for what was before."""
        self._peaks: dict[str, int] = {}
        self._look(())

    def _look(self, kept: Sequence[Sample]) -> list[tuple[str, int, int]]:
        import objgraph

        ours = {id(part) for sample in kept for part in _parts(sample)}
        found: list[tuple[str, int, int]] = objgraph.growth(
            limit=None,
            peak_stats=self._peaks,
            shortnames=False,
            filter=lambda thing: id(thing) not in ours,
        )
        return found

    def lines(self, what: str, kept: Sequence[Sample]) -> list[str]:
        """Return a line for each class of which there are more objects than ever before.

        *kept* is what the measuring itself keeps of every value, which is left out.
        """
        grown = self._look(kept)[:LISTED]
        head = f"{PREFIX}{what}, value {len(kept)}: "
        if not grown:
            return [f"{head}no class has more objects than before"]
        return [f"{head}{name} +{more}, now {count}" for name, count, more in grown]


def _parts(sample: Sample) -> list[object]:
    latencies = sample.latencies
    parts: list[object] = [sample, sample.__dict__, sample.shares, sample.counts, sample.cleared]
    return [*parts, latencies, latencies.__dict__, latencies.counts]
