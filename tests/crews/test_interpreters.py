"""Calls and crews in another Python, which here is another process of the same interpreter."""

from __future__ import annotations

import os
import pstats
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from zodbshootout.client import preparation
from zodbshootout.client.preparation import Preparation
from zodbshootout.client.protocol import Call
from zodbshootout.contenders.making import carry_to
from zodbshootout.crews import interpreters
from zodbshootout.crews.crew import Crew
from zodbshootout.crews.hosts import StartCrew
from zodbshootout.crews.interpreters import call_in, interpreter_crew, started
from zodbshootout.crews.logs import LogSettings
from zodbshootout.model.outcome import BadSection, Failed
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    Interpreter,
    Parameters,
    Specification,
    Storage,
)
from zodbshootout.model.storage_facts import StorageInfo

SECTION = "<zodb x>\n<filestorage>\npath $here/x.fs\n</filestorage>\n</zodb>\n"


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    modules = carry_to(tmp_path_factory.mktemp("elsewhere") / "modules")
    return Interpreter("old", sys.executable, str(modules))


@pytest.fixture
def storage(interpreter: Interpreter, tmp_path: Path) -> Storage:
    return Storage(SECTION, names={"here": str(tmp_path)}, interpreter=interpreter)


def specification(storage: Storage, benchmark: str, shape: CrewShape) -> Specification:
    return Specification(storage, benchmark, Parameters(shape, objects=10))


@pytest.fixture
def no_tasks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tasks fail in this process."""
    for name in preparation.TASKS:
        monkeypatch.delattr(preparation, name)


SHARED = CrewShape(3, ClientKind.THREAD, shared=True)


def call(interpreter: Interpreter, name: str, argument: object) -> Any:
    return call_in(interpreter, Call(name, (argument,)), LogSettings())


def new_children(known: set[psutil.Process]) -> set[psutil.Process]:
    """Return the children of this process that are not *known*.

    One may be known already: the tests of hosts leave multiprocessing's resource tracker running.
    """
    return set(psutil.Process().children()) - known


@contextmanager
def crew(interpreter: Interpreter, specified: Specification, **more: Any) -> Iterator[Crew]:
    call(interpreter, "prepare", Preparation(specified))
    client_kind = specified.parameters.crew.client_kind
    interpreter = replace(interpreter, gevent=client_kind is ClientKind.GREENLET)
    with interpreter_crew(interpreter, StartCrew(specified, **more), LogSettings()) as clients:
        yield clients


@pytest.mark.usefixtures("no_tasks_here")
def test_inspecting_a_storage_reports_the_python_that_was_used(
    interpreter: Interpreter, storage: Storage
) -> None:
    info = call(interpreter, "inspect", storage)
    assert isinstance(info, StorageInfo)
    assert info.storage_name == "FileStorage"
    assert info.python["python_executable"] == sys.executable


@pytest.mark.usefixtures("no_tasks_here")
def test_a_section_is_validated_in_the_other_python(
    interpreter: Interpreter, storage: Storage
) -> None:
    assert call(interpreter, "validate", storage) is None
    wrong = replace(storage, section=SECTION.replace("path", "paht"))
    flaw = call(interpreter, "validate", wrong)
    assert isinstance(flaw, BadSection)
    assert (flaw.line, "'paht' is not a known key" in flaw.message) == (3, True)


@pytest.mark.parametrize(
    "shape", [SHARED, CrewShape(1), CrewShape(1, ClientKind.GREENLET, shared=True)]
)
def test_iterations_shares_latencies_and_counts_of_the_other_python_add_up(
    shape: CrewShape, interpreter: Interpreter, storage: Storage
) -> None:
    with crew(interpreter, specification(storage, "add", shape)) as clients:
        clients.prepare(4)
        sample = clients.measure(4)
        clients.verify()
    assert sample.iterations == 4 * shape.size
    done = sample.iterations + sample.uncounted
    assert sample.iterations <= sum(sample.shares) <= done
    assert sum(sample.latencies.counts.values()) == sample.iterations
    assert sample.counts["stores"] == (10 + 1) * done  # the objects, and the mapping for them


def test_an_error_in_the_other_python_is_reported_with_its_traceback(
    interpreter: Interpreter, storage: Storage
) -> None:
    missing = replace(storage, section=SECTION.replace("path", "read-only true\npath"))
    with pytest.raises(Failed) as caught:
        call(interpreter, "inspect", missing)
    assert "No such file" in caught.value.failure.cause
    assert "Traceback" in caught.value.failure.detail


def test_a_killed_python_is_reported_as_a_crash(interpreter: Interpreter, storage: Storage) -> None:
    known = new_children(set())
    with (
        pytest.raises(Failed) as caught,
        crew(interpreter, specification(storage, "add", SHARED)) as clients,
    ):
        (process,) = new_children(known)
        os.kill(process.pid, signal.SIGKILL)
        clients.measure(4)
    failure = caught.value.failure
    assert failure.cause == "the Python of environment old was killed by SIGKILL"
    assert failure.crashed


def test_a_python_that_does_not_exist_cannot_be_started(storage: Storage) -> None:
    gone = Interpreter("gone", "/no/such/python", "/tmp")
    with pytest.raises(Failed, match="the Python of environment gone cannot be started"):
        call(gone, "inspect", storage)


def test_a_python_ends_once_it_is_no_longer_needed(interpreter: Interpreter) -> None:
    known = new_children(set())
    with started(interpreter, LogSettings()):
        assert len(new_children(known)) == 1
    assert new_children(known) == set()


class AnotherClock:
    def now(self) -> float:
        return 1.0

    def wait_until(self, instant: float) -> None:
        raise AssertionError(instant)


def test_a_python_with_a_different_clock_is_refused(
    interpreter: Interpreter, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreters, "SystemClock", AnotherClock)
    specified = specification(storage, "tpc", SHARED)
    with (
        pytest.raises(Failed, match="its clock is not the one that is read here"),
        interpreter_crew(interpreter, StartCrew(specified), LogSettings()),
    ):
        pass


def test_clients_in_the_other_python_are_profiled(
    interpreter: Interpreter, storage: Storage, tmp_path: Path
) -> None:
    shape = CrewShape(2, ClientKind.GREENLET, shared=True)
    with crew(interpreter, specification(storage, "add", shape), profiles=str(tmp_path)) as clients:
        clients.prepare(2)
        clients.measure(2)
    profile = pstats.Stats(str(tmp_path / "all.prof"))
    functions = {(file, function) for file, _, function in profile.stats}  # type: ignore[attr-defined]
    add = Path(interpreter.modules) / "zodbshootout" / "client" / "benchmarks" / "add.py"
    assert (str(add), "run") in functions
