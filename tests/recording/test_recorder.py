"""Writing recorded events, and failures to write them."""

from __future__ import annotations

import io
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.recording.recordings import connections, events_in, files_in
from zodbshootout.recording import recorder as recorder_module
from zodbshootout.recording.chunks import NONE, FormatError, Kind, read_chunks, read_header
from zodbshootout.recording.recorded import Workload, WorkloadError
from zodbshootout.recording.recorder import KEY, Limits, Log, Recorder

OID = b"\0" * 7 + b"\7"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "main.workload"


@pytest.fixture(autouse=True)
def _no_scheduled_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write events only if a test calls for it."""
    monkeypatch.setattr(recorder_module, "INTERVAL", 3600.0)


def add_event(log: Log | None, number: int = 1, oid: bytes = OID) -> None:
    assert log is not None
    log.fields.extend((int(Kind.LOAD), oid, number, NONE, 100, 200))


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_all_connections_are_in_one_file_with_the_facts(place: Path) -> None:
    recorder = Recorder(place, Limits(), lambda: {"objects": 12})
    first, second = recorder.log(), recorder.log()
    add_event(first, 1)
    add_event(second, 2)
    add_event(first, 3)
    recorder.close()
    (path,) = files_in(place)
    numbers = {c: [event.number for event in events] for c, events in connections(path).items()}
    assert numbers == {1: [1, 3], 2: [2]}
    with path.open("rb") as file:
        facts = read_header(file)
    assert (facts["objects"], facts["pid"], facts["sample"]) == (12, os.getpid(), 1.0)


def test_a_recorder_without_events_writes_no_file(place: Path) -> None:
    recorder = Recorder(place, Limits())
    recorder.log()
    recorder.close()
    assert files_in(place) == []


def test_the_logs_of_closed_connections_are_forgotten(place: Path) -> None:
    recorder = Recorder(place, Limits())
    log = recorder.log()
    add_event(log)
    assert log is not None
    log.closed = True
    recorder._write()
    assert recorder._logs == {}
    recorder.close()
    assert len(events_in(place)) == 1


def test_a_path_that_cannot_be_made_ends_the_recording_with_one_log_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    recorder = Recorder(tmp_path / "file" / "main.workload", Limits())
    assert not recorder.active
    assert recorder.log() is None
    recorder.close()
    (line,) = messages(caplog)
    assert line.endswith("ended: Not a directory")


class FullDisk(io.FileIO):
    """A file on a disk with room for the first *room* bytes."""

    room = 0

    def write(self, text: Any) -> int:
        if self.tell() >= self.room:
            raise OSError(28, "No space left on device")
        return super().write(text[: self.room - self.tell()])


def test_a_full_disk_ends_the_recording_after_the_last_whole_chunk(
    place: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "FileIO", FullDisk)
    recorder = Recorder(place, Limits())
    log = recorder.log()
    monkeypatch.setattr(FullDisk, "room", 10**6)
    add_event(log, 1)
    recorder._write()
    size = files_in(place)[0].stat().st_size
    monkeypatch.setattr(FullDisk, "room", size + 10)
    add_event(log, 2)
    recorder._write()
    assert not recorder.active
    add_event(log, 3)
    recorder.close()
    assert [event.number for event in events_in(place)] == [1]
    (line,) = messages(caplog)
    assert line.endswith("ended: No space left on device")


def test_the_size_of_a_file_is_limited(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(place, Limits(max_size=1000))
    log = recorder.log()
    for number in range(100):
        add_event(log, number)
        recorder._write()
    recorder.close()
    (path,) = files_in(place)
    assert 900 < path.stat().st_size <= 1000
    numbers = [event.number for event in events_in(place)]
    assert numbers == list(range(len(numbers)))
    assert messages(caplog)[0].endswith("ended: max-size is reached (1000 bytes)")


@pytest.mark.parametrize("room", ["max-size", "disk"])
def test_a_process_without_room_for_its_first_events_leaves_those_of_others_readable(
    place: Path, room: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for has_room in (False, True):
        monkeypatch.setattr(FullDisk, "room", 10**6 if has_room or room == "max-size" else 0)
        monkeypatch.setattr(recorder_module, "FileIO", FullDisk)
        recorder = Recorder(place, Limits(None if has_room or room == "disk" else 10))
        add_event(recorder.log(), int(has_room))
        recorder.close()
        if not has_room:
            with pytest.raises(WorkloadError, match="no workload was recorded into this directory"):
                Workload(place)
    (line,) = messages(caplog)
    assert "ended: " in line
    (transaction,) = Workload(place).transactions()
    assert [event[2] for event in transaction.events] == [1]


def test_an_error_in_the_recorder_ends_the_recording(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder(place, Limits())
    log = recorder.log()
    add_event(log, oid="no oid")  # type: ignore[arg-type]
    recorder._write()
    assert not recorder.active
    recorder.close()
    assert "ended: TypeError" in messages(caplog)[0]


def test_events_after_the_end_are_dropped(place: Path) -> None:
    recorder = Recorder(place, Limits())
    log = recorder.log()
    add_event(log)
    recorder.end("enough")
    add_event(log)
    recorder._write()
    assert log is not None
    assert log.fields == []
    recorder.close()
    assert files_in(place) == []


def test_nothing_is_recorded_if_no_thread_can_be_started(
    place: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    recorder = Recorder(place, Limits())
    assert recorder.log() is None
    assert not recorder.active
    recorder.close()
    assert messages(caplog)[0].endswith("ended: can't start new thread")


def test_a_sample_of_the_connections_is_recorded(place: Path) -> None:
    recorder = Recorder(place, Limits(sample=0.25))
    logs = [recorder.log() for _ in range(2000)]
    recorder.close()
    recorded = sum(log is not None for log in logs)
    assert 350 < recorded < 650  # beyond 7 standard deviations


def test_nothing_is_recorded_while_the_switch_file_is_missing(place: Path, tmp_path: Path) -> None:
    switch = tmp_path / "record-now"
    recorder = Recorder(place, Limits(while_exists=switch))
    assert not recorder.active
    switch.touch()
    recorder._look()
    assert recorder.active
    switch.unlink()
    recorder._look()
    assert not recorder.active
    recorder.close()


ANONYMOUS = """
import sys
from pathlib import Path
from zodbshootout.recording.chunks import NONE, Kind
from zodbshootout.recording.recorder import Limits, Recorder
recorder = Recorder(Path(sys.argv[1]), Limits(anonymous=True))
log = recorder.log()
for number, oid in ((1, bytes.fromhex(sys.argv[2])), (2, NONE)):
    log.fields.extend((int(Kind.LOAD), oid, number, NONE, 100, 200))
