"""The replacement of files that the user has named."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_STREAMS = (1, 2)
"""The descriptors of standard output and standard error."""


def to_be_replaced(path: Path) -> Path | None:
    """Return *path* with links resolved, if *path* leads to a regular file or does not exist.

    The result is ``None`` for what can be written to but not replaced: a pipe, a device such as
    ``/dev/null``, standard output and standard error.

    :raises OSError: if *path* leads to anything else, such as a directory, or is invalid
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return _resolved(path)
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or _stream(path) is not None:
        return None
    if not stat.S_ISREG(mode):
        raise OSError(errno.EEXIST, "not a regular file; name another one", str(path))
    return _resolved(path)


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Replace a file atomically with a file that *write* makes; on failure, keep the old file.

    A pipe, a device, standard output or standard error is not replaced but written to.

    :raises OSError: if the file cannot be written
    """
    try:
        target = to_be_replaced(path)
        if target is None:
            _write_through(path, write)
        else:
            _replace(target, path.suffix, write)
    except OSError as error:  # the error may name the temporary file
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a file, which is made for this, until the context or the process ends.

    On file systems without locks, do nothing.

    :raises BlockingIOError: if another process has locked the file
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_at(descriptor, path):  # the other process has just removed it
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(path))
        except OSError as error:
            if error.errno not in {errno.ENOLCK, errno.ENOTSUP}:
                raise
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    return False


def _replace(target: Path, suffix: str, write: Callable[[Path], object]) -> None:
    # The temporary name has at most 32 characters.  It has the suffix of the user's file, because
    # pyperf compresses and decompresses files whose names end in .gz.
    temporary = target.with_name(f".{os.getpid()}{suffix[-20:]}")
    try:
        _prepare(temporary, target)
        write(temporary)
        _sync(temporary)  # otherwise the file might be empty after a power cut
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _prepare(temporary: Path, target: Path) -> None:
    """Create a temporary file with the mode of the file that it will replace, if there is one."""
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(target.stat().st_mode)
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        temporary.chmod(mode | stat.S_IWUSR)  # else, it could not be written to


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve() may raise a RuntimeError


def _stream(path: Path) -> int | None:
    """Return the descriptor of standard output or standard error, if *path* leads there."""
    for descriptor in _STREAMS:
        with suppress(OSError):  # the stream may be closed
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                return descriptor
    return None


def _write_through(path: Path, write: Callable[[Path], object]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        content = Path(directory, f"content{path.suffix[-20:]}")
        write(content)
        with content.open("rb") as source, os.fdopen(_opened(path), "wb") as file:
            shutil.copyfileobj(source, file)


def _opened(path: Path) -> int:
    stream = _stream(path)
    if stream is not None:  # opening a redirected stream again would overwrite its beginning
        return os.dup(stream)
    try:
        # Without O_NONBLOCK, os.open would wait for a reader of the pipe.
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        reason = "no program reads this pipe; start one first"
        raise OSError(errno.ENXIO, reason, str(path)) from None
    os.set_blocking(descriptor, True)
    return descriptor


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
