"""Configurations and recorded workloads that are installed with the package, by their names."""

from __future__ import annotations

import functools
from pathlib import Path

_DIRECTORY = Path(__file__).with_name("samples")


@functools.cache
def samples() -> dict[str, Path]:
    """Return the configurations by name; the name of ``sample.conf`` is ``sample``."""
    return {path.stem: path for path in sorted(_DIRECTORY.glob("*.conf"))}


@functools.cache
def workloads() -> dict[str, Path]:
    """Return the recorded workloads by name."""
    return {path.stem: path for path in sorted(_DIRECTORY.glob("workloads/*.workload"))}
