"""``zodbshootout workload``."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest
from persistent.mapping import PersistentMapping
from ZODB import DB
from ZODB.MappingStorage import MappingStorage

from tests.commands import outcome
from zodbshootout.cli.parser import parse
from zodbshootout.errors import UserError
from zodbshootout.recording import record


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "main.workload"
    db = DB(record(MappingStorage(), path))
    for number in range(3):
        with db.transaction() as connection:
            connection.root()[number] = PersistentMapping()
    db.cacheMinimize()
    with db.transaction() as connection:
        assert len(connection.root()) == 3
    db.close()
    return path


def run(*words: object) -> tuple[int, str, str]:
    return outcome("workload", *words)


def test_a_workload_is_described(recorded: Path) -> None:
    status, out, err = run(recorded)
    assert (status, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "main.workload" in lines
    for line in (
        "commits 4",
        "stores 7",
        "new objects 4",
        "connections 1",
        "storage MappingStorage",
    ):
        assert any(printed.startswith(line) for printed in lines), out


def test_the_figures_are_the_same_in_all_formats(recorded: Path) -> None:
    _, out, _ = run(recorded, "--format", "csv")
    rows = {row["figure"]: row["value"] for row in csv.DictReader(io.StringIO(out))}
    _, out, _ = run(recorded, "--format", "json")
    objects = {row["figure"]: row["value"] for row in json.loads(out)}
    assert {name: str(value) for name, value in objects.items()} == rows
    assert objects["commits"] == 4
    assert objects["stores of a transaction, max"] == 2
    _, out, _ = run(recorded, "--format", "markdown")
    assert "| commits | 4 |" in out


def test_several_workloads_are_described_one_after_the_other(recorded: Path) -> None:
    (file,) = recorded.glob("*.events")
    status, out, _ = run(recorded, file, "--format", "csv")
    assert status == 0
    assert len({row["workload"] for row in csv.DictReader(io.StringIO(out))}) == 2
    _, out, _ = run(recorded, file)
    assert out.count("Time in the storage") == 2


@pytest.mark.slow
def test_a_page_has_the_tables_and_the_charts(recorded: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    status, out, _ = run(recorded, "-o", page)
    assert (status, out) == (0, f"Report: {page}\n")
    text = page.read_text(encoding="utf-8")
    for word in ("Loads of the hottest objects", "Working set", "Time in the storage"):
        assert word in text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"FS21 is no workload", "this is not a recorded workload"),
        (b"zodb-workload 9\n{}\n", "this workload has version 9 of the format"),
        (b"zodb-workload 1\n{", "cut off in its header"),
        (b"zodb-workload 1\n{}\n", "damaged: its header has no time"),
        (b'zodb-workload 1\n{"time": 1, "clock": 1}\nWLCH', "cut off after byte"),
    ],
)
def test_an_unreadable_workload_is_reported_in_one_line(
    tmp_path: Path, text: bytes, reason: str
) -> None:
    path = tmp_path / "x.events"
    path.write_bytes(text)
    status, out, err = run(path)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert f"{path}: {reason}" in err


def test_a_missing_file_and_an_empty_directory_are_errors(tmp_path: Path) -> None:
    status, _, err = run(tmp_path / "missing")
    assert status == 2
    assert "missing" in err
    status, _, err = run(tmp_path)
    assert status == 2
    assert "no workload was recorded into this directory" in err


def test_a_page_that_cannot_be_written_is_named(recorded: Path, tmp_path: Path) -> None:
    page = tmp_path / "gone" / "page.html"
    status, _, err = run(recorded, "-o", page)
    reason = f"-o: cannot write {page}: No such file or directory"
    assert (status, err) == (2, f"zodbshootout: {reason}\n")


def test_an_output_does_not_overwrite_the_input(recorded: Path) -> None:
    (file,) = recorded.glob("*.events")
    status, _, err = run(file, "-o", file)
    assert status == 2
    assert "name another file" in err


def test_a_workload_is_made_and_described_and_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "x.workload"
    status, out, err = run(
        "make",
        "-o",
        path,
        "--preset",
        "sessions",
        "--transactions",
        "200",
        "--loads",
        "uniform:1-3",
    )
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"Workload: {path}",
        "Next:",
        f"  zodbshootout workload {path}",
        f"  zodbshootout replay --workload {path}",
    ]
    _, out, _ = run(path, "--format", "json")
    figures = {row["figure"]: row["value"] for row in json.loads(out)}
    assert figures["transactions"] == 200
    assert figures["loads of a transaction, max"] == 4  # and a counter
    assert parse(["x.conf", "--workload", str(path)]).benchmarks == ["replay"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--loads", "normal:3"], "argument --loads: 'normal:3': 'normal' is not uniform, geo"),
        (["--writes", "110%"], "argument --writes: '110%' is not a percentage from 0% to 100%"),
        (["--hot", "zipf:x"], "argument --hot: 'zipf:x': 'x' is not a number from 0 to 4"),
        (["--rate", "0"], "argument --rate: '0' is not a number of transactions a second"),
        (["--preset", "web"], "argument --preset: invalid choice: 'web'"),
        (["--lods", "3"], "unknown option --lods; did you mean --loads?"),
    ],
)
def test_an_invalid_mixture_is_refused_in_one_line(
    words: list[str], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.workload"
    status, out, err = run("make", "-o", path, *words)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert message in err
    assert not path.exists()


def test_an_existing_workload_is_not_overwritten(recorded: Path, tmp_path: Path) -> None:
    status, _, err = run("make", "-o", recorded)
    reason = "not a regular file; name another one"
    assert (status, err) == (2, f"zodbshootout: {recorded}: {reason}\n")
    path = tmp_path / "x.workload"
    path.write_bytes(b"old")
    status, _, err = run("make", "-o", path)
    assert (status, err) == (2, f"zodbshootout: -o: {path} exists; name another file\n")
    assert path.read_bytes() == b"old"


def test_a_workload_can_be_made_through_a_link_or_for_a_pipe(tmp_path: Path) -> None:
    path, link, pipe = (tmp_path / name for name in ("x.workload", "link", "pipe"))
    link.symlink_to(path)
    assert run("make", "-o", link, "--transactions", "9")[0] == 0
    assert link.is_symlink()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("make", "-o", pipe, "--transactions", "9") == (0, "", "")
        assert os.read(reader, 2**16) == path.read_bytes()
    finally:
        os.close(reader)


def test_a_workload_that_cannot_be_written_is_reported_in_one_line(tmp_path: Path) -> None:
    status, _, err = run("make", "-o", tmp_path / "missing" / "x.workload")
    assert status == 2
    assert len(err.splitlines()) == 1
    assert "No such file or directory" in err


def test_a_replay_needs_a_workload_that_can_be_read(recorded: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"replay: add --workload PATH, a recorded workload; how to"
    ):
        parse(["x.conf", "replay"])
    with pytest.raises(UserError, match=r"no such file: missing; .*: zodbshootout sample"):
        parse(["x.conf", "--workload", "missing"])
    (tmp_path / "x.events").write_bytes(b"FS21")
    with pytest.raises(
        UserError, match=r"--workload: .*x\.events: this is not a recorded workload"
    ):
        parse(["x.conf", "--workload", str(tmp_path)])
    with_others = ["x.conf", "add", "--workload", str(recorded)]
    assert parse(with_others).benchmarks == ["add", "replay"]
    assert parse([*with_others, "-add"]).benchmarks == ["replay"]
    assert "replay" in parse([*with_others, "all"]).benchmarks
