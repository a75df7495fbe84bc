"""What a worker answers to what it is told, in this process; its crew is made of threads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyperf
import pytest

from zodbshootout.client import tasks
from zodbshootout.client.masking import Mask
from zodbshootout.client.outcome import Failure, State, Unsupported
from zodbshootout.client.specification import (
    ClientKind,
    CrewShape,
    Parameters,
    Specification,
    Storage,
)
from zodbshootout.client.storage_info import StorageInfo
from zodbshootout.client.storages.relstorage import RelStorageType
from zodbshootout.client.tasks import InspectStorage, Prepare
from zodbshootout.crews.interpreters import LogSettings
from zodbshootout.crews.logs import configure_logging
from zodbshootout.workers import worker
from zodbshootout.workers.task import (
    Assignment,
    Begin,
    Done,
    Finish,
    Measure,
    Slice,
    TakeSlice,
    Task,
    Try,
)

MEMORY = Storage("<zodb m>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n")


def specification(storage: Storage = MEMORY, benchmark: str = "add", **more: Any) -> Specification:
    shape = CrewShape(2, ClientKind.THREAD, shared=True)
    return Specification(storage, benchmark, Parameters(shape, objects=5, **more))


@contextmanager
def working(task: Task) -> Iterator[Connection]:
    """Have a worker in a thread, at the other end of a connection."""
    ours, theirs = Pipe()
    with ours, theirs:
        thread = threading.Thread(target=worker.work, args=[theirs, None])
        thread.start()
        ours.send(Assignment(task, options=["--quiet"]))
        try:
            yield ours
        finally:
            thread.join(30)
            assert not thread.is_alive()


def answer(task: Task) -> Any:
    """Return the only answer to a task."""
    with working(task) as connection:
        return connection.recv()


def sqlite(directory: Path) -> Storage:
    return Storage(
        f"%import relstorage\n<zodb x>\n<relstorage>\n<sqlite3>\ndata-dir {directory}\n"
        "</sqlite3>\n</relstorage>\n</zodb>\n"
    )


@pytest.mark.parametrize("corrections", [(), ("this",), ("this", "that")])
def test_corrections_are_among_the_facts(
    corrections: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RelStorageType, "corrections", lambda _: corrections)
    info = answer(InspectStorage(sqlite(tmp_path)))
    assert isinstance(info, StorageInfo)
    assert info.corrections == corrections


def test_what_cannot_be_opened_is_a_failure_with_its_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: Any) -> None:
        raise OSError("it is not there")

    monkeypatch.setattr(tasks, "Database", refuse)
    failure = answer(InspectStorage(MEMORY))
    assert isinstance(failure, Failure)
    assert (failure.cause, failure.state) == ("OSError: it is not there", State.FAILED)
    assert "Traceback" in failure.detail


class FakeDatabase:
    """Takes notes of what is done to it."""

    done: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    """What is in the root that somebody else has put there."""

    def __init__(self, storage: Storage) -> None:
        self.flaw: str | None = None

    def __enter__(self) -> FakeDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self._note("closed")

    def _note(self, what: str) -> None:
        FakeDatabase.done = (*FakeDatabase.done, what)

    def zap(self) -> None:
        self._note("zapped")

    def pack(self) -> None:
        self._note("packed")

    def pack_flaw(self) -> str | None:
        return self.flaw

    def others(self) -> tuple[str, ...]:
        return self.found


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> type[FakeDatabase]:
    monkeypatch.setattr(FakeDatabase, "done", ())
    monkeypatch.setattr(tasks, "Database", FakeDatabase)
    monkeypatch.setattr(tasks, "fill", lambda of, _: of._note("filled"))
    monkeypatch.setattr(tasks, "populate", lambda of, dataset, _: of._note(f"{dataset.value}"))
    return FakeDatabase


@pytest.mark.parametrize(
    ("zap", "pack", "done"),
    [
        (False, False, ("filled", "add", "closed")),
        (True, False, ("zapped", "filled", "add", "closed")),
        (True, True, ("zapped", "filled", "packed", "add", "closed")),
    ],
)
def test_a_database_is_zapped_filled_and_packed_before_objects_are_written(
    zap: bool, pack: bool, done: tuple[str, ...], database: type[FakeDatabase]
) -> None:
    assert answer(Prepare(specification(), zap, pack)) is None
    assert database.done == done


THEIRS = (
    "there is 'app' and 1 more in the root of the database, which zodbshootout has not put there; "
    "to have it write there, too, add --may-write a"
)


@pytest.mark.parametrize(
    ("benchmark", "populated", "shaped", "how", "cause"),
    [
        ("add", True, {}, {}, THEIRS),
        ("cold", True, {}, {"pack": True}, THEIRS),
        ("cold", True, {"min_objects": 5}, {}, THEIRS),
        ("cold", False, {}, {}, f"the objects that it reads are not in the database; {THEIRS}"),
        ("cold", True, {}, {}, None),
        ("add", True, {}, {"may_write": True}, None),
    ],
)
def test_what_holds_data_of_others_is_not_written_to(
    benchmark: str,
    populated: bool,
    shaped: dict[str, Any],
    how: dict[str, Any],
    cause: str | None,
    database: type[FakeDatabase],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FakeDatabase, "found", ("app", "index"))
    monkeypatch.setattr(tasks, "is_populated", lambda *_: populated)
    parameters = Parameters(CrewShape(1), owner="a", **shaped)
    task = Prepare(Specification(Storage("a"), benchmark, parameters), **how)
    found = answer(task)
    if cause is None:
        assert found is None
    else:
        assert (found.cause, found.state) == (cause, State.FAILED)
    assert database.done == (("filled", "add", "closed") if how.get("may_write") else ("closed",))


def test_what_cannot_be_packed_is_not_supported(
    database: type[FakeDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeDatabase, "pack_flaw", lambda _: "it loses its data")
    failure = answer(Prepare(specification(), pack=True))
    assert (failure.cause, failure.state) == (
        "it loses its data; leave out --pack",
        State.UNSUPPORTED,
    )
    assert "packed" not in database.done


def test_a_worker_does_not_know_every_task() -> None:
    unknown: Any = SimpleNamespace(storage=MEMORY)
    assert "nobody knows what to do about" in answer(unknown).cause


class Ordered:
    """Orders, and notes of what is answered to them."""

    def __init__(self, *orders: object) -> None:
        self.orders = list(orders)
        self.answers: list[Any] = []

    def answer(self, answer: object) -> None:
        self.answers.append(answer)

    def next(self) -> object:
        return self.orders.pop(0)


def measured(tmp_path: Path, *orders: object, **more: Any) -> tuple[Ordered, pyperf.Benchmark]:
    """Have a worker measure, in the main thread, as pyperf handles signals there."""
    ordered: Any = Ordered(*orders)
    file = tmp_path / "run.json"
    task = Measure(specification(**more), {"contender": "m"}, file)
    runner_with = partial(worker._started, pyperf.Runner(), ["--quiet"])
    worker._carry_out(task, ordered, LogSettings(), runner_with)
    return ordered, pyperf.Benchmark.load(str(file))


@pytest.fixture
def _one_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pyperf allow another Runner in this process."""
    monkeypatch.setattr(pyperf.Runner, "_created", set())


