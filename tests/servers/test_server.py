from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.servers.conftest import MakeServer
from zodbshootout.errors import UserError
from zodbshootout.guardian import Ending
from zodbshootout.servers import ServerFailed
from zodbshootout.servers import server as server_module
from zodbshootout.servers.installation import LOG, MARK, Account
from zodbshootout.servers.server import Server

LISTENING = (
    "import os, socket, sys, time; print('I am', os.getpid(), 'at', sys.argv[1], flush=True); "
    "s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); "
)
SERVING = f"{LISTENING}time.sleep(600)"
LOGGING_INTERRUPT = (
    "import signal; "
    "signal.signal(signal.SIGINT, lambda *_: (print('interrupted', flush=True), os._exit(0))); "
    f"{SERVING}"
)


class Scripted(Server):
    """A server whose process runs a small script."""

    own_settings = frozenset({"data_dir"})
    script = SERVING
    preparation = ""

    def prepare(self) -> None:
        if self.preparation:
            self.printed = self.run([sys.executable, "-c", self.preparation], "words\n")

    def command(self) -> Sequence[str]:
        return [sys.executable, "-c", self.script, str(self.port)]

    @property
    def process(self) -> psutil.Process:
        assert self._process is not None
        return psutil.Process(self._process.pid)


def scripted(make_server: MakeServer, settings: str = "", directory: str = "") -> Scripted:
    kept = f"directory {directory}\n" if directory else ""
    server = make_server(
        f"<postgresqlserver it>\n{kept}<settings>\n{settings}</settings>\n</postgresqlserver>\n",
        Scripted,
    )
    assert isinstance(server, Scripted)
    return server


def failure(server: Server) -> str:
    with pytest.raises(ServerFailed) as caught:
        server.start()
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix("server it ")


def running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_server_runs_from_start_to_stop(make_server: MakeServer) -> None:
    server = scripted(make_server)
    server.start()
    pid = server.process.pid
    assert server.is_ready()
    server.stop()
    assert not running(pid)
    assert not server.is_ready()


def test_a_server_that_does_not_run_can_be_stopped(make_server: MakeServer) -> None:
    server = scripted(make_server)
    server.stop()
    server.start()
    server.stop()
    server.stop()


@pytest.mark.slow
def test_a_server_that_was_halted_resumes_in_another_process_with_the_same_data(
    make_server: MakeServer,
) -> None:
    server = scripted(make_server)
    server.preparation = "import os; open(os.environ['TMPDIR'] + '/prepared', 'x')"
    server.start()
    before = server.process.pid
    server.halt()
    assert not running(before)
    server.resume()
    assert server.is_ready()
    assert server.process.pid != before


def test_a_server_that_ends_at_once_has_its_last_log_lines_quoted(make_server: MakeServer) -> None:
    server = scripted(make_server)
    server.script = "print('one\\n\\ntwo\\n three\\nfour\\nfive\\nsix'); raise SystemExit(0)"
    assert failure(server) == "ended at once: two / three / four / five / six"


def test_an_empty_log_is_reported(make_server: MakeServer) -> None:
    server = scripted(make_server)
    server.script = "pass"
    assert failure(server) == "ended at once: it logged nothing"


def test_errors_are_quoted_rather_than_other_lines(make_server: MakeServer) -> None:
    server = scripted(make_server)
    server.error_mark = "[ERROR]"  # type: ignore[misc]
    server.script = "print('ready\\n[ERROR] fire\\nsee also\\n[ERROR] bye\\nfarewell')"
    assert failure(server) == "ended at once: [ERROR] fire / [ERROR] bye"
    server.script = "print('farewell')"
    assert failure(server) == "ended at once: farewell"


@pytest.mark.slow
def test_only_log_lines_since_the_last_start_are_quoted(make_server: MakeServer) -> None:
    server = scripted(make_server)
    server.preparation = "print('prepared')"
    server.start()
    assert server.printed == "prepared\n"
    assert server.last_log_lines() == f"I am {server.process.pid} at {server.port}"
    server.script = "print('no more')"
    server.halt()
    with pytest.raises(ServerFailed) as caught:
        server.resume()
    assert str(caught.value) == "server it ended at once: no more"


