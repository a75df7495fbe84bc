"""The formats that a report can be written in.

A new one is one module in this package with a function ``write`` and its name in ``_MODULES``, or
such a function of any other package, named by an entry point in the group ``zodbshootout.formats``.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import PurePath
from typing import cast

from rich.console import Console

from zodbshootout.reports.report import Report

Write = Callable[[Report, Console], None]
"""Writes a report to a console, or to the console's ``file``."""

_MODULES = {
    "text": "text",
    "csv": "csv",
    "csv-table": "csv_table",
    "markdown": "markdown",
    "rst": "rst",
    "json": "json",
    "html": "html",
    "svg": "svg",
    "png": "png",
}
PICTURES = frozenset({"svg", "png"})
"""The formats that show nothing but charts, of which a whole report alone has some."""
_ENDINGS = {"md": "markdown", "txt": "text", "htm": "html"}
"""The formats of files whose endings are not their names."""
_PACKAGES = {"altair": "altair", "vl_convert": "vl-convert-python", "jinja2": "Jinja2"}
"""The packages of the extra ``report``, by their modules."""
ENTRY_POINTS = "zodbshootout.formats"


class NotInstalled(Exception):  # noqa: N818
    """A format needs a package that is not there; the message tells which, and what to type."""


@functools.cache
def names() -> tuple[str, ...]:
    """Return the names of all formats."""
    return (*dict.fromkeys([*_MODULES, *_others()]),)


def format_named(name: str) -> Write:
    """Return the function that writes the format of one of the :func:`names`.

    :raises NotInstalled: when a package is missing that it needs
    """
    if name in _others():
        return cast("Write", _others()[name].load())
    try:
        return cast("Write", importlib.import_module(f"{__package__}.{_MODULES[name]}").write)
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        raise NotInstalled(
            f"{name} needs {_PACKAGES[error.name]}, which is in the extra report; "
            f"install it: pip install {' '.join(_PACKAGES.values())}"
        ) from None


def format_of(path: PurePath) -> str | None:
    """Return the name of the format that a file's ending stands for, if there is one."""
    ending = path.suffix[1:].lower()
    name = _ENDINGS.get(ending, ending)
    return name if name in names() else None


@functools.cache
def _others() -> Mapping[str, EntryPoint]:
    return {each.name: each for each in entry_points(group=ENTRY_POINTS)}
