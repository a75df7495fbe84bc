"""Record what an application does with its storage, as a workload to describe or to replay.

Write into the application's configuration::

    %import zodbshootout.recording
    <zodb_db main>
      <recording>
        path $INSTANCE/var/main.workload
        <zeoclient>
          server localhost:8100
        </zeoclient>
      </recording>
    </zodb_db>

A program that opens its storage itself calls :func:`record`.  Recordings contain no content, and no
names of classes, users or files.  This package depends only on ZODB.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from zodbshootout.recording.recorder import Limits, Recorder

__all__ = ["Limits", "record"]


def record(storage: Any, path: str | os.PathLike[str], limits: Limits | None = None) -> Any:
    """Return a storage that records its connections; use it instead of *storage*.

    Each process writes a file into the directory *path*.  If writing fails, no exception is raised:
    the recording ends, and one line in the log says why.
    """
    # Imported late, because reports use this package, and must not need ZODB.
    from zodbshootout.recording.storage import facts_of, wrap

    recorder = Recorder(Path(path), limits or Limits(), partial(facts_of, storage))
    return wrap(storage, recorder)
