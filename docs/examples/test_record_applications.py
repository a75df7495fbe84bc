from pathlib import Path

import pytest
import record_applications

from zodbshootout.recording.chunks import Kind
from zodbshootout.recording.description import describe
from zodbshootout.recording.recorded import Workload


def test_both_applications_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_applications, "REQUESTS", 30)
    monkeypatch.setattr(record_applications, "IMPORTED", 200)
    record_applications.main(tmp_path)
    sessions = describe(Workload(tmp_path / "sessions.workload"))
    assert len(sessions.connections) == record_applications.THREADS
    assert 0 < sessions.count(Kind.FINISH) < sessions.transactions
    imported = describe(Workload(tmp_path / "import.workload"))
    assert imported.count(Kind.FINISH) == 2
    assert imported.new_objects > 200
