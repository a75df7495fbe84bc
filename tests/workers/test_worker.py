"""The answers of a worker to its orders, in this process and with a crew of threads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

import pyperf
import pytest
from relstorage.adapters.sqlite.adapter import Sqlite3Adapter

from zodbshootout.client import preparation
from zodbshootout.client.preparation import Preparation
from zodbshootout.client.protocol import Call
from zodbshootout.crews import traffic
from zodbshootout.crews.logs import LogSettings, configure_logging
from zodbshootout.model.outcome import Failure, State, Unsupported
from zodbshootout.model.specification import (
    ClientKind,
    CrewShape,
    Parameters,
    Specification,
    Storage,
)
from zodbshootout.model.storage_facts import StorageInfo
from zodbshootout.workers import worker
from zodbshootout.workers.measuring import Measure, Slice, Turns

MEMORY = Storage("<zodb m>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n")


def specification(storage: Storage = MEMORY, benchmark: str = "add", **more: Any) -> Specification:
    shape = CrewShape(2, ClientKind.THREAD, shared=True)
    return Specification(storage, benchmark, Parameters(shape, objects=5, **more))


@contextmanager
def working(name: str, *arguments: object) -> Iterator[Connection]:
    """Run a worker in a thread, at the other end of a connection."""
    ours, theirs = Pipe()
    with ours, theirs:
        thread = threading.Thread(target=worker.work, args=[theirs, None])
        thread.start()
        ours.send(LogSettings())
        ours.send(Call(name, arguments))
        try:
            yield ours
        finally:
            thread.join(30)
            assert not thread.is_alive()


def answer(name: str, *arguments: object) -> Any:
    """Return the only answer to a call."""
    with working(name, *arguments) as connection:
        return connection.recv()


def sqlite(directory: Path) -> Storage:
    return Storage(
        f"%import relstorage\n<zodb x>\n<relstorage>\n<sqlite3>\ndata-dir {directory}\n"
        "</sqlite3>\n</relstorage>\n</zodb>\n"
    )


@pytest.mark.parametrize("corrections", [(), ("this",), ("this", "that")])
def test_inspecting_a_storage_returns_its_corrections(
    corrections: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sqlite3Adapter, "corrections", corrections, raising=False)
    info = answer("inspect", sqlite(tmp_path))
    assert isinstance(info, StorageInfo)
    assert info.corrections == corrections


def test_a_database_that_cannot_be_opened_is_a_failure_with_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: Any) -> None:
        raise OSError("it is not there")

    monkeypatch.setattr(preparation, "Database", refuse)
    failure = answer("inspect", MEMORY)
    assert isinstance(failure, Failure)
    assert (failure.cause, failure.state) == ("OSError: it is not there", State.FAILED)
    assert "Traceback" in failure.detail


class FakeDatabase:
    """A database that records the calls that it gets."""

    done: tuple[str, ...] = ()
    names_in_root: tuple[str, ...] = ()
    """The names in the root that zodbshootout has not created."""

    facts = StorageInfo()

    def __init__(self, storage: Storage) -> None: ...

    def __enter__(self) -> FakeDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self._note("closed")

    def _note(self, action: str) -> None:
        FakeDatabase.done = (*FakeDatabase.done, action)

    def zap(self) -> None:
        self._note("zapped")

    def pack(self) -> None:
        self._note("packed")

    def others(self) -> tuple[str, ...]:
        return self.names_in_root


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> type[FakeDatabase]:
    monkeypatch.setattr(FakeDatabase, "done", ())
    monkeypatch.setattr(preparation, "Database", FakeDatabase)
    monkeypatch.setattr(preparation, "fill", lambda of, _: of._note("filled"))
    monkeypatch.setattr(
        preparation, "populate", lambda of, dataset, _: of._note(f"{dataset.value}")
    )
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
    assert answer("prepare", Preparation(specification(), zap, pack)) is None
    assert database.done == done


@pytest.mark.parametrize(("has", "fails"), [(0, False), (5, False), (6, True)])
def test_of_several_sizes_none_is_measured_in_a_larger_database(
    has: int, fails: bool, tmp_path: Path
) -> None:
    storage = Storage(f"<zodb a>\n<filestorage>\npath {tmp_path}/a.fs\n</filestorage>\n</zodb>\n")

    def prepared(objects: int) -> Any:
        parameters = Parameters(CrewShape(1), objects=1, min_objects=objects, owner="a")
        order = Preparation(Specification(storage, "update", parameters), is_swept=True)
        return answer("prepare", order)

    assert prepared(has) is None
    failure = prepared(5)
    assert (failure is not None) == fails
    if fails:
        assert failure.cause.startswith("the database already has 6 objects from an earlier ")


@pytest.mark.slow
def test_the_progress_of_filling_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(preparation, "STEP_INTERVAL", 0.0)
    path = tmp_path / "a.fs"
    storage = Storage(f"<zodb a>\n<filestorage>\npath {path}\n</filestorage>\n</zodb>\n")
    parameters = Parameters(CrewShape(1), objects=1, min_objects=40_000, owner="a")
    preparation.prepare(Preparation(Specification(storage, "update", parameters)))
    assert capsys.readouterr().out.splitlines() == [
        "step: filling a: 20,000 of 40,000 objects",
        "step: filling a: 40,000 of 40,000 objects",
    ]


THEIRS = (
    "the root of the database contains 'app' and 1 more, which zodbshootout did not create; "
    "to let it write to this database nevertheless, add --may-write a"
)
MISSING = "the objects that the benchmark reads are not in the database"


@pytest.mark.parametrize(
    ("benchmark", "populated", "shaped", "how", "cause"),
    [
        ("add", True, {}, {}, THEIRS),
        ("cold", True, {}, {"pack": True}, THEIRS),
        ("cold", True, {"min_objects": 5}, {}, THEIRS),
        (
            "cold",
            False,
            {},
            {},
            f"{MISSING}; {THEIRS}",
        ),
        ("cold", True, {}, {}, None),
        ("add", True, {}, {"may_write": True}, None),
    ],
)
def test_a_database_with_foreign_data_is_written_to_only_if_allowed(
    benchmark: str,
    populated: bool,
    shaped: dict[str, Any],
    how: dict[str, Any],
    cause: str | None,
    database: type[FakeDatabase],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FakeDatabase, "names_in_root", ("app", "index"))
    monkeypatch.setattr(preparation, "is_populated", lambda *_: populated)
    parameters = Parameters(CrewShape(1), owner="a", **shaped)
    order = Preparation(Specification(Storage("a"), benchmark, parameters), **how)
    failure = answer("prepare", order)
    if cause is None:
        assert failure is None
    else:
        assert (failure.cause, failure.state) == (cause, State.FAILED)
    assert database.done == (("filled", "add", "closed") if how.get("may_write") else ("closed",))


def test_packing_is_unsupported_and_omitted_if_the_database_has_a_pack_flaw(
    database: type[FakeDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeDatabase, "facts", StorageInfo(pack_flaw="it loses its data"))
    failure = answer("prepare", Preparation(specification(), pack=True))
    assert (failure.cause, failure.state) == (
        "it loses its data; leave out --pack",
        State.UNSUPPORTED,
    )
    assert "packed" not in database.done


@pytest.mark.parametrize("name", ["nonsense", "_task", "fill"])
def test_a_worker_refuses_calls_other_than_its_tasks(name: str) -> None:
    assert answer(name, MEMORY).cause == f"ValueError: {name!r} cannot be called here"


def measured(*calls: Call, **more: Any) -> tuple[list[Any], pyperf.Benchmark]:
    """Have a worker measure in the main thread, since pyperf handles signals there."""
    task = Measure(specification(**more), {"contender": "m"})
    ours, theirs = Pipe()
    with ours, theirs:
        for call in calls:
            ours.send(call)
        text, _ = worker.measure(theirs, pyperf.Runner(), LogSettings(), task, ["--quiet"])
        answers = []
        while ours.poll():
            answers.append(ours.recv())
    return answers, pyperf.Benchmark.loads(text)


def begin(loops: int, values: int, warmups: int) -> Call:
    return Call("begin", (loops, values, warmups, 0.0))


def take_slices(*numbers: int) -> list[Call]:
    """Return the calls for laps of one slice."""
    return [
        call
        for number in numbers
        for call in (
            Call("prepare_lap", ([number],)), Call("take_lap", (Turns(),)), Call("end_lap"),
        )
    ]  # fmt: skip


@pytest.fixture
def _one_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pyperf allow another Runner in this process."""
    monkeypatch.setattr(pyperf.Runner, "_created", set())


