"""Fork servers and workers of another Python."""

from __future__ import annotations

import os
import pstats
import signal
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from tests.integration.command import TESTS
from tests.workers.place import Place, cause
from zodbshootout.contenders.making import carry_to
from zodbshootout.model.outcome import Failed, State
from zodbshootout.model.specification import (
    ClientKind,
    Interpreter,
    Storage,
)
from zodbshootout.scheduling.fork_servers import ForkServers

pytestmark = pytest.mark.servers


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
        ours, theirs = fork_servers.of_generation(0), fork_servers.of_generation(0, there)
        assert ours is not theirs
        assert fork_servers.of_generation(0) is ours
        assert fork_servers.of_generation(0, there) is theirs
        assert len(place.processes()) == 2
        assert fork_servers.of_generation(1, there) is not theirs
        assert (
            fork_servers.of_generation(2) is not ours
        )  # workers of generation 1 may still be in use
        assert len(place.processes()) == 2
    place.assert_tidy()
