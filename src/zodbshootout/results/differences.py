"""Differences between the two sides of a comparison besides their figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from zodbshootout.results.result import CellResult

_FACTS = (
    "environment", "hostname", "platform", "cpu_model_name", "cpu_count", "cpu_affinity",
    "python_implementation", "python_version", "driver", "storage_classes", "sharing",
    "corrections", "packed", "zapped", "servers_restarted", "uncleared_caches", "profiler",
    "work_per_iteration", "unit",
)  # fmt: skip
"""The metadata that may explain a difference, besides versions and settings."""


@dataclass(frozen=True)
class Difference:
    """A fact or a setting that differs."""

    name: str
    base: str
    new: str
    """The values on each side, separated by commas; ``-`` if there is none."""
    setting: bool = False
    """Whether it is a setting of the contender."""

    def __str__(self) -> str:
        return f"{self.name}: {self.base} against {self.new}"


def differences(pairs: Sequence[tuple[CellResult, CellResult]]) -> list[Difference]:
    """Return the differences in the metadata of the cells of each pair, each once."""
    return [
        *_differing([(_facts(base), _facts(new)) for base, new in pairs], setting=False),
        *_differing([(_settings(base), _settings(new)) for base, new in pairs], setting=True),
    ]


def _differing(
    pairs: Sequence[tuple[dict[str, str], dict[str, str]]], *, setting: bool
) -> list[Difference]:
    names = dict.fromkeys(name for pair in pairs for side in pair for name in side)
    differing = []
    for name in names:
        values = [
            (base.get(name, "-"), new.get(name, "-"))
            for base, new in pairs
            if base.get(name) != new.get(name)
        ]
        if values:
            base, new = (", ".join(dict.fromkeys(side)) for side in zip(*values, strict=True))
            differing.append(Difference(name, base, new, setting))
    return differing


def _facts(result: CellResult) -> dict[str, str]:
    metadata = [run.get_metadata() for run in result.runs]
    versions = sorted({key for keys in metadata for key in keys if key.startswith("version_")})
    facts = {
        name: dict.fromkeys(str(keys[name]) for keys in metadata if name in keys)
        for name in [*_FACTS, *versions]
    }
    return {name: ", ".join(values) for name, values in facts.items() if values}


def _settings(result: CellResult) -> dict[str, str]:
    metadata = result.runs[0].get_metadata()
    try:
        return {name: str(value) for name, value in json.loads(metadata["settings"]).items()}
    except (KeyError, ValueError, AttributeError):
        # Files of 1.0.0.dev0 have settings as text alone.
        settings = str(metadata.get("configuration", "")).split("; ")
        pairs = (setting.partition("=") for setting in settings if setting)
        return {name: value for name, _, value in pairs}
