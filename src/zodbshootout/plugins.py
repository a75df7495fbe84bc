"""Load the objects to which the entry points of other packages refer."""

from __future__ import annotations

import functools
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from zodbshootout.model.outcome import describe

API_VERSION = (1, 0)
"""The major and minor version of :mod:`zodbshootout.api`, and of zodbshootout itself.

The numbers are here because clients in other Pythons lack zodbshootout's metadata."""


class BrokenPlugin(Exception):  # noqa: N818
    """The object that an entry point refers to cannot be imported."""


def entries(group: str) -> list[EntryPoint]:
    """Return the entry points of a group; only the first call reads the metadata of packages."""
    installed = _installed(tuple(sys.path))
    if sys.version_info >= (3, 10):
        return list(installed.select(group=group))
    return list(installed.get(group, ()))  # type: ignore[unreachable, unused-ignore]


@functools.cache
def _installed(path: tuple[str, ...]) -> Any:  # noqa: ARG001
    """Return the entry points of all packages; *path* is ``sys.path``, a key for the cache."""
    return entry_points()


def plugins(group: str) -> list[Any]:
    """Return the objects that the entry points of a group refer to.

    :raises BrokenPlugin: if an object cannot be imported
    """
    return list(map(load_plugin, entries(group)))


def load_plugin(entry: EntryPoint) -> Any:
    """Return the object that an entry point refers to.

    :raises BrokenPlugin: if the object cannot be imported
    """
    try:
        return entry.load()
    except Exception as error:
        remedy = "repair or uninstall the package that registers it"
        if isinstance(error, ImportError) and (error.name or "").startswith("zodbshootout."):
            version = ".".join(map(str, API_VERSION))
            remedy = f"install a release of its package for zodbshootout {version}, or uninstall it"
        raise BrokenPlugin(
            f"cannot import {entry.value}, the entry point {entry.name} of {entry.group}: "
            f"{describe(error)}; {remedy}"
        ) from error