def test_a_server_that_is_not_ready_in_time_fails_and_can_be_stopped(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "START_TIMEOUT", 1.0)
    server = scripted(make_server)
    server.script = "import time; print('wait for me', flush=True); time.sleep(600)"
    assert failure(server) == "was not ready within 1 s: wait for me"
    pid = server.process.pid
    assert running(pid)
    server.stop()
    assert not running(pid)


@pytest.mark.parametrize(
    ("kept", "end", "orderly"),
    [
        (False, Server.stop, False),
        (False, Server.halt, True),
        (True, Server.stop, True),
        (True, Server.halt, True),
    ],
)
def test_a_server_is_ended_in_an_orderly_way_if_its_data_are_needed(
    kept: bool,
    end: Callable[[Server], None],
    orderly: bool,
    make_server: MakeServer,
    tmp_path: Path,
) -> None:
    server = scripted(make_server, directory=str(tmp_path / "kept") if kept else "")
    server.orderly = Ending(signal.SIGINT, 10.0)  # type: ignore[misc]
    server.abrupt = Ending(signal.SIGKILL, 10.0)  # type: ignore[misc]
    server.script = LOGGING_INTERRUPT
    server.start()
    end(server)
    logged = (server.directory.path / LOG).read_text().splitlines()[1:]
    assert logged == (["interrupted"] if orderly else [])


def test_a_preparation_that_fails_has_its_last_log_lines_quoted(make_server: MakeServer) -> None:
    server = scripted(make_server)
    server.preparation = "print(f'cannot read {input()!r}'); raise SystemExit(3)"
    name = Path(sys.executable).name
    assert failure(server) == f"could not be prepared: {name} failed: cannot read 'words'"
    server.stop()


