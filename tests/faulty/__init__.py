"""Storages that fail in the middle of a benchmark, or leak: for the configurations of tests."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from ZODB.config import BaseConfig
from ZODB.POSException import StorageError


def _raise() -> None:
    raise StorageError("the disk is on fire")


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _exit() -> None:
    sys.stdout.write("there is no more room\n")
    sys.stdout.flush()
    os._exit(7)


def _hang() -> None:
    time.sleep(3600)


class Leaked:
    """What a storage with that fault keeps of every commit."""


leaked: list[Leaked] = []


def _leak() -> None:
    leaked.append(Leaked())


FAULTS = {"raise": _raise, "kill": _kill, "exit": _exit, "hang": _hang, "leak": _leak}
LASTING = {"leak"}
"""The faults of every commit, and not only of the one that is due."""


class FaultySection(BaseConfig):  # type: ignore[misc]
    def open(self) -> Any:
        storage = self.config.base.open()
        fault = FAULTS[self.config.fault]
        due = self.config.benchmark_commit
        commits = 0
        vote = storage.tpc_vote

        def tpc_vote(transaction: Any) -> Any:
            nonlocal commits
            commits += 1
            if commits == due or self.config.fault in LASTING:
                fault()
            return vote(transaction)

        storage.tpc_vote = tpc_vote
        return storage
