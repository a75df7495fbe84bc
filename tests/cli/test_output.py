"""The output of the command: progress, messages, questions; and streams that fail."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path

import pytest
from rich.console import Console

from zodbshootout.cli.output import Streams, console_on, print_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_questions_are_asked_only_on_a_terminal() -> None:
    console = Console(file=io.StringIO())
    assert not Streams(console, console, None).can_ask
    assert not Streams(console, console, io.StringIO("y\n")).can_ask
    assert Streams(console, console, Terminal("y\n")).can_ask


@pytest.mark.parametrize("answer", ["", "\n", " \n", "n\n", "no\n", "yeah\n", "y es\n", "ja\n"])
def test_trap_11_anything_but_yes_is_a_no(answer: str) -> None:
    assert not answers_yes(answer)


@pytest.mark.parametrize("answer", ["y\n", "Y\n", "yes\n", "YES\n", " y \n", "yes"])
def test_an_explicit_yes_is_a_yes(answer: str) -> None:
    assert answers_yes(answer)


def answers_yes(answer: str) -> bool:
    console = Console(file=io.StringIO())
    return Streams(console, console, Terminal(answer)).ask("Destroy all data of a?")


class Full(io.StringIO):
    """A file on a disk that is full while *full* is true."""

    full = True

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(text)


def test_a_character_that_the_encoding_lacks_is_printed_as_an_escape() -> None:
    buffer = io.BytesIO()
    file = io.TextIOWrapper(buffer, encoding="ascii", write_through=True)
    streams = Streams(console_on(file), console_on(file), None)
    print_line(streams.out, "db_\u4e2d: 5")
    assert buffer.getvalue() == b"db_\\u4e2d: 5\n"
    assert streams.loss is None


def test_a_complaint_is_one_line_whatever_its_text() -> None:
    file = io.StringIO()
    streams = Streams(console_on(io.StringIO()), console_on(file), None)
    streams.complain("no such file: a\nb\x1b[31m")
    assert file.getvalue() == "zodbshootout: no such file: a\\nb\\x1b[31m\n"


def test_the_reason_for_lost_output_is_recorded() -> None:
    file = Full()
    streams = Streams(console_on(file), console_on(Full()), None)
    streams.complain("not told")
    assert streams.loss is None
    print_line(streams.out, "one")
    assert streams.loss == os.strerror(errno.ENOSPC)
    file.full = False
    print_line(streams.out, "another")
    assert file.getvalue() == "another\n"


def test_a_closed_pipe_does_not_count_as_lost_output(
    capfd: pytest.CaptureFixture[str],
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as file:
        streams = Streams(console_on(file), console_on(sys.stderr), None)
        print_line(streams.out, "one")
        print_line(streams.out, "another")
        assert streams.loss is None
    assert capfd.readouterr() == ("", "")


def test_unwritable_buffered_output_is_lost_without_an_error_on_close(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a"
    path.touch()
    # Open for reading only: the system refuses the written data when it is flushed.
    descriptor = os.open(path, os.O_RDONLY)
    with open(descriptor, "w") as file:  # noqa: PTH123 - a descriptor has no Path
        console = console_on(file)
        print_line(console, "one")
        assert Streams(console, console, None).loss == os.strerror(errno.EBADF)
    assert path.read_text() == ""


def test_text_that_looks_like_markup_is_printed_verbatim() -> None:
    file = io.StringIO()
    streams = Streams(console_on(file), console_on(None), None)
    print_line(streams.out, "[bold]as it is")
    assert file.getvalue() == "[bold]as it is\n"
    assert streams.loss is None


def test_a_width_of_zero_is_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    assert console_on(io.StringIO()).width == 80
