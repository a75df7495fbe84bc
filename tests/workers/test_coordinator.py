"""Real fork servers and workers: their work, and the clean-up after they end in any way."""

from __future__ import annotations

import json
import os
import pstats
import re
import signal
import socket
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pyperf
import pytest
from hdrh.histogram import HdrHistogram
from ZODB.FileStorage import FileStorage

from tests.faulty import PRINTED
from tests.integration.command import SOURCES, TESTS
from zodbshootout.client.preparation import Preparation
from zodbshootout.client.protocol import Call
from zodbshootout.contenders.making import carry_to
from zodbshootout.crews.logs import LogSettings
from zodbshootout.guardian import Guardian, end_group
from zodbshootout.model.outcome import Failed, State
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    Interpreter,
    Parameters,
    Specification,
    Storage,
)
from zodbshootout.model.storage_facts import Sharing
from zodbshootout.scheduling.fork_servers import ForkServers
from zodbshootout.workers import coordinator
from zodbshootout.workers.coordinator import (
    MAX_RELAYED,
    PIECE,
    ForkServer,
    Launcher,
    Output,
    TimeLimit,
    Worker,
)
from zodbshootout.workers.measuring import Measure

pytestmark = pytest.mark.servers

MEMORY = Specification(
    Storage("<zodb m>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"),
    "tpc",
    Parameters(CrewShape(1)),
)