@pytest.mark.usefixtures("_one_runner")
def test_the_stored_values_are_what_the_samples_say(tmp_path: Path) -> None:
    ordered, run = measured(
        tmp_path, Try(1), Try(4), Begin(loops=3, values=2, warmups=1),
        TakeSlice(0), TakeSlice(5), TakeSlice(6), Finish(),
    )  # fmt: skip
    ready, *tried, begun = ordered.answers[:4]
    slices = ordered.answers[4:7]
    assert (ready, begun, ordered.answers[7:]) == (Done(), Done(), [Done()])
    assert all(isinstance(each, Slice) for each in [*tried, *slices])
    # Seconds for each iteration, where pyperf was given those of all three.
    assert list(run.get_values()) == pytest.approx([each.value for each in slices[1:]])
    metadata = run.get_metadata()
    assert metadata["loops"] == 3
    # The warm-up is in none of it.
    assert metadata["slices"] == "5 6"
    assert metadata["iterations"] == 2 * 2 * 3
    assert metadata["on_clock_s"] == pytest.approx(sum(each.on_clock for each in slices[1:]))
    assert len(metadata["slice_starts_s"].split()) == 2


@pytest.mark.usefixtures("_one_runner")
def test_what_is_known_of_a_run_beforehand_is_in_its_metadata(tmp_path: Path) -> None:
    _, run = measured(tmp_path, Begin(1, 1, 0), TakeSlice(0), Finish(), benchmark="tpc")
    assert run.get_metadata()["contender"] == "m"


def test_a_crew_that_cannot_be_set_up_answers_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise Unsupported("this one has none")

    monkeypatch.setattr(worker, "plan_of", refuse)
    failure = answer(Measure(specification(), {}, Path("run.json")))
    assert (failure.cause, failure.state) == ("this one has none", State.UNSUPPORTED)


def test_a_level_is_where_logging_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(logging, "basicConfig", lambda **options: given.append(options["level"]))
    configure_logging(None, Mask())
    assert given == []
    configure_logging("INFO", Mask())
    assert given == ["INFO"]


def raise_that(text: str) -> None:
    raise ValueError(text)


def test_what_is_secret_is_in_no_log(tmp_path: Path) -> None:
    target = tmp_path / "log"
    (tmp_path / "log.conf").write_text(
        f"<logger>\nname shot.secret\n<logfile>\npath {target}\nformat %(message)s\n"
        "</logfile>\n</logger>\n"
    )
    configure_logging(str(tmp_path / "log.conf"), Mask(["ge heim"]))
    try:
        raise_that("ge heim")
    except ValueError:
        logging.getLogger("shot.secret").exception("connecting with %s", "ge heim")
    assert "connecting with ***\nTraceback" in target.read_text()
    assert "ge heim" not in target.read_text()
