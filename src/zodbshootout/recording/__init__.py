"""Record what an application does with its storage, to describe and to replay it elsewhere.

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

or, if a program opens its storage itself, :func:`record`.  No content is recorded, and no names of
classes, of users or of files.  This package depends on ZODB alone.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from zodbshootout.recording.recorder import Limits, Recorder

__all__ = ["Limits", "record"]


def record(storage: Any, path: str | os.PathLike[str], limits: Limits | None = None) -> Any:
    """Return a storage to be opened in place of *storage*, which records its connections.

    Each process writes a file into the directory *path*.  No exception is raised if that fails: the
    recording ends, and one line in the log says why.
    """
    # Imported late: reports import this package to describe workloads, without ZODB.
    from zodbshootout.recording.storage import facts_of, wrap

    recorder = Recorder(Path(path), limits or Limits(), partial(facts_of, storage))
    return wrap(storage, recorder)
