from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from zodbshootout.config.configuration import Source
from zodbshootout.contenders.relstorage import RelStorageLayer
from zodbshootout.perf import worker
from zodbshootout.perf.task import TASK_FILE, Action, Report, Subject, Task


def look(directory: Path, storage: str) -> Report:
    """Have a look at a contender as a worker does, in this process."""
    text = f"%import relstorage\n<zodb x>\n<relstorage>\n{storage}\n</relstorage>\n</zodb>\n"
    subject = Subject(Source(directory / "x.conf", text), {})
    Task(Action.LOOK, subject, "x").write(directory / TASK_FILE)
    runner: Any = None  # nothing is measured
    return worker._carry_out(runner, directory)


@pytest.mark.parametrize(
    ("corrections", "fact"), [((), ""), (("this",), "this"), (("this", "that"), "this; that")]
)
def test_corrections_are_among_the_facts(
    corrections: tuple[str, ...], fact: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RelStorageLayer, "corrections", lambda _: corrections)
    report = look(tmp_path, f"<sqlite3>\ndata-dir {tmp_path}\n</sqlite3>")
    assert (report.state, report.facts["corrections"]) == ("done", fact)


def test_a_failure_for_which_there_is_advice_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> None:
        raise OSError("(3780, \"constraint 'object_state_ibfk_1' is no good\")")

    monkeypatch.setattr(worker, "Database", refuse)
    cause = "OSError: (3780, \"constraint 'object_state_ibfk_1' is no good\")"
    assert look(tmp_path, f"<sqlite3>\ndata-dir {tmp_path}\n</sqlite3>").cause == cause
    assert look(tmp_path, "<mysql>\n</mysql>").cause == (
        f"{cause}; for this server write '%import zodbshootout.mysql' and <mysql-or-mariadb>"
    )
