"""The load that other processes put on the machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from zodbshootout.scheduling.machine_load import MachineLoad, load_now

BURN = "import time\nwhile time.process_time() < 0.3: pass"


def test_other_load_is_neither_idle_nor_ours_nor_stolen() -> None:
    before = MachineLoad(all=100.0, busy=50.0, steal=1.0, ours=10.0)
    after = MachineLoad(all=200.0, busy=120.0, steal=6.0, ours=35.0)
    assert after.since(before) == {"other_load": 0.4, "steal": 0.05}
    # The two counters are not read at the same instant.
    assert MachineLoad(200.0, 60.0, 1.0, 40.0).since(before)["other_load"] == 0.0
    assert before.since(before) == {}


@pytest.mark.slow
def test_our_processes_count_both_while_they_run_and_after_they_end() -> None:
    before = load_now()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    ended = load_now()
    assert ended.ours - before.ours > 0.25
    with subprocess.Popen(
        [sys.executable, "-c", f"{BURN}\nprint(flush=True)\ninput()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        child.stdout.readline()
        running = load_now()
        child.communicate(b"\n")
    assert running.ours - ended.ours > 0.25
    assert running.all > ended.all >= ended.busy > 0
