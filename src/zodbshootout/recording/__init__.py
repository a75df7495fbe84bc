"""Records what an application does with its storage, to describe and to replay it elsewhere.

In the application's configuration::

    %import zodbshootout.recording
    <zodb_db main>
      <recording>
        path $INSTANCE/var/main.workload
        <zeoclient>
          server localhost:8100
        </zeoclient>
      </recording>
    </zodb_db>

or, where a program opens its storage itself, :func:`record`.  No content is recorded, and no names
of classes, of users or of files.  This package needs ZODB alone.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from ZODB.config import BaseConfig

from zodbshootout.recording.recorder import Limits, Recorder
from zodbshootout.recording.storage import facts_of, wrap

__all__ = ["Limits", "RecordingFactory", "fraction", "record"]


def record(storage: Any, path: str | os.PathLike[str], limits: Limits | None = None) -> Any:
    """Return a storage to be opened in place of *storage*, which records its connections.

    Each process writes a file into the directory *path*.  No exception is raised if that fails: the
    recording ends, and one line in the log says why.
    """
    recorder = Recorder(Path(path), limits or Limits(), partial(facts_of, storage))
    return wrap(storage, recorder)


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