recorder.close()
"""


@pytest.mark.slow
def test_all_processes_that_record_a_workload_replace_oids_alike(place: Path) -> None:
    for _ in range(2):
        subprocess.run([sys.executable, "-c", ANONYMOUS, str(place), OID.hex()], check=True)
    first, root, second, _ = events_in(place)
    assert first.oid == second.oid != OID
    assert root.oid == NONE
    assert (place / KEY).stat().st_size == 32


def test_the_key_file_does_not_exist_before_it_has_its_whole_key(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = secrets.token_bytes

    def token_bytes(number: int) -> bytes:
        assert not (place / KEY).exists()
        return made(number)

    def link(whole: str, path: Path) -> None:
        assert Path(whole).stat().st_size == 32
        linking(whole, path)

    linking = os.link
    monkeypatch.setattr(secrets, "token_bytes", token_bytes)
    monkeypatch.setattr(os, "link", link)
    Recorder(place, Limits(anonymous=True)).close()
    assert (place / KEY).stat().st_size == 32


def test_a_forked_child_writes_its_own_file(place: Path) -> None:
    recorder = Recorder(place, Limits())
    log = recorder.log()
    add_event(log, 1)
    child = os.fork()
    if child == 0:
        try:
            add_event(log, 2)
            recorder.close()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    recorder.close()
    files = [connections(path) for path in files_in(place)]
    assert sorted([event.number for event in file[1]] for file in files) == [[1], [2]]


APPLICATION = """
import sys, time
from pathlib import Path
from ZODB.MappingStorage import MappingStorage
import ZODB, transaction
from zodbshootout.recording import record
db = ZODB.DB(record(MappingStorage(), sys.argv[1]))
number = 0
while True:
    with db.transaction() as connection:
        connection.root()["number"] = number
    number += 1
    print(number, flush=True)
    time.sleep(0.01)
"""


@pytest.fixture
def application(place: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", APPLICATION, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.mark.slow
def test_a_killed_process_leaves_whole_chunks_of_its_transactions(
    application: subprocess.Popen[str], place: Path
) -> None:
    assert application.stdout is not None
    sizes: set[int] = set()
    for _ in application.stdout:
        sizes.update(path.stat().st_size for path in files_in(place))
        if len(sizes) > 3:  # the file has grown by two chunks after its header
            break
    application.send_signal(signal.SIGKILL)
    application.wait()
    committed = [event for event in events_in(place) if event.kind == Kind.FINISH]
    size = files_in(place)[0].stat().st_size
    assert len(committed) > 10
    with files_in(place)[0].open("rb") as file:
        read_header(file)
        chunks = [sum(len(fields) for _, fields in chunk) for chunk in read_chunks(file)]
        assert file.tell() == size
    assert len(chunks) >= 2


@pytest.mark.slow
def test_remaining_events_are_written_when_the_interpreter_exits(place: Path) -> None:
    code = (
        "import sys, ZODB; from ZODB.MappingStorage import MappingStorage;"
        "from zodbshootout.recording import record;"
        "db = ZODB.DB(record(MappingStorage(), sys.argv[1])); db.open()"
    )
    subprocess.run([sys.executable, "-c", code, str(place)], check=True)
    assert any(event.kind == Kind.FINISH for event in events_in(place))


def test_a_foreign_file_in_the_directory_is_not_overwritten(place: Path) -> None:
    place.mkdir()
    (place / "notes.events").write_text("mine")
    recorder = Recorder(place, Limits())
    add_event(recorder.log())
    recorder.close()
    assert (place / "notes.events").read_text() == "mine"
    with pytest.raises(FormatError):
        events_in(place)
