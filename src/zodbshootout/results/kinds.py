"""What is in the files that this program writes, so that others are told from them.

Nothing that is read from a file is relied on before it was looked at here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyperf
from hdrh.histogram import HdrHistogram

_TEXTS = {
    "benchmark", "contender", "crew", "mapping", "round", "slices", "configuration",
    "configuration_text", "command_line", "uncleared_caches", "latency_histogram", "beside",
    "environment",
}  # fmt: skip
_COUNTS = {
    "concurrency", "hosts", "objects", "min_objects", "object_size_bytes", "btree_leaf_size",
    "btree_internal_size",
}  # fmt: skip
_NUMBERS = {"compressibility", "work_per_iteration", "precision", "latency_max_s"}

_HOST, _HOST_SECONDS = re.compile(r"host_\d+"), re.compile(r"host_\d+_s")
_HOST_CLIENTS = re.compile(r"host_\d+_clients")

LEAST, MOST = 1e-15, 1e18
"""Between these is every number of seconds, bytes or objects that can be measured."""


def strange_metadata(metadata: Mapping[str, Any]) -> str | None:
    """Return the name of something that this program would not write so, if there is anything."""
    for name, value in metadata.items():
        if not _is_of_kind(name, value):
            return name
    return None


def strange_values(runs: Iterable[pyperf.Run]) -> str | None:
    """Return what of some runs this program would not write so, if there is anything."""
    for run in runs:
        if not all(LEAST < value < MOST for value in run.values):
            return "values"
        strange = strange_metadata(run.get_metadata())
        if strange:
            return strange
    return None


def _is_of_kind(name: str, value: Any) -> bool:
    if name == "latency_histogram":
        return isinstance(value, str) and _is_histogram(value)
    if name in _TEXTS or _HOST.fullmatch(name):
        return isinstance(value, str)
    if name == "seed":
        return type(value) is int
    if name in _COUNTS or _HOST_CLIENTS.fullmatch(name):
        return type(value) is int and 0 <= value < MOST
    if name in _NUMBERS or _HOST_SECONDS.fullmatch(name):
        return type(value) in {int, float} and 0 <= value < MOST
    return True


def _is_histogram(text: str) -> bool:
    try:
        return HdrHistogram.decode(text) is not None
    except Exception:  # noqa: BLE001 - it raises whatever its parts raise
        return False
