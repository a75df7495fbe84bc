"""What two sides of a comparison differ in beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zodbshootout.results.result import CellResult

_TOLD = (
    "environment", "hostname", "platform", "cpu_model_name", "cpu_count", "cpu_affinity",
    "python_implementation", "python_version", "driver", "storage_classes", "sharing",
    "corrections", "packed", "zapped", "servers_restarted", "uncleared_caches", "profiler",
    "work_per_iteration", "unit",
)  # fmt: skip
"""The metadata of runs that may explain a difference, beside versions and configuration."""


@dataclass(frozen=True)
class Difference:
    """One thing in which the sides differ."""

    name: str
    base: str
    new: str
    """What each side says, several things separated by commas; ``-`` where it says nothing."""
    setting: bool = False
    """Whether it is one of the contender's configuration."""

    def __str__(self) -> str:
        return f"{self.name}: {self.base} against {self.new}"


def differences(pairs: Sequence[tuple[CellResult, CellResult]]) -> list[Difference]:
    """Return what differs in the metadata of cells that are compared, each thing once."""
    return [
        *_differing([(_facts(base), _facts(new)) for base, new in pairs], setting=False),
        *_differing([(_settings(base), _settings(new)) for base, new in pairs], setting=True),
    ]


def _differing(
    told: Sequence[tuple[dict[str, str], dict[str, str]]], *, setting: bool
) -> list[Difference]:
    names = dict.fromkeys(name for sides in told for side in sides for name in side)
    found = []
    for name in names:
        differing = [
            (base.get(name, "-"), new.get(name, "-"))
            for base, new in told
            if base.get(name) != new.get(name)
        ]
        if differing:
            base, new = (", ".join(dict.fromkeys(side)) for side in zip(*differing, strict=True))
            found.append(Difference(name, base, new, setting))
    return found


def _facts(result: CellResult) -> dict[str, str]:
    """Return what the runs of a cell say of versions, the machine and the like."""
    metadata = [run.get_metadata() for run in result.runs]
    versions = sorted({name for each in metadata for name in each if name.startswith("version_")})
    found = {
        name: dict.fromkeys(str(each[name]) for each in metadata if name in each)
        for name in [*_TOLD, *versions]
    }
    return {name: ", ".join(values) for name, values in found.items() if values}


def _settings(result: CellResult) -> dict[str, str]:
    """Return what the runs of a cell say of the configuration."""
    told = str(result.runs[0].get_metadata().get("configuration", ""))
    pairs = (setting.partition("=") for setting in told.split("; ") if setting)
    return {name: text for name, _, text in pairs}
