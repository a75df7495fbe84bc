"""Helpers that read recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from zodbshootout.recording.chunks import FIELDS, Event, Kind, read_chunks, read_header
from zodbshootout.recording.recorder import SUFFIX


def files_in(directory: Path) -> list[Path]:
    """Return the files of all processes, the oldest first."""
    return sorted(directory.glob(f"*{SUFFIX}"))


def events_of(fields: Sequence[Any]) -> Iterator[Event]:
    """Return the events of a flat sequence of fields."""
    return map(Event, *(fields[place::FIELDS] for place in range(FIELDS)))


def connections(path: Path) -> dict[int, list[Event]]:
    """Return the events of each connection in a file."""
    events: dict[int, list[Event]] = {}
    with path.open("rb") as file:
        read_header(file)
        for chunk in read_chunks(file):
            for connection, fields in chunk:
                events.setdefault(connection, []).extend(events_of(fields))
    return events


def events_in(directory: Path) -> list[Event]:
    """Return the events of all processes and connections."""
    return [
        event
        for path in files_in(directory)
        for events in connections(path).values()
        for event in events
    ]


def counts(directory: Path) -> Counter[str]:
    """Return the number of events of each kind."""
    return Counter(Kind(event.kind).name for event in events_in(directory))
