"""The formats that a report can be written in.

A new one is one module in this package with a function ``write`` and its name in ``_MODULES``, or
such a function of any other package, named by an entry point in the group ``zodbshootout.formats``.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

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
}
ENTRY_POINTS = "zodbshootout.formats"


@functools.cache
def formats() -> Mapping[str, Write]:
    """Return every format by its name."""
    found: dict[str, Write] = {
        name: importlib.import_module(f"{__package__}.{module}").write
        for name, module in _MODULES.items()
    }
    return found | {each.name: each.load() for each in entry_points(group=ENTRY_POINTS)}
