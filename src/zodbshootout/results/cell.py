"""Cells, and the metadata that identify a cell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from zodbshootout.model.parameters import Plain, metadata_of, parameters_of
from zodbshootout.model.specification import BenchmarkWords, Parameters
from zodbshootout.model.titles import OF_PACKAGES, Value, plain, title_of, variant_of

WORDS = {f"benchmark_{field.name}": field.name for field in fields(BenchmarkWords)}
"""The attributes of ``BenchmarkWords``, by metadata key."""


@dataclass(frozen=True)
class Cell:
    """One benchmark of one contender with one set of parameters."""

    benchmark: str
    contender: str
    """The name of the contender's section."""
    parameters: Parameters
    words: BenchmarkWords = field(compare=False)
    variant: Mapping[str, Value] = field(default_factory=dict, hash=False)
    """What distinguishes the contender from its other variants, by axis."""

    @property
    def title(self) -> str:
        """The title of the contender's variant at its distance, such as ``zeo [cache=10MB, 2ms]``.

        No other variant of the run has this title.
        """
        return title_of(self.contender, self.variant, self.parameters.rtt)

    @property
    def column(self) -> str:
        """The title without the distance, which is shown in rows: ``zeo [cache=10MB]``."""
        return title_of(self.contender, self.variant)

    @property
    def original(self) -> str:
        """The title of the same variant in the base environment."""
        variant = {axis: value for axis, value in self.variant.items() if axis not in OF_PACKAGES}
        return title_of(self.contender, variant, self.parameters.rtt)

    @property
    def row(self) -> tuple[str, Parameters]:
        """What the cell has in common with all cells that are measured in turn with it."""
        return self.benchmark, replace(self.parameters, rtt=None)

    @property
    def named_by_title(self) -> Cell:
        """The cell of a contender whose name is this cell's :attr:`title`."""
        parameters = replace(self.parameters, rtt=None)
        return replace(self, contender=self.title, parameters=parameters, variant={})

    @property
    def without_operation(self) -> Cell:
        """The cell with the same parameters, but without an operation during the iterations."""
        return replace(self, parameters=replace(self.parameters, during="", phase=""))

    def metadata(self) -> dict[str, Plain]:
        """Return metadata that :func:`cell_of` turns into this cell; leave out empty ``words``."""
        words = {key: " ".join(getattr(self.words, name).split()) for key, name in WORDS.items()}
        return {
            "benchmark": self.benchmark,
            "contender": self.contender,
            **({"variant": json.dumps(plain(self.variant))} if self.variant else {}),
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
        variant_of(json.loads(metadata.get("variant", "{}"))),
    )
