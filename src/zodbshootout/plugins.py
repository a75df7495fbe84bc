"""The objects of other packages that entry points refer to."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from zodbshootout.model.outcome import describe


class BrokenPlugin(Exception):  # noqa: N818
    """The object that an entry point refers to cannot be imported."""


def plugins(group: str) -> list[Any]:
    """Return the objects that the entry points of a group refer to.

    :raises BrokenPlugin: if one cannot be imported
    """
    if sys.version_info >= (3, 10):
        return [load_plugin(entry) for entry in entry_points(group=group)]
    return [load_plugin(entry) for entry in entry_points().get(group, ())]  # type: ignore[unreachable, unused-ignore]


def load_plugin(entry: EntryPoint) -> Any:
    """Return the object that an entry point refers to.

    :raises BrokenPlugin: if it cannot be imported
    """
    try:
        return entry.load()
    except Exception as error:
        raise BrokenPlugin(
            f"cannot import {entry.value}, the entry point {entry.name} of {entry.group}: "
            f"{describe(error)}; repair or uninstall the package that registers it"
        ) from error
