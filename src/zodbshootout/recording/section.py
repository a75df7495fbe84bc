"""The ``<recording>`` section of ZConfig."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ZODB.config import BaseConfig

from zodbshootout.recording import Limits, record


def fraction(text: str) -> float:
    """Return a percentage like ``10%`` as a fraction.

    :raises ValueError: if *text* is not a percentage above 0 and up to 100
    """
    number, sign, rest = text.partition("%")
    value = float(number) / 100 if sign and not rest else float("nan")
    if not 0 < value <= 1:
        raise ValueError(f"{text!r} is not a percentage above 0% and up to 100%")
    return value


class RecordingFactory(BaseConfig):  # type: ignore[misc]
    """The factory of a ``<recording>`` section's storage."""

    def open(self) -> Any:
        """Open the inner storage, and return a wrapper that records calls to it."""
        while_exists = self.config.while_exists
        limits = Limits(
            self.config.max_size,
            self.config.sample,
            None if while_exists is None else Path(while_exists),
            self.config.anonymous,
        )
        return record(self.config.storage.open(), self.config.path, limits)
