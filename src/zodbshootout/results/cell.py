"""What the coordinator plans with: cells.  Everything here is immutable and can be written as JSON.

Sizes are in bytes, times in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zodbshootout.client import specification as shapes
from zodbshootout.client.specification import Parameters


@dataclass(frozen=True)
class Cell:
    """One benchmark of one contender with one set of parameters."""

    benchmark: str
    contender: str
    parameters: Parameters

    def metadata(self) -> dict[str, str | int | float]:
        """Return what the metadata of every run of this cell say of it."""
        parameters = self.parameters
        told: dict[str, str | int | float] = {
            "benchmark": self.benchmark,
            "contender": self.contender,
            "concurrency": parameters.crew.size,
            "crew": str(parameters.crew),
            "objects": parameters.objects,
            "min_objects": parameters.min_objects,
            "seed": parameters.seed,
        }
        if parameters.crew.hosts:
            told["hosts"] = parameters.crew.hosts
        if parameters.objects or parameters.min_objects:
            told |= {
                "object_size_bytes": parameters.object_size,
                "mapping": parameters.mapping.value,
                "btree_leaf_size": parameters.leaf_size,
                "btree_internal_size": parameters.internal_size,
                "blobs": parameters.blobs,
                "compressibility": parameters.compressibility,
            }
        return told

    def to_json(self) -> dict[str, Any]:
        """Return the cell as JSON can hold it."""
        return {
            "benchmark": self.benchmark,
            "contender": self.contender,
            "parameters": shapes.to_json(self.parameters),
        }
