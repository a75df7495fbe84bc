"""A cell, its JSON form, and the metadata that describe it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar, cast, get_type_hints

from zodbshootout.model.specification import Parameters

T = TypeVar("T")

_DATA = {
    "objects": "objects",
    "object_size_bytes": "object_size",
    "mapping": "mapping",
    "btree_leaf_size": "leaf_size",
    "btree_internal_size": "internal_size",
    "blobs": "blobs",
    "compressibility": "compressibility",
    "min_objects": "min_objects",
    "seed": "seed",
}
"""Attributes of parameters, by metadata key."""
_WITHOUT_DATA = {"objects", "min_objects", "seed"}
"""The keys of :data:`_DATA` that a cell without data has, too."""
MAX = 1e18
"""The exclusive upper bound of numbers of seconds, bytes and objects."""


@dataclass(frozen=True)
class Cell:
    """One benchmark of one contender with one set of parameters."""

    benchmark: str
    contender: str
    parameters: Parameters

    def metadata(self) -> dict[str, str | int | float]:
        crew = self.parameters.crew
        data = self.data()
        if not (self.parameters.objects or self.parameters.min_objects):
            data = {key: value for key, value in data.items() if key in _WITHOUT_DATA}
        return {
            "cell": json.dumps(encode(self)),
            "benchmark": self.benchmark,
            "contender": self.contender,
            "concurrency": crew.size,
            "crew": str(crew),
            **({"hosts": crew.hosts} if crew.hosts else {}),
            **data,
            **self._workload(),
            **self._arrivals(),
        }

    def _arrivals(self) -> dict[str, str | int | float]:
        parameters = self.parameters
        kinds = {"arrivals": "even" if parameters.even_arrivals else "poisson"}
        if parameters.rate:
            return {"rate": parameters.rate, **kinds}
        if parameters.limit.percentile:
            return {"latency_limit": str(parameters.limit), **kinds}
        return {}

    def _workload(self) -> dict[str, str | int | float]:
        workload = self.parameters.workload
        if not workload.name:
            return {}
        paced = {"workload_speed": workload.speed} if workload.speed else {}
        data = {"workload_data": workload.data} if workload.data else {}
        return {"workload": workload.name, "workload_digest": workload.digest, **paced, **data}

    def data(self) -> dict[str, str | int | float]:
        """Return the parameters that describe the data, by metadata key; sizes are in bytes."""
        return {key: encode(getattr(self.parameters, name)) for key, name in _DATA.items()}


def cell_of(metadata: Mapping[str, Any]) -> Cell:
    """Return the cell that metadata describe.

    :raises ValueError: if they describe none; also KeyError, TypeError and AttributeError
    """
    return decode(Cell, json.loads(metadata["cell"]))


def encode(value: Any) -> Any:
    """Return a dataclass, an enumeration or a plain value in a form that JSON can hold."""
    if is_dataclass(value):
        parts = {field: getattr(value, field.name) for field in fields(value) if field.compare}
        return {
            field.name: encode(part)
            for field, part in parts.items()
            if not (is_dataclass(part) and part == field.default)
        }
    return value.value if isinstance(value, Enum) else value


def decode(kind: type[T], document: Any) -> T:
    """Return the object of a *kind* that :func:`encode` turned into a *document*.

    :raises ValueError: if the document has another form; also KeyError, TypeError, AttributeError
    """
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(
            **{name: _checked(name, decode(hints[name], value)) for name, value in document.items()}
        )
    if issubclass(kind, Enum):
        return kind(document)
    if type(document) is not kind and not (kind is float and type(document) is int):
        raise ValueError(f"{document!r} is no {kind.__name__}")
    return cast("T", document)


def _checked(name: str, value: Any) -> Any:
    if name != "seed" and isinstance(value, (int, float)) and not 0 <= value < MAX:
        raise ValueError(f"{name} has an unexpected value")
    return value