@pytest.mark.usefixtures("_one_runner")
def test_the_stored_values_are_those_of_the_counted_slices() -> None:
    answers, run = measured(
        Call("attempt", (1,)), Call("attempt", (4,)), begin(3, values=2, warmups=1),
        *take_slices(0, 5, 6), Call("finish", (True,)),
    )  # fmt: skip
    ready, *tried, begun = answers[:4]
    slices = [taken for answer in answers[4:] if answer for taken in answer]
    assert (ready, begun, len(slices)) == (None, None, 3)
    assert all(isinstance(taken, Slice) for taken in [*tried, *slices])
    # Seconds of one iteration, although pyperf was given those of all three.
    assert list(run.get_values()) == pytest.approx([taken.value for taken in slices[1:]])
    metadata = run.get_metadata()
    assert metadata["loops"] == 3
    # None of this includes the warm-up.
    assert metadata["slices"] == "5 6"
    assert metadata["iterations"] == 2 * 2 * 3
    assert metadata["on_clock_s"] == pytest.approx(sum(taken.on_clock for taken in slices[1:]))
    assert len(metadata["slice_starts_s"].split()) == 2


@pytest.mark.usefixtures("_one_runner")
def test_a_lap_has_a_value_for_each_of_its_slices() -> None:
    answers, run = measured(
        begin(3, values=4, warmups=0),
        Call("prepare_lap", ([2, 3, 5],)), Call("take_lap", (Turns([0, 0, 0]),)), Call("end_lap"),
        *take_slices(7), Call("finish", (True,)),
    )  # fmt: skip
    laps = [answer for answer in answers if answer]
    assert [len(lap) for lap in laps] == [3, 1]
    slices = [taken for lap in laps for taken in lap]
    assert list(run.get_values()) == pytest.approx([taken.value for taken in slices])
    metadata = run.get_metadata()
    assert metadata["slices"] == "2 3 5 7"
    assert metadata["iterations"] == 4 * 2 * 3
    starts, ends = (
        [float(instant) for instant in metadata[key].split()]
        for key in ("slice_starts_s", "slice_ends_s")
    )
    assert [*starts, *ends] == sorted(starts) + sorted(ends)
    assert all(start < end for start, end in zip(starts, ends, strict=True))


