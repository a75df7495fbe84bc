"""Write the events of all connections of a process to a file, once a second."""

from __future__ import annotations

import atexit
import hashlib
import itertools
import logging
import os
import random
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from zodbshootout.recording.chunks import FIELDS, NONE, encode, header

INTERVAL = 1.0
"""Seconds between chunks; a killed process loses the events since its last chunk."""
SUFFIX = ".events"
"""The suffix of recorded files."""
KEY = "anonymous.key"
"""The file with the key for hashing OIDs; it can be deleted after the recording."""
logger = logging.getLogger("zodbshootout.recording")
clock = time.perf_counter_ns


@dataclass(frozen=True)
class Limits:
    """The settings of the recording."""

    max_size: int | None = None
    """The maximum number of bytes that a process writes."""
    sample: float = 1.0
    """The fraction of the connections to record."""
    while_exists: Path | None = None
    """Record only while this file exists; ``None`` means always."""
    anonymous: bool = False
    """Whether OIDs are replaced by keyed hashes."""


class Log:
    """The events of one connection that have not been written yet."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.fields: list[Any] = []
        """The fields of events, as in a :data:`~zodbshootout.recording.chunks.Segment`."""
        self.closed = False

    def take(self) -> list[Any]:
        """Remove and return the fields; meanwhile another thread may append some."""
        number = len(self.fields)
        fields = self.fields[:number]
        del self.fields[:number]
        return fields


class Recorder:
    """Collects the events of a process, and writes them to a file in a directory.

    The recorder never raises exceptions in the application: the first problem ends the recording,
    and one line in the log says why.
    """

    def __init__(
        self, directory: Path, limits: Limits, facts: Callable[[], Mapping[str, Any]] = dict
    ) -> None:
        self.directory = directory
        self.limits = limits
        self.active = False
        """Whether transactions that begin now are recorded."""
        self._facts = facts
        self._numbers = itertools.count(1)
        self._logs: dict[int, Log] = {}
        self._random = random.SystemRandom()
        self._ended = False
        self._begin()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._key = self._shared_key() if limits.anonymous else b""
            if not os.access(directory, os.W_OK):
                self.end("cannot create files there")
        except OSError as error:
            self.end(error.strerror or str(error))
        atexit.register(self.close)
        this = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _begin_in_child(this()))

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._file: FileIO | None = None
        self._size = 0
        self._look()

    def begin_in_child(self) -> None:
        """Begin a new file in a forked process; the parent process writes the events so far."""
        for log in self._logs.values():
            log.take()
        self._begin()
        if self._logs:
            self._ensure_thread()

    def log(self) -> Log | None:
        """Return a log for a new connection, or ``None`` if the connection is not recorded."""
        if self._ended or self._random.random() >= self.limits.sample:
            return None
        log = Log(next(self._numbers))
        with self._lock:
            try:
                self._ensure_thread()
            except RuntimeError as error:  # cannot start a thread
                self.end(str(error))
                return None
            self._logs[log.number] = log
        return log

    def end(self, reason: str) -> None:
        """Stop recording, and log why."""
        if not self._ended:
            self._ended, self.active = True, False
            logger.error("recording into %s ended: %s", self.directory, reason)

    def close(self) -> None:
        """Write the remaining events, and stop."""
        self._closing.set()
        self._write()
        self._ended, self.active = True, False
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
        atexit.unregister(self.close)

    def _ensure_thread(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._write_regularly, name="recording", daemon=True)
            thread.start()
            self._thread = thread

    def _write_regularly(self) -> None:
        # Continue after recording has ended, to discard the events of running transactions.
        while not self._closing.wait(INTERVAL):
            self._write()
            self._look()

    def _look(self) -> None:
        wanted = self.limits.while_exists
        try:
            self.active = not self._ended and (wanted is None or wanted.exists())
        except OSError:  # no permission to enter the file's directory
            self.active = False

    def _write(self) -> None:
        """Write a chunk of the events so far, if there are any."""
        with self._lock:
            try:
                segments = [(log.number, log.take()) for log in self._logs.values()]
                self._logs = {n: log for n, log in self._logs.items() if not log.closed}
                segments = [(number, fields) for number, fields in segments if fields]
                if segments and not self._ended:
                    self._append(encode(self._anonymized(segments)))
            except OSError as error:
                self.end(error.strerror or str(error))
            except Exception as error:  # noqa: BLE001
                self.end(f"{type(error).__name__}: {error}")

    def _append(self, chunk: bytes) -> None:
        """Write a complete chunk, or nothing."""
        if self._file is None:
            name = f"{time.time_ns()}-{os.getpid()}{SUFFIX}"
            self._file = FileIO(self.directory / name, "x")
            facts = {"pid": os.getpid(), "time": time.time_ns(), "clock": clock()}
            part = {"sample": self.limits.sample, "anonymous": self.limits.anonymous}
            chunk = header({**facts, **part, **self._facts()}) + chunk
        max_size = self.limits.max_size
        if max_size is not None and self._size + len(chunk) > max_size:
            self.end(f"max-size is reached ({max_size} bytes)")
            return
        rest = memoryview(chunk)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            self._file.truncate(self._size)
            raise
        self._size += len(chunk)

    def _shared_key(self) -> bytes:
        """Return the shared key of all processes that record into the directory."""
        path = self.directory / KEY
        with NamedTemporaryFile(dir=self.directory) as file:
            file.write(secrets.token_bytes(32))
            file.flush()
            # Another process sees the whole key or no key.
            with suppress(FileExistsError):
                os.link(file.name, path)
        return path.read_bytes()

    def _anonymized(self, segments: list[tuple[int, list[Any]]]) -> list[tuple[int, list[Any]]]:
        """Replace all OIDs but the root's, if the recording is anonymous."""
        if self._key:
            for _, fields in segments:
                fields[1::FIELDS] = map(self._pseudonym, fields[1::FIELDS])
        return segments

    def _pseudonym(self, oid: bytes) -> bytes:
        if oid == NONE:
            return oid
        return hashlib.blake2b(oid, key=self._key, digest_size=len(oid)).digest()


def _begin_in_child(recorder: Recorder | None) -> None:
    if recorder is not None:
        recorder.begin_in_child()
