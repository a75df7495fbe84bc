"""The words of a command line: files, benchmarks and values of options."""

from __future__ import annotations

from pathlib import Path

import pytest

from zodbshootout.cli.parser import parse, run_parser


@pytest.fixture(autouse=True)
def _some_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.conf").write_text("")
    Path("shared").write_text("")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--threads", "x.conf"], ["--threads=shared", "x.conf"]),
        (["--threads", "nowhere.conf"], ["--threads=shared", "nowhere.conf"]),
        (["--threads", "unique", "x.conf"], ["--threads=unique", "x.conf"]),
        (["--threads", "cold"], ["--threads=shared", "cold"]),
        (["--threads", "clod"], ["--threads=shared", "clod"]),
        (["--threads", "all"], ["--threads=shared", "all"]),
        (["--threads", "-c", "2"], ["--threads=shared", "-c", "2"]),
        (["--threads"], ["--threads=shared"]),
        (["--btrees", "LO"], ["--btrees=IO", "LO"]),
        (["--btrees", "OO"], ["--btrees=OO"]),
        (["--include-mapping", "true", "cold"], ["--include-mapping=true", "cold"]),
        (["--include-mapping", "store"], ["--include-mapping=true", "store"]),
        (["--log", "TRACE"], ["--log=INFO", "TRACE"]),
        (["--log", "debug", "cold"], ["--log=debug", "cold"]),
        (["--log", "x.conf"], ["--log=INFO", "x.conf"]),
        (["--log", "file:///a.fs"], ["--log=INFO", "file:///a.fs"]),
        (["-cold", "-c", "old"], ["--exclude=cold", "-c", "old"]),
    ],
)
def test_words_are_spelled_out_as_options_with_their_values(
    words: list[str], expected: list[str]
) -> None:
    assert run_parser().spelled_out(words) == expected


@pytest.mark.parametrize(
    ("text", "path", "blob_dir"),
    [("A.fs", "A.fs", None), ("A.fs,blobs", "A.fs", Path("blobs")), ("B,b.fs", "B,b.fs", None)],
)
def test_data_is_a_filestorage_and_the_directory_of_its_blobs(
    text: str, path: str, blob_dir: Path | None
) -> None:
    Path("B,b.fs").write_text("")
    assert parse(["copy", "--data", text]).data == (Path(path), blob_dir)
