"""Reports for people and programs, and the formats in which they are written.

:mod:`~zodbshootout.reports.tables` and :mod:`~zodbshootout.reports.sections` make a
:class:`~zodbshootout.reports.elements.Report` from results.  A format is a function that writes a
report.  A new format of this package needs a line in ``_FORMATS``.  A new format of another package
needs an entry point in the group ``zodbshootout.formats``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from pathlib import PurePath
from typing import TYPE_CHECKING, cast

from zodbshootout.errors import UserError, suggestion
from zodbshootout.plugins import BrokenPlugin, entries, load_plugin

if TYPE_CHECKING:
    from rich.console import Console

    from zodbshootout.reports.elements import Report


Write = Callable[["Report", "Console"], None]
"""A function that writes a report to a console, or to the console's ``file``."""

_FORMATS = {
    "text": "text:write",
    "csv": "csv_json:write_csv",
    "markdown": "markup:write_markdown",
    "json": "csv_json:write_json",
    "customSmallerIsBetter": "curves:write",
    "html": "html:write",
    "svg": "drawing:write_svg",
    "png": "drawing:write_png",
}
"""For each built-in format, a module of this package and its function that writes the format."""
_TABLES = {"csv": "csv_json:write_csv_table"}
"""The functions for ``--layout table``, by format."""
PICTURES = frozenset({"svg", "png"})
"""The image formats, which show nothing but charts."""
_ENDINGS = {"md": "markdown", "txt": "text", "htm": "html"}
"""The format for each file name extension that is not itself the name of a format."""
_PACKAGES = {"altair": "altair", "vl_convert": "vl-convert-python", "jinja2": "Jinja2"}
"""The modules that the extra ``report`` installs, each with the name of its package."""
ENTRY_POINTS = "zodbshootout.formats"
TABLES = "zodbshootout.tables"
"""The group of entry points of functions for ``--layout table``."""


def formats(*, pictures: bool = True) -> list[str]:
    """Return the names that ``--format`` accepts, with or without the image formats."""
    return [name for name in _all_formats() if pictures or name not in PICTURES]


def format_named(name: str, option: str = "--format") -> Write:
    """Return the function that writes a format.

    :raises UserError: if the format needs a package that is not installed; the message names
        *option*
    """
    try:
        return cast("Write", load_plugin(_all_formats()[name]))
    except BrokenPlugin as error:
        missing = getattr(error.__cause__, "name", None)
        if missing not in _PACKAGES:
            raise
        raise UserError(
            f"{option}: {name} needs {_PACKAGES[missing]}, which is in zodbshootout[report]; "
            f"install it: pip install {' '.join(_PACKAGES.values())}"
        ) from None


def checked_format(name: str, *, pictures: bool) -> Write:
    """Return the function that writes the format *name*, the value of ``--format``.

    :raises UserError: if there is no such format, if *pictures* is false and *name* is an image
        format, or if the format needs a package that is not installed
    """
    known = formats(pictures=pictures)
    if name in PICTURES and not pictures:
        raise UserError(
            f"--format: {name} is for charts; write it with zodbshootout report FILE -o page.{name}"
        )
    if name not in known:
        raise UserError(f"--format: no {name!r}; {suggestion(name, known)}")
    return format_named(name)


def table_layout(name: str) -> Write:
    """Return the function that writes the format *name* for ``--layout table``.

    :raises UserError: if the format has no such layout
    """
    tables = _named(TABLES, _TABLES)
    if name not in tables:
        raise UserError(f"--layout table: not available in {name}; use {' or '.join(tables)}")
    return cast("Write", load_plugin(tables[name]))


def format_by_ending(path: PurePath) -> str:
    """Return the name of the format that the ending of *path* selects; it may not exist."""
    ending = path.suffix[1:].lower()
    return _ENDINGS.get(ending, ending)


def format_of_file(path: PurePath, option: str, name: str | None = None) -> Write:
    """Return the function that writes the format *name*.

    Without a name, the ending of *path* selects the format.

    :raises UserError: if there is no such format, or it needs a package that is not installed
    """
    if name is not None:
        return checked_format(name, pictures=True)
    name = format_by_ending(path)
    if name not in _all_formats():
        reason = f"no format ends in {path.suffix!r}" if name else "its ending selects the format"
        raise UserError(f"{option}: {path}: {reason}; name a file such as page.html")
    return format_named(name, option)


@functools.cache
def _all_formats() -> Mapping[str, EntryPoint]:
    return _named(ENTRY_POINTS, _FORMATS)


def _named(group: str, built_in: Mapping[str, str]) -> Mapping[str, EntryPoint]:
    """Return the functions of a group by format; other packages may replace *built_in* ones."""
    own = [EntryPoint(name, f"{__name__}.{value}", group) for name, value in built_in.items()]
    return {point.name: point for point in [*own, *entries(group)]}
