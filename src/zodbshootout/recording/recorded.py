"""Read recorded workloads, transaction by transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from zodbshootout.recording.chunks import (
    BEGINS,
    FIELDS,
    FormatError,
    Kind,
    Segment,
    first_and_last,
    read_chunks,
    read_header,
)
from zodbshootout.recording.recorder import SUFFIX

_END = int(Kind.END)


@dataclass
class Transaction:
    """The events of a connection's transaction, including the polls just before it."""

    process: int
    """The index of the process's file in :attr:`Workload.files`."""
    connection: int
    events: list[tuple[int, bytes, int, bytes, int, int]] = field(default_factory=list)
    """For each event, the fields of an :class:`~zodbshootout.recording.chunks.Event`."""

    def is_done(self) -> bool:
        """Return whether the transaction did more than poll."""
        return bool(self.events) and self.events[-1][0] not in BEGINS


class WorkloadError(Exception):
    """A workload cannot be read; the message says which file and why."""


class Workload:
    """The files that processes recorded into a directory, or one of these files."""

    def __init__(self, path: Path) -> None:
        """Find the files and read their headers.

        :raises WorkloadError: if there is no workload, or a file is not a workload
        :raises OSError: if a file cannot be read
        """
        self.path = path
        self.files = [path]
        if path.is_dir():
            # A process that had no space for its first events leaves an empty file.
            files = sorted(path.glob(f"*{SUFFIX}"))
            self.files = [file for file in files if file.stat().st_size]
        if not self.files:
            raise WorkloadError(f"{path}: no workload was recorded into this directory")
        self.facts: list[dict[str, Any]] = []
        """The header of each file."""
        for file in self.files:
            with _opened(file) as (header, _):
                if not all(isinstance(header.get(key), int) for key in ("time", "clock")):
                    raise FormatError("damaged: its header has no time")
                self.facts.append(header)

    @property
    def size(self) -> int:
        """The size of all files in bytes."""
        return sum(file.stat().st_size for file in self.files)

    def transactions(self) -> Iterator[Transaction]:
        """Yield transactions, process by process; those of one connection are in order.

        Transactions that only polled are left out.

        :raises WorkloadError: if a file is cut off or damaged
        :raises OSError: if a file cannot be read
        """
        for process, path in enumerate(self.files):
            with _opened(path) as (_, file):
                yield from _transactions(process, read_chunks(file))

    def span(self) -> tuple[int, int]:
        """Return the workload's first and last instant, in nanoseconds since 1970.

        :raises WorkloadError: if a file is cut off or damaged
        :raises OSError: if a file cannot be read
        """
        starts, ends = [], []
        for process, path in enumerate(self.files):
            offset = self.offset(process)
            with _opened(path) as (_, file):
                for chunk in first_and_last(file):
                    starts += [fields[4] + offset for _, fields in chunk]
                    ends += [fields[-1] + offset for _, fields in chunk]
        return min(starts, default=0), max(ends, default=0)

    def offset(self, process: int) -> int:
        """Return the number to add to a process's instants to get nanoseconds since 1970."""
        facts = self.facts[process]
        return int(facts["time"]) - int(facts["clock"])


@contextmanager
def _opened(path: Path) -> Iterator[tuple[dict[str, Any], BinaryIO]]:
    """Open a file and read its header; errors name the file."""
    with path.open("rb") as file:
        try:
            yield read_header(file), file
        except FormatError as error:
            raise WorkloadError(f"{path}: {error}") from None


def _transactions(process: int, chunks: Iterator[Sequence[Segment]]) -> Iterator[Transaction]:
    """Divide the events of each connection into transactions."""
    pending: dict[int, Transaction] = {}
    for chunk in chunks:
        for connection, fields in chunk:
            transaction = pending.get(connection) or Transaction(process, connection)
            for event in zip(*[iter(fields)] * FIELDS):  # noqa: B905
                if event[0] in BEGINS and transaction.is_done():
                    yield transaction
                    transaction = Transaction(process, connection)
                transaction.events.append(event)
                if event[0] == _END:
                    yield transaction
                    transaction = Transaction(process, connection)
            pending[connection] = transaction
    yield from (transaction for transaction in pending.values() if transaction.is_done())
