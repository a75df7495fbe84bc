"""Real fork servers and workers: their work, and the clean-up after they end in any way."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from tests.integration.command import SOURCES
from tests.workers.place import Place, cause
from zodbshootout.client.preparation import Preparation
from zodbshootout.guardian import end_group
from zodbshootout.model.outcome import Failed, State
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    Parameters,
    Specification,
    Storage,
)
from zodbshootout.model.storage_facts import Sharing
from zodbshootout.scheduling.fork_servers import ForkServers
from zodbshootout.workers import coordinator
from zodbshootout.workers.coordinator import (
    ForkServer,
    Launcher,
    TimeLimit,
)
from zodbshootout.workers.measuring import Measure, Turns
from zodbshootout.workers.output_file import OutputFile

pytestmark = pytest.mark.servers


MEMORY = Specification(
    Storage("<zodb m>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"),
    "tpc",
    Parameters(CrewShape(1)),
)


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
                    worker.start("prepare_lap", [number])
                for worker in (second, first):
                    worker.wait()
                for worker in (second, first):
                    worker.call("take_lap", Turns())
                    worker.call("end_lap")
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


def test_a_contender_that_does_not_answer_is_named_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "SILENCE", 1.0)
    place.launcher = replace(place.launcher, working=TimeLimit(8.0, "--timeout"))
    with place.launcher.fork_server() as fork_server:
        for _ in range(2):
            with (
                place.measuring(fork_server, fault="hang", commit=6) as worker,
                pytest.raises(Failed),
            ):
                worker.attempt(20)
    (line,) = [line for line in place.relayed if "no answer" in line]
    assert line.endswith(": add: no answer for 1 s; waiting for at most 8 s (--timeout)")
    place.assert_tidy()


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
        fork_server = ForkServer(launcher, ours, process, OutputFile(tmp_path / "output"))

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
            fork_servers.of_generation(number, modules=modules)
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
        first = fork_servers.of_generation(0)
        (process,) = place.processes()
        process.kill()
        process.wait()
        second = fork_servers.of_generation(0)
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
        assert fork_servers.of_generation(0) is not second
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
