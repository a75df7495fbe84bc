"""The ``<recording>`` section of ZConfig."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ZODB.config import BaseConfig

from zodbshootout.recording import Limits, record


def fraction(text: str) -> float:
    """Return the fraction that is meant by a percentage like ``10%``.

    :raises ValueError: if *text* is no percentage above 0 and up to 100
    """
    number, sign, rest = text.partition("%")
    value = float(number) / 100 if sign and not rest else float("nan")
    if not 0 < value <= 1:
        raise ValueError(f"{text!r} is no percentage from above 0% to 100%")
    return value


class RecordingFactory(BaseConfig):  # type: ignore[misc]
    """Opens the storage of a ``<recording>`` section."""

    def open(self) -> Any:
        """Open the storage inside, and return it recorded."""
        wanted = self.config.while_exists
        limits = Limits(
            self.config.max_size,
            self.config.sample,
            None if wanted is None else Path(wanted),
            self.config.anonymous,
        )
        return record(self.config.storage.open(), self.config.path, limits)
