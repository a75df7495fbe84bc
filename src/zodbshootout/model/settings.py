"""The settings of a contender: texts by paths, and their form for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]
"""The name of a setting, after those of the sections that contain it, outermost first."""
Settings = Mapping[Path, str]
SECTION = "section"
"""The name of the setting that is the type of the section."""


def nested(settings: Settings) -> dict[str, Any]:
    """Return settings in the form for JSON, in which each section is a mapping."""
    outermost: dict[str, Any] = {}
    for (*sections, name), text in settings.items():
        section = outermost
        for inner in sections:
            section = section.setdefault(inner, {})
        section[name] = text
    return outermost


def settings_in(section: Mapping[str, Any]) -> dict[Path, str]:
    """Return the settings that :func:`nested` turned into *section*."""
    return dict(_settings(section, ()))


def _settings(section: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    for name, content in section.items():
        if isinstance(content, Mapping):
            yield from _settings(content, (*path, name))
        else:
            yield (*path, name), str(content)