@pytest.mark.usefixtures("_one_runner")
def test_a_worker_makes_runs_with_the_same_clients_until_the_last() -> None:
    first, last = ([begin(3, 2, 1), *take_slices(*numbers)] for numbers in ((0, 1, 2), (3, 4, 5)))
    answers, run = measured(*first, Call("finish", (False,)), *last, Call("finish", (True,)))
    ((text, latencies),) = [answer for answer in answers if isinstance(answer, tuple)]
    before = pyperf.Benchmark.loads(text)
    for made, slices in ((before, "1 2"), (run, "4 5")):
        metadata = made.get_metadata()
        assert (metadata["slices"], metadata["iterations"]) == (slices, 2 * 2 * 3)
        assert len(made.get_values()) == 2
    assert sum(latencies["latency"].counts.values()) == 2 * 2 * 3


@pytest.mark.usefixtures("_one_runner")
def test_metadata_known_before_a_run_are_stored_with_it() -> None:
    _, run = measured(begin(1, 1, 0), *take_slices(0), Call("finish", (True,)), benchmark="tpc")
    assert run.get_metadata()["contender"] == "m"


def test_a_worker_answers_with_the_failure_if_its_crew_cannot_be_set_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any) -> None:
        raise Unsupported("this one has none")

    monkeypatch.setattr(traffic, "plan_of", refuse)
    failure = answer("measure", Measure(specification(), {}), ())
    assert (failure.cause, failure.state) == ("this one has none", State.UNSUPPORTED)


def test_logging_is_configured_only_if_a_level_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(logging, "basicConfig", lambda **options: given.append(options["level"]))
    configure_logging(LogSettings())
    assert given == []
    configure_logging(LogSettings("INFO"))
    assert given == ["INFO"]


def raise_error(text: str) -> None:
    raise ValueError(text)


def test_secrets_are_masked_in_logged_messages_and_tracebacks(tmp_path: Path) -> None:
    target = tmp_path / "log"
    (tmp_path / "log.conf").write_text(
        f"<logger>\nname shot.secret\n<logfile>\npath {target}\nformat %(message)s\n"
        "</logfile>\n</logger>\n"
    )
    configure_logging(LogSettings(str(tmp_path / "log.conf"), ["ge heim"]))
    try:
        raise_error("ge heim")
    except ValueError:
        logging.getLogger("shot.secret").exception("connecting with %s", "ge heim")
    assert "connecting with ***\nTraceback" in target.read_text()
    assert "ge heim" not in target.read_text()
