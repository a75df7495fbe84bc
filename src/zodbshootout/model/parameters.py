"""The table of a cell's parameters: what each is called, and how it is written and read.

A new parameter needs an attribute of :class:`~zodbshootout.model.specification.Parameters` and a
line here.  The line gives the parameter a key in the metadata of results, a column in CSV and JSON,
and the name that ``compare --ignore`` takes.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, Union

from zodbshootout.model.specification import (
    CopiedData,
    CrewShape,
    LatencyLimit,
    Parameters,
    ReplayedWorkload,
    duration,
    exactly,
)

Plain = Union[str, int, float]
"""A value as it is stored in metadata."""
_DEFAULTS = Parameters(CrewShape(1))


class Scope(enum.Enum):
    """The cells in which a parameter has an effect."""

    ALL = "all"
    OBJECTS = "those with objects"
    CONTENT = "those with objects of their own, or of --min-objects"
    PACE = "those with a rate, or with a limit of latencies"
    REPLAY = "those that replay a workload"
    COPY = "those that copy a FileStorage of the user's"
    DISTANCE = "those at one of several distances"
    HISTORY = "those that use old revisions or garbage"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a cell, and its names."""

    attribute: str
    """The path within :class:`~zodbshootout.model.specification.Parameters`: ``crew.size``."""
    key: str
    """The parameter's name in metadata, in the list of cells, and in CSV and JSON."""
    option: str = ""
    """The name, without dashes, of the option that sets the parameter; empty if several do."""
    scope: Scope = Scope.ALL
    letter: str = ""
    """The letter for the parameter in short names of benchmarks (``c=2``); empty if no sweep can
    vary the parameter."""
    axis: str = ""
    """The title of a chart's axis, if a sweep can vary the parameter."""
    row: str = ""
    """How the titles of rows show a value, as in ``n={}``; empty if they do not show it."""

    @property
    def is_optional(self) -> bool:
        """Whether the default stands for none, as for rates and distances."""
        return self.scope in {Scope.PACE, Scope.DISTANCE}

    @property
    def default(self) -> Any:
        """The default value."""
        return self.of(_DEFAULTS)

    def of(self, parameters: Parameters) -> Any:
        """Return the parameter's value in *parameters*."""
        return attrgetter(self.attribute)(parameters)

    def written(self, parameters: Parameters) -> Plain:
        """Return the parameter's value in *parameters*, in the form for metadata."""
        value = self.of(parameters)
        if isinstance(value, LatencyLimit):
            return str(value)
        plain: Plain = value.value if isinstance(value, enum.Enum) else value
        return plain

    def in_row(self, parameters: Parameters) -> str:
        """Return the words for the value in the title of a row; empty if there is no value."""
        value = self.of(parameters)
        if self.is_optional and value == self.default:
            return ""
        text = exactly(value) if isinstance(value, float) else str(value)
        return self.row.format(duration(value, " ") if self is DISTANCE else text)

    def read(self, plain: Any) -> Any:
        """Return the value that :meth:`written` turned into *plain*.

        :raises ValueError, TypeError: if *plain* is not such a value
        """
        default = self.default
        if isinstance(default, LatencyLimit):
            return LatencyLimit.parsed(plain)
        return float(plain) if default is None else type(default)(plain)


CLIENTS = Parameter("crew.size", "clients", "concurrency", letter="c", axis="clients")
OBJECTS = Parameter(
    "objects", "objects", "object-counts",
    letter="n", axis="objects per transaction", row="n={}",
)  # fmt: skip
SIZE = Parameter(
    "object_size", "object_size_bytes", "object-size", Scope.CONTENT, "s", "bytes per object"
)
MIN_OBJECTS = Parameter(
    "min_objects", "min_objects", "min-objects", letter="m", axis="objects in the database"
)
RATE = Parameter("rate", "rate", "rate", Scope.PACE, "r", "iterations a second", "{}/s")
PHASE = Parameter("phase", "phase", scope=Scope.PACE, row="{}")
DURING = Parameter("during", "during", "during", Scope.PACE, row="{}")
DISTANCE = Parameter("rtt", "rtt", "rtt", Scope.DISTANCE, row="at {}")

