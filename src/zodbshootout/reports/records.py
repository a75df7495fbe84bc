"""Everything that is known of cells, as records, which several formats are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from zodbshootout.reports.figures import UNITS
from zodbshootout.results.result import CellResult


@dataclass(frozen=True)
class Source:
    """Results of one file, or of the run that ends."""

    results: Sequence[CellResult]
    label: str = ""
    """What stands before the names of its contenders where there are several files."""
    name: str = ""
    """What the file is called."""

    def column(self, contender: str) -> str:
        """Return what stands above the figures of a contender."""
        return f"{self.label}: {contender}" if self.label else contender


def placed(sources: Iterable[Source]) -> list[tuple[str, CellResult]]:
    """Return every result, and what stands above its figures."""
    return [
        (source.column(result.cell.contender), result)
        for source in sources
        for result in source.results
    ]


def records_of(sources: Iterable[Source]) -> Iterator[dict[str, Any]]:
    """Return everything that is known of each cell: parameters, figures, state and reason.

    Times are seconds, sizes bytes; ``None`` is what a cell does not have.
    """
    for source in sources:
        for result in source.results:
            yield {"file": source.label or None, **_record(result)}


def _record(result: CellResult) -> dict[str, Any]:
    cell = result.cell
    parameters = cell.parameters
    memory = result.measured and result.unit == "byte"
    interval = None if memory else result.interval
    figures = {
        name: unit.value(result) if result.measured and not memory else None
        for name, unit in UNITS.items()
    }
    return {
        "benchmark": cell.benchmark,
        "contender": cell.contender,
        "state": result.state.value,
        "reason": result.reason or None,
        "clients": parameters.crew.size,
        "client_kind": parameters.crew.client_kind.value,
        "shared_db": parameters.crew.shared,
        "hosts": parameters.crew.hosts,
        "objects": parameters.objects,
        "object_size_bytes": parameters.object_size,
        "mapping": parameters.mapping.value,
        "btree_leaf_size": parameters.leaf_size,
        "btree_internal_size": parameters.internal_size,
        "blobs": parameters.blobs,
        "compressibility": parameters.compressibility,
        "min_objects": parameters.min_objects,
        "seed": parameters.seed,
        "objects_per_second": figures["objects"],
        "seconds_per_iteration": figures["seconds"],
        "interval_low_s": interval and interval[0],
        "interval_high_s": interval and interval[1],
        "stdev_s": figures["stdev"],
        "latency_p50_s": figures["p50"],
        "latency_p90_s": figures["p90"],
        "latency_p99_s": figures["p99"],
        "latency_max_s": figures["max"],
        "memory_bytes": result.mean if memory else None,
        "runs": len(result.runs),
        "values": len(result.values),
    }