class Place:
    """A directory of workers and databases, and the lines relayed from workers."""

    def __init__(self, path: Path, guardian: Guardian) -> None:
        self.path = path
        self.guardian = guardian
        self.workers = path / "workers"
        self.workers.mkdir()
        self.relayed: list[str] = []
        self.others = {process.pid for process in psutil.Process().children(recursive=True)}
        """Processes that were running before, such as multiprocessing's resource tracker."""
        self.launcher = Launcher(
            directory=self.workers,
            guardian=guardian,
            environment={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{SOURCES}"},
            working=TimeLimit(600.0, "--timeout"),
            opening=TimeLimit(60.0, "--open-timeout"),
            options=["--quiet"],
            relay=self.relayed.append,
        )

    def storage(
        self, name: str = "x", *, fault: str = "", commit: int = 1000, shared: bool = False
    ) -> Storage:
        """Return a storage with a fault, or one that several processes may open."""
        if shared:
            inner = f"<sqlite3>\ndata-dir {self.path / name}\n</sqlite3>\n"
            section = f"<relstorage>\nkeep-history false\n{inner}</relstorage>\n"
            return Storage(f"%import relstorage\n<zodb {name}>\n{section}</zodb>\n")
        inner = f"<filestorage>\npath {self.path / name}.fs\n</filestorage>\n"
        if fault:
            inner = f"<faulty>\nfault {fault}\nbenchmark-commit {commit}\n{inner}</faulty>\n"
        return Storage(f"%import faulty\n<zodb {name}>\n{inner}</zodb>\n")

    def specification(self, benchmark: str = "add", *, fault: str = "", commit: int = 1000,
                      unit: ClientKind = ClientKind.PROCESS,
                      size: int = 1) -> Specification:  # fmt: skip
        shape = CrewShape(size, unit, shared=unit is not ClientKind.PROCESS)
        return Specification(
            self.storage(
                fault=fault, commit=commit, shared=size > 1 and unit is ClientKind.PROCESS
            ),
            benchmark,
            Parameters(shape, objects=5),
        )

    def prepared(self, fork_server: ForkServer, **how: Any) -> Specification:
        specification = self.specification(**how)
        fork_server.prepare(Preparation(specification))
        return specification

    def measured(self, fork_server: ForkServer, **how: Any) -> pyperf.Benchmark:
        """Return a run of a value with two iterations of each client."""
        with self.measuring(fork_server, **how) as worker:
            worker.begin(loops=2, values=1, warmups=0)
            worker.take_slice(0)
            worker.start("finish", True)
            return worker.finish()

    @contextmanager
    def measuring(
        self, fork_server: ForkServer, *, leaks: bool = False,
        profile: str | None = None, **how: Any,
    ) -> Iterator[Worker]:  # fmt: skip
        specification = self.prepared(fork_server, **how)
        metadata = {"contender": "x", "name": "x"}
        with fork_server.measure(Measure(specification, metadata, leaks, profile)) as worker:
            worker.wait()
            yield worker

    def objects(self) -> int:
        """Return how many objects are in the database."""
        with closing(FileStorage(str(self.path / "x.fs"), read_only=True)) as storage:
            return len(storage)

    def assert_tidy(self) -> None:
        """Check that nothing is left: no process, and no file of a worker."""
        assert list(self.workers.iterdir()) == []
        assert self.processes() == []

    def processes(self) -> list[psutil.Process]:
        """Return the descendants of this process, except the guardian and :attr:`others`."""
        return [
            process
            for process in psutil.Process().children(recursive=True)
            if is_at_work(process) and process.pid not in self.others
        ]

    def worker_group(self) -> list[int]:
        """Return the process ids of the only worker's group, the worker itself first."""
        by_group = groups(self.processes())
        (fork_server,) = [pid for pid in by_group if psutil.Process(pid).ppid() == os.getpid()]
        (group,) = [pid for pid in by_group if pid != fork_server]
        return sorted(by_group[group], key=lambda pid: pid != group)


def is_at_work(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def groups(processes: list[psutil.Process]) -> dict[int, list[int]]:
    """Return the ids of processes by their groups."""
    by_group: dict[int, list[int]] = {}
    for process in processes:
        by_group.setdefault(os.getpgid(process.pid), []).append(process.pid)
    return by_group


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Guardian() as guardian:
        yield Place(tmp_path, guardian)


def cause(failure: pytest.ExceptionInfo[Failed]) -> str:
    return failure.value.failure.cause


def test_a_fork_server_has_loaded_our_modules_before_it_forks_a_worker(place: Place) -> None:
    with place.launcher.fork_server() as fork_server:
        modules = fork_server.inspect(place.storage()).modules
    assert [name for name in modules if name.startswith("zodbshootout.")] == []


def test_inspecting_a_contender_returns_facts_or_a_failure(place: Place) -> None:
    with place.launcher.fork_server() as fork_server:
        info = fork_server.inspect(place.storage())
        assert info.sharing is Sharing.EXCLUSIVE
        assert info.storage_classes == ("ZODB.FileStorage.FileStorage.FileStorage",)
        memory = fork_server.inspect(
            Storage("<zodb m>\n<mappingstorage>\n</mappingstorage>\n</zodb>")
        )
        assert memory.sharing is Sharing.VOLATILE
        with pytest.raises(Failed) as failure:
            fork_server.inspect(Storage("<zodb x>\n<nonsense>\n</nonsense>\n</zodb>\n"))
        assert failure.value.failure.state is State.FAILED
        assert "nonsense" in cause(failure)
    place.assert_tidy()


def test_a_fork_server_fills_a_database_once_and_zaps_it_on_request(place: Place) -> None:
    with place.launcher.fork_server() as fork_server:
        place.prepared(fork_server, benchmark="cold")
        size = place.objects()
        assert size > 5
        place.prepared(fork_server, benchmark="cold")
        assert place.objects() == size
        fork_server.prepare(Preparation(place.specification("tpc"), zap=True))
        assert place.objects() == 1  # the root
    place.assert_tidy()


def test_a_worker_takes_slices_on_request_and_its_run_has_the_counted_ones(
    place: Place,
) -> None:
    with place.launcher.fork_server() as fork_server, place.measuring(fork_server) as worker:
        attempt = worker.attempt(2)
        assert attempt.value > 0
        worker.begin(loops=3, values=2, warmups=1)
        slices = [worker.take_slice(number) for number in (4, 7, 8)]
        worker.start("finish", True)
        run = worker.finish()
        assert run.get_values() == pytest.approx([taken.value for taken in slices[1:]])
        metadata = run.get_metadata()
        assert metadata["loops"] == 3
        assert metadata["slices"] == "7 8"
        assert metadata["iterations"] == 2 * 3
        assert metadata["contender"] == "x"
    place.assert_tidy()


def test_several_workers_of_a_fork_server_are_ready_at_once_and_take_turns(place: Place) -> None:
    other = Storage("<zodb m>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n")
    specification = replace(place.specification("tpc"), storage=other)
    with (
        place.launcher.fork_server() as fork_server,
        place.measuring(fork_server, benchmark="tpc") as first,
    ):
        with fork_server.measure(Measure(specification, {"contender": "m"})) as second:
            second.wait()
            workers = {os.getpgid(process.pid) for process in place.processes()}
            assert len(workers) == 3  # and the fork server
            for worker in (first, second):
                worker.attempt(1)
                worker.begin(loops=2, values=3, warmups=0)
            for number in range(3):
                for worker in (second, first):
                    worker.start("prepare_slice", number)
                for worker in (second, first):
                    worker.wait()
                for worker in (second, first):
                    worker.take_slice(number)
            second.start("finish", True)
            assert len(second.finish().get_values()) == 3
        first.start("finish", True)
        assert len(first.finish().get_values()) == 3
    place.assert_tidy()


def test_an_error_in_a_client_is_reported_with_its_traceback(place: Place) -> None:
    with (
        place.launcher.fork_server() as fork_server,
        place.measuring(fork_server, fault="raise", commit=6) as worker,
        pytest.raises(Failed) as failure,
    ):
        worker.attempt(20)
    assert cause(failure) == "StorageError: the disk is on fire"
    assert "Traceback" in failure.value.failure.detail
    place.assert_tidy()


def test_a_worker_that_cannot_be_set_up_reports_a_failure(place: Place) -> None:
    with (
        place.launcher.fork_server() as fork_server,
        pytest.raises(Failed) as failure,
        fork_server.measure(Measure(place.specification("cold"), {})) as worker,
    ):
        worker.wait()
        raise AssertionError("there is nothing to read")
    assert failure.value.failure.state is State.FAILED
    place.assert_tidy()


def test_a_killed_worker_is_reported_and_its_clients_are_ended(place: Place) -> None:
    with place.launcher.fork_server() as fork_server:
        with place.measuring(fork_server, size=2) as worker:
            leader, *clients = place.worker_group()
            assert len(clients) >= 2
            os.kill(leader, signal.SIGKILL)
            with pytest.raises(Failed) as failure:
                worker.attempt(1)
            assert cause(failure) == "the worker was killed by SIGKILL"
        assert [pid for pid in clients if psutil.pid_exists(pid)
                and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE] == []  # fmt: skip
        # The fork server keeps running.
        assert fork_server.inspect(place.storage()).sharing is Sharing.EXCLUSIVE
    place.assert_tidy()


def test_a_worker_that_exits_is_reported_with_its_last_output(place: Place) -> None:
    with (
        place.launcher.fork_server() as fork_server,
        place.measuring(
            fork_server, fault="exit", commit=6, unit=ClientKind.THREAD, size=2
        ) as worker,
        pytest.raises(Failed) as failure,
    ):
        worker.attempt(20)
    assert cause(failure) == "the worker ended with exit status 7: there is no more room"
    assert "there is no more room" in place.relayed
    place.assert_tidy()


def test_a_worker_killed_while_it_waits_does_not_affect_another(place: Place) -> None:
    specification = replace(
        place.specification("tpc"),
        storage=Storage("<zodb m>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"),
    )
    with (
        place.launcher.fork_server() as fork_server,
        place.measuring(fork_server, benchmark="tpc") as first,
    ):
        leader, *_ = place.worker_group()
        with fork_server.measure(Measure(specification, {"contender": "m"})) as second:
            second.wait()
            os.kill(leader, signal.SIGKILL)
            second.attempt(1)
            second.begin(loops=1, values=1, warmups=0)
            second.take_slice(0)
            second.start("finish", True)
            assert len(second.finish().get_values()) == 1
        with pytest.raises(Failed) as failure:
            first.attempt(1)
        assert cause(failure) == "the worker was killed by SIGKILL"
    place.assert_tidy()


def test_a_killed_client_fails_its_worker(place: Place) -> None:
    with (
        place.launcher.fork_server() as fork_server,
        place.measuring(fork_server, fault="kill", commit=6) as worker,
        pytest.raises(Failed) as failure,
    ):
        worker.attempt(20)
    assert "was killed by SIGKILL" in cause(failure)
    place.assert_tidy()


def test_a_killed_fork_server_fails_its_workers_and_leaves_nothing_behind(
    place: Place,
) -> None:
    with (
        place.launcher.fork_server() as fork_server,
        place.measuring(fork_server, size=2) as worker,
    ):
        (fork_server_pid,) = [x.pid for x in place.processes() if x.ppid() == os.getpid()]
        group = place.worker_group()
        os.kill(fork_server_pid, signal.SIGKILL)
        with pytest.raises(Failed) as failure:
            worker.attempt(1)
        assert cause(failure) == "the process that starts workers was killed by SIGKILL"
        with pytest.raises(Failed):
            fork_server.inspect(place.storage())
    assert [pid for pid in group if psutil.pid_exists(pid)
            and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE] == []  # fmt: skip
    place.assert_tidy()


def test_a_worker_that_exceeds_its_time_limit_is_ended(place: Place) -> None:
    place.launcher = replace(place.launcher, working=TimeLimit(3.0, "--timeout"))
    with place.launcher.fork_server() as fork_server:
        with (
            place.measuring(fork_server, fault="hang", commit=6) as worker,
            pytest.raises(Failed) as failure,
        ):
            worker.attempt(20)
        assert cause(failure) == "not done within its time limit of 3 s (--timeout)"
    place.assert_tidy()


def test_only_the_first_part_of_endless_worker_output_is_relayed(place: Place) -> None:
    place.launcher = replace(place.launcher, opening=TimeLimit(6.0, "--open-timeout"))
    section = place.storage(fault="print").section.replace("\nfault", "\nduring open\nfault")
    tracemalloc.start()
    try:
        with place.launcher.fork_server() as fork_server, pytest.raises(Failed) as failure:
            fork_server.inspect(Storage(section))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert cause(failure) == "not done within its time limit of 6 s (--open-timeout)"
    *lines, last = place.relayed
    assert set(lines) == {"nobody has asked for this"}
    shown = re.fullmatch(
        r"a worker has printed at least ([\d,]+) bytes; only the first ([\d,]+) are shown",
        last,
    )
    assert shown is not None
    printed, relayed = (int(number.replace(",", "")) for number in shown.groups())
    assert coordinator.MAX_OUTPUT < printed <= PRINTED + 2 * PIECE
    assert sum(len(line) + 1 for line in lines) == relayed <= MAX_RELAYED + PIECE
    assert peak < 8 * MAX_RELAYED
    place.assert_tidy()


def test_the_file_of_endless_output_is_bounded_while_another_worker_is_waited_for(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "CHECK_INTERVAL", 0.02)
    place.launcher = replace(place.launcher, opening=TimeLimit(6.0, "--open-timeout"))
    section = place.storage(fault="print").section.replace("\nfault", "\nduring open\nfault")
    with place.launcher.fork_server() as fork_server:
        call = Call("inspect", (Storage(section),))
        with fork_server._worker(call, place.launcher.opening) as printing:
            hanging = place.storage("y", fault="hang").section
            hanging = hanging.replace("\nfault", "\nduring open\nfault")
            with pytest.raises(Failed, match="not done within its time limit"):
                fork_server.inspect(Storage(hanging))
            left = printing.output.path.stat().st_size
    assert left <= coordinator.MAX_OUTPUT < PRINTED
    assert "a worker has printed at least " in place.relayed[-1]
    place.assert_tidy()


def test_the_first_and_the_last_lines_of_a_long_output_are_kept(tmp_path: Path) -> None:
    relayed: list[str] = []
    output = Output(tmp_path / "output", relayed.append)
    lines = [f"line {number:08}" for number in range(coordinator.MAX_OUTPUT // 5)]
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


def test_an_abandoned_worker_is_ended_at_once(place: Place) -> None:
    with place.launcher.fork_server() as fork_server, place.measuring(fork_server) as worker:
        group = place.worker_group()
        worker.abandon()
        assert [pid for pid in group if psutil.pid_exists(pid)
                and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE] == []  # fmt: skip
        with pytest.raises(Failed):
            worker.attempt(1)
    place.assert_tidy()


def test_the_process_group_of_an_ended_worker_is_not_signalled(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    signalled: list[int] = []

    def noting(group: int, **how: Any) -> None:
        signalled.append(group)
        end_group(group, **how)

    monkeypatch.setattr("zodbshootout.workers.coordinator.end_group", noting)
    with place.launcher.fork_server() as fork_server:
        with place.measuring(fork_server, size=2) as worker:
            os.kill(worker.pid, signal.SIGKILL)
            with pytest.raises(Failed):
                worker.attempt(1)
        assert worker.pid not in signalled
        with place.measuring(fork_server, size=2) as worker:
            worker.abandon()
        assert signalled.count(worker.pid) == 1
    place.assert_tidy()


def test_the_process_id_of_a_worker_can_be_reused_by_a_later_one(tmp_path: Path) -> None:
    released: list[int] = []
    guardian: Any = SimpleNamespace(watch_group=lambda _: None, release_group=released.append)
    limit = TimeLimit(600.0, "--timeout")
    launcher = Launcher(tmp_path, guardian, environment={}, working=limit, opening=limit)
    ours, theirs = socket.socketpair()
    process: Any = None
    pid = 2**22 + 1  # higher than any that Linux assigns
    with ours, theirs:
        fork_server = ForkServer(launcher, ours, process, Output(tmp_path / "output"))

        def send(**message: int) -> None:
            theirs.sendall(json.dumps(message).encode() + b"\n")

        for exit_code in (0, 7):
            send(started=pid)
            with fork_server.measure(Measure(MEMORY, {})) as worker:
                assert fork_server.exit_code(worker, 0.0) is None
                send(ended=pid, exit_code=exit_code)
                assert fork_server.exit_code(worker, 5.0) == exit_code
    assert released == [pid, pid]


def test_an_interrupt_leaves_no_process_and_no_file(place: Place) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        place.launcher.fork_server() as fork_server,
        place.measuring(fork_server, size=2) as worker,
    ):
        worker.attempt(1)
        raise KeyboardInterrupt
    place.assert_tidy()


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
    output = Output(tmp_path / "output", relayed.append)
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


def test_a_worker_writes_its_profile_to_the_requested_path(place: Place) -> None:
    directory = place.path / "profiles"
    directory.mkdir()
    with place.launcher.fork_server() as fork_server:
        place.measured(fork_server, profile=str(directory / "x-0.5-add"))
    assert {path.name for path in directory.iterdir()} == {"x-0.5-add.prof", "x-0.5-add.txt"}
    place.assert_tidy()


def test_no_worker_can_be_started_without_a_directory_for_its_output(place: Place) -> None:
    with place.launcher.fork_server() as fork_server:
        moved = place.workers.rename(place.path / "moved")
        specification = place.specification()
        with pytest.raises(Failed, match="cannot start a worker: "):
            fork_server.prepare(Preparation(specification))
        with (
            pytest.raises(Failed, match="cannot start a worker: "),
            fork_server.measure(Measure(specification, {})),
        ):
            pass
        moved.rename(place.workers)
    place.assert_tidy()


def test_no_fork_server_can_be_started_if_its_python_does_not_exist(place: Place) -> None:
    launcher = replace(place.launcher, python=str(place.path / "no-python"))
    with pytest.raises(Failed, match="cannot start a worker: "), launcher.fork_server():
        raise AssertionError("there is no such Python")
    place.assert_tidy()


def test_all_that_is_done_in_a_round_shares_a_fork_server_which_imports_a_module_once(
    place: Place,
) -> None:
    (place.path / "imported.py").write_text(
        f"import os, pathlib\n"
        f"pathlib.Path({str(place.path)!r}, f'{{os.getpid()}}.imported').write_text('now')\n"
    )
    variables = {**place.launcher.environment, "PYTHONPATH": f"{place.path}{os.pathsep}{SOURCES}"}
    with ForkServers(replace(place.launcher, environment=variables)) as fork_servers:
        servers = [
            fork_servers.for_round(number, modules=modules)
            for number, modules in ((0, ()), (0, ["imported", "missing"]), (0, ["imported"]),
                                    (1, ["imported"]), (1, []))
        ]  # fmt: skip
    assert servers[0] is servers[1] is servers[2] is not servers[3] is servers[4]
    assert len(list(place.path.glob("*.imported"))) == 2
    place.assert_tidy()


def test_a_fork_server_that_has_ended_or_does_not_answer_is_replaced(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ForkServers(place.launcher) as fork_servers:
        first = fork_servers.for_round(0)
        (process,) = place.processes()
        process.kill()
        process.wait()
        second = fork_servers.for_round(0)
        assert second is not first
        (process,) = place.processes()
        process.suspend()
        monkeypatch.setattr("zodbshootout.workers.coordinator.START_TIMEOUT", 0.1)
        monkeypatch.setattr("zodbshootout.workers.coordinator.END_TIMEOUT", 0.1)
        with pytest.raises(Failed):
            second.inspect(place.storage())
        orders: list[object] = []
        monkeypatch.setattr("socket.send_fds", lambda *order: orders.append(order))
        with pytest.raises(Failed):
            second.inspect(place.storage())
        assert orders == []  # its late answer would be taken for that to another order
        monkeypatch.undo()
        assert fork_servers.for_round(0) is not second
    place.assert_tidy()


def test_a_fork_server_that_ends_at_once_is_reported_with_its_last_output(place: Place) -> None:
    python = place.path / "python"
    python.write_text("#!/bin/sh\necho not today\nexit 7\n")
    python.chmod(0o755)
    launcher = replace(place.launcher, python=str(python))
    with launcher.fork_server() as fork_server, pytest.raises(Failed) as failure:
        fork_server.inspect(place.storage())
    assert "ended with exit status 7: not today" in cause(failure)
    place.assert_tidy()


@pytest.mark.skipif(sys.platform != "linux", reason="affinity is Linux's")
def test_workers_run_on_the_cpus_that_they_are_given(place: Place) -> None:
    cpu = min(os.sched_getaffinity(0))
    place.launcher = replace(place.launcher, affinity=str(cpu))
    with place.launcher.fork_server() as fork_server, place.measuring(fork_server, size=2):
        for pid in place.worker_group():
            assert os.sched_getaffinity(pid) == {cpu}
    place.assert_tidy()


def test_greenlets_are_clients_of_a_fork_server_that_gevent_has_patched(place: Place) -> None:
    place.launcher = replace(place.launcher, gevent=True)
    with place.launcher.fork_server() as fork_server:
        info = fork_server.inspect(place.storage("s", shared=True))
        assert info.driver == "gevent sqlite3"
        with place.measuring(fork_server, unit=ClientKind.GREENLET, size=2) as worker:
            worker.attempt(1)
            worker.begin(loops=2, values=1, warmups=0)
            worker.take_slice(0)
            worker.start("finish", True)
            assert worker.finish().get_metadata()["iterations"] == 2 * 2
        with place.measuring(
            fork_server, fault="kill", commit=8, unit=ClientKind.GREENLET, size=2
        ) as worker:
            with pytest.raises(Failed) as failure:
                worker.attempt(20)
            assert cause(failure) == "the worker was killed by SIGKILL"
    place.assert_tidy()


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    """Another Python, which is the same one with other modules."""
    modules = carry_to(tmp_path_factory.mktemp("elsewhere") / "modules")
    return Interpreter("old", sys.executable, f"{modules}{os.pathsep}{TESTS}")


def test_another_python_inspects_with_its_own_modules(place: Place, there: Interpreter) -> None:
    wrong = Storage(place.storage().section.replace("path", "paht"))
    with place.launcher.fork_server(there) as fork_server:
        info = fork_server.inspect(place.storage())
        assert (info.storage_name, info.python["python_executable"]) == (
            "FileStorage", sys.executable,
        )  # fmt: skip
        with pytest.raises(Failed, match="'paht' is not a known key") as failure:
            fork_server.inspect(wrong)
        assert failure.value.failure.section_line == 4
        with pytest.raises(Failed) as failure:
            fork_server.inspect(Storage("%import missing\n<zodb x>\n</zodb>\n"))
        assert str(Path(there.modules.partition(os.pathsep)[0])) in failure.value.failure.detail
    place.assert_tidy()


@pytest.mark.parametrize(
    ("unit", "size"),
    [(ClientKind.PROCESS, 2), (ClientKind.THREAD, 2), (ClientKind.GREENLET, 2)],
)
def test_another_python_has_crews_of_all_kinds(
    unit: ClientKind, size: int, place: Place, there: Interpreter
) -> None:
    there = replace(there, gevent=unit is ClientKind.GREENLET)
    with place.launcher.fork_server(there) as fork_server:
        run = place.measured(fork_server, unit=unit, size=size)
    metadata = run.get_metadata()
    assert metadata["iterations"] == 2 * size
    done = metadata["iterations"] + metadata["iterations_uncounted"]
    assert metadata["stores"] == (5 + 1) * done  # the objects, and the mapping for them
    recorded = HdrHistogram.decode(metadata["latency_histogram"])
    assert recorded.get_total_count() == 2 * size
    place.assert_tidy()


def test_profiles_and_hooks_work_in_another_python(place: Place, there: Interpreter) -> None:
    launcher = replace(place.launcher, options=["--quiet", "--hook=_test_hook"])
    with launcher.fork_server(there) as fork_server:
        run = place.measured(fork_server, profile=str(place.path / "x"))
    assert run.get_metadata()["hooks"] == "_test_hook"
    profile = pstats.Stats(str(place.path / "x.prof"))
    functions = {(file, function) for file, _, function in profile.stats}  # type: ignore[attr-defined]
    modules = Path(there.modules.partition(os.pathsep)[0])
    add = modules / "zodbshootout" / "client" / "benchmarks" / "add.py"
    assert (str(add), "run") in functions
    place.assert_tidy()


def test_a_hook_that_another_python_does_not_have_is_not_supported(
    place: Place, there: Interpreter
) -> None:
    launcher = replace(place.launcher, options=["--quiet", "--hook=missing"])
    with launcher.fork_server(there) as fork_server, pytest.raises(Failed) as failure:
        place.measured(fork_server)
    assert failure.value.failure.state is State.UNSUPPORTED
    assert cause(failure) == "its environment does not have the hook of --hook"
    place.assert_tidy()


@pytest.mark.parametrize("sees_ours", [True, False])
def test_another_python_gets_no_paths_of_modules_for_this_one(
    sees_ours: bool, place: Place, there: Interpreter
) -> None:
    modules, _, _ = there.modules.partition(os.pathsep)  # without the package of the section
    python = replace(there, modules=modules, sees_ours=sees_ours)
    lacks = nullcontext() if sees_ours else pytest.raises(Failed, match="could not load package")
    with place.launcher.fork_server(python) as fork_server, lacks:
        fork_server.inspect(place.storage(fault="raise"))
    place.assert_tidy()


def test_the_environment_of_a_python_that_fails_is_named(place: Place, there: Interpreter) -> None:
    gone = replace(there, executable="/no/such/python")
    with (
        pytest.raises(Failed, match="the Python of environment old cannot be started: "),
        place.launcher.fork_server(gone),
    ):
        raise AssertionError("there is no such Python")
    (place.path / "zodbshootout.py").write_text("raise SystemExit('no')")
    ending = replace(there, modules=str(place.path))
    with place.launcher.fork_server(ending) as fork_server, pytest.raises(Failed) as failure:
        fork_server.inspect(place.storage())
    assert cause(failure) == "the Python of environment old ended with exit status 1: no"
    with (
        place.launcher.fork_server(there) as fork_server,
        place.measuring(fork_server) as worker,
    ):
        (pid,) = [process.pid for process in place.processes() if process.ppid() == os.getpid()]
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(Failed) as failure:
            worker.attempt(1)
    assert cause(failure) == "the Python of environment old was killed by SIGKILL"
    assert failure.value.failure.crashed
    place.assert_tidy()


def test_a_round_has_a_fork_server_for_each_python(place: Place, there: Interpreter) -> None:
    with ForkServers(place.launcher) as fork_servers:
        ours, theirs = fork_servers.for_round(0), fork_servers.for_round(0, there)
        assert ours is not theirs
        assert fork_servers.for_round(0) is ours
        assert fork_servers.for_round(0, there) is theirs
        assert len(place.processes()) == 2
        assert fork_servers.for_round(1, there) is not theirs
        assert len(place.processes()) == 1
    place.assert_tidy()


def test_a_run_can_be_interrupted_while_a_worker_is_at_work(place: Place) -> None:
    interrupt = [threading.get_ident(), signal.SIGINT]
    timer = threading.Timer(1.0, signal.pthread_kill, interrupt)
    with (
        pytest.raises(KeyboardInterrupt),
        place.launcher.fork_server() as fork_server,
        place.measuring(fork_server, fault="hang", commit=6) as worker,
    ):
        timer.start()
        worker.attempt(20)
    place.assert_tidy()
    timer.join()