PARAMETERS = (
    CLIENTS,
    Parameter("crew.client_kind", "client_kind", "threads"),
    Parameter("crew.shared", "shared_db", "threads"),
    Parameter("crew.hosts", "hosts", "hosts"),
    OBJECTS,
    SIZE,
    Parameter("mapping", "mapping", "btrees", Scope.OBJECTS),
    Parameter("leaf_size", "btree_leaf_size", "btree-leaf-size", Scope.OBJECTS),
    Parameter("internal_size", "btree_internal_size", "btree-internal-size", Scope.OBJECTS),
    Parameter("grown", "grown", "grown", Scope.OBJECTS),
    Parameter("blobs", "blobs", "blobs", Scope.CONTENT),
    Parameter("compressibility", "compressibility", "compressibility", Scope.CONTENT),
    MIN_OBJECTS,
    Parameter("revisions", "revisions", "revisions", Scope.HISTORY),
    Parameter("garbage", "garbage", "garbage", Scope.HISTORY),
    Parameter("seed", "seed", "seed"),
    RATE,
    Parameter("limit", "latency_limit", "latency-limit", Scope.PACE),
    DURING,
    PHASE,
    DISTANCE,
    *(
        Parameter(
            f"workload.{field.name}",
            f"workload_{field.name}".removesuffix("_name"),
            scope=Scope.REPLAY,
        )
        for field in fields(ReplayedWorkload)
        if field.compare
    ),
    *(
        Parameter(f"copied.{field.name}", f"copied_{field.name}", scope=Scope.COPY)
        for field in fields(CopiedData)
        if field.compare
    ),
)
"""All parameters, in the order in which CSV and JSON show them."""
SWEPT = (CLIENTS, OBJECTS, SIZE, RATE, MIN_OBJECTS)
"""The parameters of which a run can measure several values."""
ROWS = (OBJECTS, RATE, DISTANCE, PHASE, DURING)
"""The parameters that the titles of rows show, in order."""


def with_values(parameters: Parameters, values: Mapping[Parameter, Any]) -> Parameters:
    """Return *parameters* with new *values* for some of them."""
    for one, value in values.items():
        outer, dot, inner = one.attribute.partition(".")
        part = replace(getattr(parameters, outer), **{inner: value}) if dot else value
        parameters = replace(parameters, **{outer: part})
    return parameters


def without_objects(parameters: Parameters) -> Parameters:
    """Return *parameters* for a benchmark that uses no objects.

    The number of objects becomes 0, so a run with several numbers measures the benchmark once.  If
    ``--min-objects`` adds objects, the parameters of their content remain.
    """
    dropped = {Scope.OBJECTS, Scope.REPLAY, Scope.COPY, Scope.HISTORY}
    if not parameters.min_objects:
        dropped.add(Scope.CONTENT)
    defaults = {one: one.default for one in PARAMETERS if one.scope in dropped}
    return replace(with_values(parameters, {**defaults, OBJECTS: 0}), owner="")


def metadata_of(parameters: Parameters) -> dict[str, Plain]:
    """Return the parameters that have an effect, by their metadata keys."""
    scopes = {Scope.ALL}
    if parameters.objects:
        scopes |= {Scope.OBJECTS, Scope.CONTENT}
    if parameters.min_objects:
        scopes.add(Scope.CONTENT)
    return {
        one.key: one.written(parameters)
        for one in PARAMETERS
        if one.scope in scopes or one.of(parameters) != one.default
    }


def parameters_of(metadata: Mapping[str, Any]) -> Parameters:
    """Return the parameters that :func:`metadata_of` wrote.

    :raises KeyError: if a parameter that every cell has is missing
    :raises ValueError, TypeError: if a value is impossible
    """
    there = (one for one in PARAMETERS if one.key in metadata or one.scope is Scope.ALL)
    return with_values(_DEFAULTS, {one: one.read(metadata[one.key]) for one in there})
