"""Note what code opens, changes, starts or connects to in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_CHANGES = (
    "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir",
    "os.symlink", "os.truncate", "os.utime", "sqlite3.connect",
)  # fmt: skip
_CONNECTIONS = (
    "socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto",
)  # fmt: skip
_PROCESSES = ("os.exec", "os.fork", "os.posix_spawn", "os.system", "subprocess.Popen")

_NOTED = frozenset(("open", *_CHANGES, *_CONNECTIONS, *_PROCESSES))
_lists: list[list[tuple[str, tuple[Any, ...]]]] = []
"""The list in which events are noted now."""


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _lists and event in _NOTED:
        _lists[-1].append((event, arguments))


sys.addaudithook(_note)  # Python has no way to remove it


@contextmanager
def watched(directory: Path) -> Iterator[list[str]]:
    """Yield a list that says at the end what was done meanwhile.

    Reading configurations in *directory* is left out, and so are files elsewhere and the choice of
    a free port.  C libraries that connect to a server by themselves are not noticed.
    """
    done: list[str] = []
    _lists.append([])
    try:
        yield done
    finally:
        events = _lists.pop()
    for event, arguments in events:
        if event in _CONNECTIONS:
            if not any(_is_any_port(argument) for argument in arguments):
                done.append(f"{event} {arguments!r}")
        elif event in _PROCESSES:
            done.append(f"{event} {arguments!r}")
        elif _is_in(directory, *arguments) and not _reads_a_configuration(event, *arguments):
            done.append(f"{event} {arguments[0]}")


def _is_any_port(argument: Any) -> bool:
    return argument in ("127.0.0.1", ("127.0.0.1", 0))


def _is_in(directory: Path, path: Any, *more: Any) -> bool:
    """Return whether the path of an event is in *directory*.

    A relative path may be relative to a directory that is open, which the event does not tell.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    path = Path(os.fsdecode(path))
    return directory in path.parents or (not path.is_absolute() and path.exists())


def _reads_a_configuration(event: str, path: Any, *more: Any) -> bool:
    if event != "open":
        return False
    path = Path(os.fsdecode(path))
    writes = bool(more[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    return not writes and (path.suffix == ".conf" or path.is_dir())
