"""Cells, and the metadata that identify a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from zodbshootout.model.parameters import Plain, metadata_of, parameters_of
from zodbshootout.model.specification import BenchmarkWords, Parameters

WORDS = {f"benchmark_{field.name}": field.name for field in fields(BenchmarkWords)}
"""The attributes of ``BenchmarkWords``, by metadata key."""


@dataclass(frozen=True)
class Cell:
    """One benchmark of one contender with one set of parameters."""

    benchmark: str
    contender: str
    parameters: Parameters
    words: BenchmarkWords = field(compare=False)

    @property
    def without_operation(self) -> Cell:
        """The cell with the same parameters, but without an operation during the iterations."""
        return replace(self, parameters=replace(self.parameters, during=""))

    def metadata(self) -> dict[str, Plain]:
        """Return metadata that :func:`cell_of` turns into this cell; leave out empty ``words``."""
        words = {key: " ".join(getattr(self.words, name).split()) for key, name in WORDS.items()}
        return {
            "benchmark": self.benchmark,
            "contender": self.contender,
            **{key: text for key, text in words.items() if text},
            **metadata_of(self.parameters),
        }


def cell_of(metadata: Mapping[str, Any]) -> Cell:
    """Return the cell that metadata describe.

    :raises KeyError: if *metadata* describe no cell, or lack a parameter
    :raises ValueError, TypeError: if a parameter has an impossible value
    """
    words = {name: str(metadata.get(key, "")) for key, name in WORDS.items()}
    if not words["title"]:
        raise KeyError("benchmark_title")
    return Cell(
        str(metadata["benchmark"]),
        str(metadata["contender"]),
        parameters_of(metadata),
        BenchmarkWords(**words),
    )
