"""The output of real workers, which is relayed within bounds."""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faulty import PRINTED
from tests.workers.place import Place, cause
from zodbshootout.client.protocol import Call
from zodbshootout.crews.logs import LogSettings
from zodbshootout.model.outcome import Failed
from zodbshootout.model.specification import (
    ClientKind,
    Storage,
)
from zodbshootout.workers import coordinator
from zodbshootout.workers.coordinator import TimeLimit
from zodbshootout.workers.output_file import MAX_OUTPUT, MAX_RELAYED, PIECE, OutputFile

pytestmark = pytest.mark.servers


def test_only_the_first_part_of_endless_worker_output_is_relayed(place: Place) -> None:
    place.launcher = replace(place.launcher, opening=TimeLimit(6.0))
    section = place.storage(fault="print").section.replace("\nfault", "\nduring open\nfault")
    tracemalloc.start()
    try:
        with place.launcher.fork_server() as fork_server, pytest.raises(Failed) as failure:
            fork_server.inspect(Storage(section))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert cause(failure) == "not done within its time limit of 6 s"
    *lines, last = place.relayed
    assert set(lines) == {"nobody has asked for this"}
    shown = re.fullmatch(
        r"a worker has printed at least ([\d,]+) bytes; only the first ([\d,]+) are shown",
        last,
    )
    assert shown is not None
    printed, relayed = (int(number.replace(",", "")) for number in shown.groups())
    assert MAX_OUTPUT < printed <= PRINTED + 2 * PIECE
    assert sum(len(line) + 1 for line in lines) == relayed <= MAX_RELAYED + PIECE
    assert peak < 8 * MAX_RELAYED
    place.assert_tidy()


def test_the_file_of_endless_output_is_bounded_while_another_worker_is_waited_for(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "CHECK_INTERVAL", 0.02)
    place.launcher = replace(place.launcher, opening=TimeLimit(6.0))
    section = place.storage(fault="print").section.replace("\nfault", "\nduring open\nfault")
    with place.launcher.fork_server() as fork_server:
        call = Call("inspect", (Storage(section),))
        with fork_server._worker(call, place.launcher.opening) as printing:
            hanging = place.storage("y", fault="hang").section
            hanging = hanging.replace("\nfault", "\nduring open\nfault")
            with pytest.raises(Failed, match="not done within its time limit"):
                fork_server.inspect(Storage(hanging))
            left = printing.output.path.stat().st_size
    assert left <= MAX_OUTPUT < PRINTED
    assert "a worker has printed at least " in place.relayed[-1]
    place.assert_tidy()


def test_the_first_and_the_last_lines_of_a_long_output_are_kept(tmp_path: Path) -> None:
    relayed: list[str] = []
    output = OutputFile(tmp_path / "output", relayed.append)
    lines = [f"line {number:08}" for number in range(MAX_OUTPUT // 5)]
    with output.path.open("ab", buffering=0) as file:
        half = len(lines) // 2
        file.write("".join(f"{line}\n" for line in lines[:half]).encode())
        output.limit()
        assert output.path.stat().st_size == 0
        assert output.last_lines() == lines[half - 5 : half]
        for line in lines[half : half + 3]:
            file.write(f"{line}\n".encode())
        assert output.last_lines() == lines[half - 2 : half + 3]
        file.write("".join(f"{line}\n" for line in lines[half + 3 :]).encode())
        output.limit()
        output.limit()
        output.relay()
        assert output.path.stat().st_size == 0
        assert output.last_lines() == lines[-5:]
        output.close()
    *first, note = relayed
    assert first == lines[: len(first)]
    shown = sum(len(line) + 1 for line in first)
    assert MAX_RELAYED <= shown <= MAX_RELAYED + PIECE
    assert note == (
        f"a worker has printed at least {14 * len(lines):,} bytes; only the first {shown:,} are "
        "shown"
    )


def test_worker_output_is_relayed_line_by_line(place: Place) -> None:
    with (
        place.launcher.fork_server() as fork_server,
        place.measuring(fork_server, benchmark="tpc", leaks=True, unit=ClientKind.THREAD) as worker,
    ):
        worker.attempt(1)
        worker.begin(loops=1, values=2, warmups=0)
        assert place.relayed == []
        worker.take_slice(0)
        lines = list(place.relayed)
        assert lines
        worker.take_slice(1)
        assert len(place.relayed) > len(lines)
        worker.start("finish", True)
        worker.finish()
    assert sum(line.startswith("leaks: x: tpc, value 2") for line in place.relayed) > 0
    place.assert_tidy()


def test_an_incomplete_last_line_of_a_worker_is_relayed_at_its_end(tmp_path: Path) -> None:
    relayed: list[str] = []
    output = OutputFile(tmp_path / "output", relayed.append)
    output.path.write_text("complete\nincomp")
    output.relay()
    assert relayed == ["complete"]
    output.path.write_text("complete\nincomplete")
    output.close()
    assert relayed == ["complete", "incomplete"]


def test_log_records_of_a_worker_are_relayed(place: Place) -> None:
    place.launcher = replace(place.launcher, logging=LogSettings("DEBUG"))
    with place.launcher.fork_server() as fork_server:
        place.prepared(fork_server)
    assert any(" DEBUG [" in line for line in place.relayed)
    place.assert_tidy()
