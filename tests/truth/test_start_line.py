"""Nobody starts before everybody is ready, and how far apart they started is told."""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

import pytest
import ZODB

from tests.fakes import parameters
from zodbshootout.benchmarks.benchmark import Benchmark
from zodbshootout.contenders.contender import Contender
from zodbshootout.data.tree import Purpose
from zodbshootout.engine.measurement import Measurement
from zodbshootout.engine.summary import summarize
from zodbshootout.model import Unit

CLIENTS = 20


class InMemory:
    """Opens a DB of its own every time."""

    name = "memory"

    def open(self) -> ZODB.DB:
        return ZODB.DB(None)


def noting(ready: Any) -> type[Benchmark]:
    """Return a benchmark whose clients take the longer to get ready the higher their number."""

    class Noting(Benchmark):
        name = "noting"
        title = "Noting"
        purpose = Purpose.READ

        def begin(self) -> None:
            time.sleep(0.005 * self.client.index)

        def run(self) -> None:
            time.sleep(0.001)

        def check(self) -> None:
            if not self.clocked and not ready[self.client.index]:
                ready[self.client.index] = time.perf_counter()

    return Noting


@pytest.mark.parametrize(
    ("unit", "shared"), [(Unit.PROCESS, False), (Unit.THREAD, True), (Unit.THREAD, False)]
)
def test_trap_5_no_client_of_20_starts_before_the_last_is_ready(unit: Unit, shared: bool) -> None:
    ready = multiprocessing.get_context("fork").Array("d", CLIENTS)
    of = parameters(size=CLIENTS, unit=unit, shared=shared, objects=2)
    contender = Contender("memory", InMemory(), {})
    with Measurement(noting(ready), contender, of).started() as measure:
        sample = measure(2)
    starts = [client.starts[0] for client in sample.clients]
    assert min(starts) >= max(ready[:]) > 0
    assert summarize([sample])["start_spread_s"] == max(starts) - min(starts) > 0