def test_a_preparation_reads_all_its_input_even_if_interrupted_at_its_start(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = scripted(make_server)
    server.preparation = "import sys; print('read', sys.stdin.read().split())"
    guardian = server.context.guardian
    begin = guardian.start
    begun = []

    def interrupted(*words: Any, **options: Any) -> None:
        begun.append(begin(*words, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(guardian, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        server.start()
    (process,) = begun
    assert process.wait(60) == 0
    assert server.last_log_lines() == "read ['words']"


def test_a_preparation_that_takes_too_long_is_ended(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "PREPARATION_TIMEOUT", 1.0)
    server = scripted(make_server)
    server.preparation = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    message = failure(server)
    name = Path(sys.executable).name
    start, _, pid = message.rpartition(" ")
    assert start == f"could not be prepared: {name} took longer than 1 s:"
    assert not running(int(pid))


def test_a_program_that_cannot_be_run_is_a_failure(make_server: MakeServer) -> None:
    server = scripted(make_server)
    server.command = lambda: ["/nowhere/server"]  # type: ignore[method-assign]
    assert failure(server).startswith("could not be started: ")
    assert "/nowhere/server" in failure(server)


def test_a_server_cannot_be_started_if_the_guardian_has_ended(make_server: MakeServer) -> None:
    server = scripted(make_server)
    server.context.guardian._process.kill()
    server.context.guardian._process.wait()
    assert failure(server) == (
        "could not be started: the process that cleans up after the run has ended too early"
    )


@pytest.mark.parametrize("name", ["data_dir", "data-dir", "data-d"])
def test_a_setting_that_the_run_sets_is_refused(name: str, make_server: MakeServer) -> None:
    with pytest.raises(UserError) as caught:
        scripted(make_server, f"{name} /elsewhere\n")
    assert str(caught.value).endswith(
        f"x.conf:3: server it: the run sets {name}; leave it out of <settings>"
    )


def test_a_data_directory_is_private_and_is_in_scratch_unless_it_is_kept(
    make_server: MakeServer, tmp_path: Path
) -> None:
    server = scripted(make_server)
    server.start()
    assert server.directory.path.parent == server.context.directory
    assert server.directory.path.stat().st_mode & 0o077 == 0
    kept = scripted(make_server, directory=str(tmp_path / "far" / "away"))
    kept.start()
    assert kept.directory.path == tmp_path / "far" / "away"
    assert kept.directory.path.stat().st_mode & 0o077 == 0


def test_a_kept_directory_is_used_again(make_server: MakeServer, tmp_path: Path) -> None:
    for _ in range(2):
        server = scripted(make_server, directory=str(tmp_path / "kept"))
        server.start()
        server.stop()
    assert (tmp_path / "kept" / LOG).read_text().count("I am") == 2


def test_an_empty_directory_can_be_kept(make_server: MakeServer, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    scripted(make_server, directory=str(tmp_path / "kept")).start()


@pytest.mark.parametrize("name", ["document", LOG])
def test_a_directory_with_other_files_is_left_alone(
    name: str, make_server: MakeServer, tmp_path: Path
) -> None:
    document = tmp_path / "mine" / name
    document.parent.mkdir()
    document.touch()
    server = scripted(make_server, directory=str(document.parent))
    server.preparation = "raise SystemExit('never run')"
    assert failure(server) == (
        f"cannot keep its data in {document.parent}: it contains files, but no {MARK}, so it is "
        "not a directory that such a server created; name an empty directory"
    )
    assert list(document.parent.iterdir()) == [document]


@pytest.mark.slow
def test_a_directory_is_for_one_server_at_a_time(make_server: MakeServer, tmp_path: Path) -> None:
    first, second = (scripted(make_server, directory=str(tmp_path / "kept")) for _ in range(2))
    first.start()
    log = (tmp_path / "kept" / LOG).read_text()
    message = f"cannot keep its data in {tmp_path / 'kept'}: another server is using it"
    assert failure(second) == message
    first.halt()
    assert failure(second) == message
    first.resume()
    first.stop()
    assert (tmp_path / "kept" / LOG).read_text().count("I am") == 2 * log.count("I am")
    second.start()


def test_a_server_has_a_temporary_directory_of_its_own(make_server: MakeServer) -> None:
    server = scripted(make_server)
    server.preparation = "import os; print(os.environ['TMPDIR'])"
    server.start()
    assert server.printed.strip() == str(server.directory.path / "tmp")


@pytest.mark.parametrize(("directory", "advice"), [("", "TMPDIR"), ("kept", "directory")])
def test_a_directory_that_the_user_may_not_enter_is_named(
    directory: str,
    advice: str,
    make_server: MakeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    somebody = Account("somebody", -1, -1)
    monkeypatch.setattr(server_module, "account_for", lambda *_: somebody)
    monkeypatch.setattr("os.chown", lambda *_: None)
    monkeypatch.setattr(Scripted, "system_accounts", ("somebody",))
    tmp_path.chmod(0o700)
    server = scripted(make_server, directory=directory and str(tmp_path / directory))
    message = failure(server)
    assert message.startswith("has to run as user somebody, who may not enter /")
    assert message.endswith(f"; choose another {advice}, or another user with run-as")


def test_the_end_of_a_server_is_reported_with_its_last_log_lines(make_server: MakeServer) -> None:
    server = scripted(make_server)
    assert server.how_ended() is None
    server.start()
    assert server.how_ended() is None
    server.process.kill()
    wait_for_end(server)
    ended = server.how_ended()
    assert ended is not None
    assert re.fullmatch(r"I am \d+ at \d+", ended.detail)
    assert ended.cause == f"was killed by SIGKILL: {ended.detail}"


def wait_for_end(server: Scripted) -> None:
    while running(server.process.pid):
        time.sleep(0.02)


def test_a_server_does_not_write_its_log_through_a_symbolic_link(
    make_server: MakeServer, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine\n")
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / MARK).touch()
    (kept / LOG).symlink_to(elsewhere)
    server = scripted(make_server, directory=str(kept))
    assert failure(server).startswith("could not be started: ")
    assert elsewhere.read_text() == "mine\n"


def test_a_server_that_has_ended_has_no_number_that_could_be_anothers(
    make_server: MakeServer,
) -> None:
    server = scripted(make_server)
    server.start()
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with stranger:
        process = server._process
        assert process is not None
        server.process.kill()
        process.wait()
        process.pid = stranger.pid
        assert server.pid is None
        server.kill()
        server.stop()
        assert stranger.poll() is None
        stranger.kill()
