"""Any input leads to a plan, a table, or one line with the error, and to the right exit status.

``pytest tests/test_generated_input.py --full`` tries 10,000 command lines, 2,000 configurations and
2,000 result files.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import instances
from tests.commands import outcome
from tests.generated import examples
from tests.instances import AROUND_SECRETS, SECRET, VARIABLES, placed
from tests.reports.at_a_rate import result as rated
from tests.reports.replayed import result as replayed
from tests.reports.results import EVERYTHING, with_worker_metadata
from tests.watching import watched
from zodbshootout.cli.parser import run_parser
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.config.sample_files import samples
from zodbshootout.errors import ALL_MEASURED, BAD_USAGE, SLOWDOWN
from zodbshootout.results.files import ResultFiles


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unopened: None) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.conf").write_text(
        "<zodb a>\n<filestorage>\npath $scratch/a.fs\n</filestorage>\n</zodb>\n"
    )
    (tmp_path / "empty.conf").write_text("")
    (tmp_path / "binary.conf").write_bytes(b"\xff\xfe\x00\x01")
    (tmp_path / "directory").mkdir()
    ResultFiles(tmp_path / "there.json").write(
        [with_worker_metadata(result) for result in [*EVERYTHING, rated("fs", 20), replayed("fs")]]
    )
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


NOTES = ("are one database", "1 client instead of")
"""Parts of the lines that are printed even without an error."""


def check_outcome(words: list[str]) -> None:
    """Check that a command that measures nothing succeeds or prints its error in one line."""
    status, out, err = outcome(*words)
    assert status in {ALL_MEASURED, BAD_USAGE, SLOWDOWN}, err
    assert "Traceback" not in out + err
    if status == BAD_USAGE:
        lines = err.splitlines()
        assert lines[-1].startswith("zodbshootout: ")
        assert len(lines[-1]) > len("zodbshootout: ")
        assert all(any(note in line for note in NOTES) for line in lines[:-1])


# No system passes on an argument with a NUL in it.
NOISE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NUMBERS = st.sampled_from(
    ["0", "1", "2", "-1", "1.5", "nan", "inf", "1e999", "1,2", "1,,2", ",", "9" * 30, "0x10", "2%"]
)
NAMES = st.sampled_from(
    ["a", "A", "b", "force", "x.conf", "empty.conf", "binary.conf", "directory", "there.json",
     "nowhere.json", "nowhere/a.json", ".", "/", "", "file:///a.fs", "file://", "zeo://h:1",
     "memory://", "other://x", "demo:(memory://)/(memory://)", "all", "DEBUG", "info", "unique",
     "IO", "0-1", "true", "no", "a" * 300, *benchmarks()]
)  # fmt: skip
VALUES = NUMBERS | NAMES | NOISE


# --python runs the program that it names.
OPTIONS = st.sampled_from([name for name in run_parser().option_names if name != "--python"])
MISSPELT = OPTIONS.flatmap(
    lambda option: st.integers(0, len(option)).map(lambda at: option[:at] + "x" + option[at:])
)
EXCLUSIONS = st.sampled_from(list(benchmarks())).map(lambda name: f"-{name}")
OPTION_AND_VALUE = st.tuples(OPTIONS, VALUES).map(list) | st.tuples(OPTIONS, VALUES).map(
    lambda pair: ["=".join(pair)]
)
PARTS = OPTION_AND_VALUE | (OPTIONS | MISSPELT | EXCLUSIONS | VALUES).map(lambda word: [word])
LINES = st.lists(PARTS, max_size=6).map(lambda parts: [word for part in parts for word in part])


@pytest.mark.slow
@examples(60, 10_000)
@given(LINES)
def test_any_command_line_is_listed_or_refused_in_one_line(words: list[str]) -> None:
    check_outcome(["--list", *words])


REPORT_OPTIONS = st.sampled_from(
    ["--format", "--layout", "--unit", "--baseline", "--contender", "--ignore",
     "--fail-above"]
)  # fmt: skip
REPORT_VALUES = st.sampled_from(
    ["text", "csv", "markdown", "json", "table", "cells", "p99", "objects", "fs", "zeo",
     "pg", "5%", "seed", "page.md", "a.pdf", "html", "-o", "there.json", "x.conf",
     "nowhere", "directory", "a" * 300]
)  # fmt: skip


@pytest.mark.slow
@examples(60, 2_000)
@given(
    st.sampled_from(["show", "compare", "report"]),
    st.lists(REPORT_OPTIONS | REPORT_VALUES | NOISE, max_size=6),
)
def test_any_report_command_line_is_answered_or_refused_in_one_line(
    command: str, words: list[str]
) -> None:
    check_outcome([command, *words])


OURS = [
    *(path.read_text() for path in samples().values()),
    "<zodb a>\n<filestorage>\npath $scratch/a.fs\n</filestorage>\n</zodb>\n",
    "%define x 1\n<zodb a>\ncache-size $x\n<mappingstorage/>\n</zodb>\n",
    "<zodburi a>\nuri file:///tmp/a.fs?quota=5\n</zodburi>\n",
]
"""Configurations without a secret of their own."""
LINES_ELSEWHERE = sorted({line for text in OURS for line in text.splitlines()})
MISPLACED = st.sampled_from(
    ["$", "$x", "${a:b}", "$(HOME)", "$(NOWHERE)", "%", "%define x $y", "%import os",
     "%import nowhere.at.all", "%include .", "%include x.conf", "<", "</", "<a/>", "<a b c>",
     "<zodb>", "</zodb>", "<zodb main", "<mappingstorage/>", "</filestorage>", "<settings>", "key",
     "[main]", "{", "<?xml?>", "- a: b", "1 # comment", "\ufeff", "\u2028x", "\x1b[31m",
     *LINES_ELSEWHERE]
)  # fmt: skip


def change(text: str, edit: tuple[str, int, int, str]) -> str:
    """Return a configuration after an *edit*: its kind, two places and some noise."""
    kind, first, second, noise = edit
    lines = text.splitlines() or [""]
    at, other = first % len(lines), second % len(lines)
    if kind == "delete":
        del lines[at]
    elif kind == "repeat":
        lines.insert(other, lines[at])
    elif kind == "swap":
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == "noise":
        lines.insert(at, noise)
    elif kind == "value":
        lines[at] = " ".join([*lines[at].split()[:1], noise])
    elif kind == "secret":
        around = AROUND_SECRETS[second % len(AROUND_SECRETS)]
        lines = [with_value(line, around) if SECRET in line else line for line in lines]
    else:
        return text[: first % (len(text) + 1)]
    return "\n".join(lines) + "\n"


def with_value(line: str, around: str) -> str:
    """Return a line with some text around its value."""
    *key, value = line.split(None, 2 if line.startswith("%define") else 1)
    return " ".join([*key, around.format(value, value)])


CHANGES = st.tuples(
    st.sampled_from(["delete", "repeat", "swap", "noise", "value", "secret", "cut"]),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    NOISE | NUMBERS | MISPLACED,
)


SECONDS = 5
"""The longest processor time for one listing, which takes a fraction of a second."""
PART_OF_SECRET = SECRET[:4]
"""As much of a password as may be left in a line that is cut off within it."""
ASKS_A_PYTHON = "platform.python_implementation"
"""A part of the program with which an environment's Python is asked about itself."""


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raise :exc:`TimeoutError` in the main thread after *seconds* of this process's CPU time."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with the configurations that people have and ours."""
    directory = tmp_path / "site"
    directory.mkdir()
    monkeypatch.chdir(directory)
    for name, value in {**VARIABLES, "SHOOTOUT_PASSWORD": f"{SECRET}-sample"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("zodbshootout.cli.run.Guardian", mock.MagicMock())  # a process for each
    for name in instances.names():
        placed(name, directory)
    for number, text in enumerate(OURS):
        Path(f"ours{number}.conf").write_text(text)
    return directory


FILES = [
    *instances.names(), "zenoss/databases/main.conf", "zenoss/databases/session.conf",
    *(f"ours{number}.conf" for number in range(len(OURS))),
]  # fmt: skip


@pytest.mark.slow
@examples(150, 2_000)
@given(name=st.sampled_from(FILES), changes=st.lists(CHANGES, min_size=1, max_size=4))
def test_any_configuration_is_listed_or_refused_with_a_line(
    name: str, changes: list[tuple[str, int, int, str]], site: Path
) -> None:
    """No part of a password is shown, and nothing is opened, changed or started."""
    damaged = Path(name)
    original = text = damaged.read_text(encoding="utf-8")
    for edit in changes:
        text = change(text, edit)
    damaged.write_text(text, encoding="utf-8")
    listed = "zenoss/zope.conf" if "databases" in name else name
    with watched(site) as done, within(SECONDS):
        status, out, err = outcome(listed, "add", "--list", "-c", "1")
    files = Path(listed).parent.rglob("*.conf")
    lines = {str(path): path.read_text("utf-8").count("\n") + 1 for path in files}
    damaged.write_text(original, encoding="utf-8")
    assert [event for event in done if ASKS_A_PYTHON not in event] == []
    assert PART_OF_SECRET not in out + err
    assert status in {ALL_MEASURED, BAD_USAGE}, err
    if status == BAD_USAGE:
        *notes, complaint = err.splitlines()
        assert all(any(note in line for note in NOTES) for line in notes)
        place = re.match(r"zodbshootout: (\S+?):(\d+): .", complaint)
        assert place or "no contender" in complaint, complaint
        if place and "***" not in place[1]:  # a word of the file's name may be a password
            assert 1 <= int(place[2]) <= lines[place[1]], complaint


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NOISE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NOISE, inner, max_size=3),
    max_leaves=5,
)


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a document."""
    paths = [path] if path else []
    pairs: Iterable[tuple[Any, Any]] = ()
    if isinstance(document, dict):
        pairs = document.items()
    elif isinstance(document, list):
        pairs = enumerate(document)
    for key, inner in pairs:
        paths += places(inner, (*path, key))
    return paths


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


@pytest.mark.slow
@examples(20, 2_000)
@given(st.data())
def test_an_altered_result_file_is_read_or_refused_in_one_line(data: st.DataObject) -> None:
    text = Path("there.json").read_text()
    document = json.loads(text)
    place = data.draw(st.sampled_from(places(document)))
    Path("other.json").write_text(json.dumps(replaced(document, place, data.draw(JSON))))
    check_reading("other.json")


@pytest.mark.slow
@examples(20, 2_000)
@given(st.floats(0, 1), st.booleans())
def test_a_truncated_result_file_is_read_or_refused_in_one_line(
    part: float, truncates_cells: bool
) -> None:
    for suffix in ("json", "cells.jsonl"):
        cut = (suffix == "json") != truncates_cells
        text = Path(f"there.{suffix}").read_bytes()
        Path(f"other.{suffix}").write_bytes(text[: int(part * len(text))] if cut else text)
    check_reading("other.json")


@pytest.mark.parametrize("content", ["", "null", "[]", "{}", "1", '{"version": "99"}', "\x00"])
def test_a_foreign_file_is_read_or_refused_in_one_line(content: str) -> None:
    Path("other.json").write_text(content)
    check_reading("other.json")


def check_reading(name: str) -> None:
    for words in (
        ["show", name],
        ["show", name, "--format", "csv", "--unit", "p99"],
        ["compare", "there.json", name],
        ["report", name, "-o", "page.md"],
        ["--list", "--append", name],
    ):
        check_outcome(words)
