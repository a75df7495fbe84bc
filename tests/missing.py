"""Servers, programs and packages that a test needs and the machine lacks."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Iterable
from typing import NoReturn

import pytest
from tools.install_servers import REQUIREMENTS, advice

MODULES = {"MySQLdb": "mysql", "playwright": "browser"}
"""Modules that an extra other than ``dev`` installs, with its name."""

skips = True
"""Whether tests are skipped that lack something; with ``--skip-none`` they fail."""


def skip_without(names: Iterable[str]) -> None:
    """Skip a test if something is missing that its marker names."""
    if "root" in names and os.geteuid() != 0:
        pytest.skip("run it as root")
    advices = [text for name in sorted(set(names) - {"root"}) if (text := _advice(name))]
    if advices:
        skip("; ".join(advices))


def skip(reason: str) -> NoReturn:
    """Skip a test, or fail if none may be skipped."""
    if skips:
        pytest.skip(reason)
    pytest.fail(reason)


@functools.cache
def _advice(name: str) -> str | None:
    """Return how to install what a marker names, ``None`` if it is there."""
    if name in MODULES:
        if importlib.util.find_spec(name) is not None:
            return None
        return f"install {name}: pip install -e '.[dev,{MODULES[name]}]'"
    (requirement,) = (one for one in REQUIREMENTS if one.name == name)
    return None if requirement.is_met() else f"install {name}: {advice(requirement)}"
