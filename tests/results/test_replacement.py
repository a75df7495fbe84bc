"""Files that the user names: what a link, a pipe, a device or a directory at the name means."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from zodbshootout.results.replacement import replace_file, to_be_replaced


def write(path: Path) -> None:
    replace_file(path, lambda temporary: temporary.write_bytes(b"new"))


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("before", ["old", None], ids=["link", "dangling link"])
def test_a_file_is_replaced_through_links(tmp_path: Path, before: str | None) -> None:
    target = tmp_path / "there" / "target.json"
    target.parent.mkdir()
    if before is not None:
        target.write_text(before)
    (tmp_path / "second.json").symlink_to(Path("there/target.json"))
    link = tmp_path / "first.json"
    link.symlink_to("second.json")
    write(link)
    assert link.readlink() == Path("second.json")
    assert target.read_bytes() == b"new"
    assert names_in(target.parent) == ["target.json"]


def test_a_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("gone/target")
    with pytest.raises(FileNotFoundError):
        write(link)
    link.unlink()
    link.symlink_to("link")
    with pytest.raises(OSError, match="Too many levels"):
        write(link)
    assert link.is_symlink()


@pytest.mark.parametrize("through", ["", "link"])
def test_a_pipe_with_a_reader_is_written_to(tmp_path: Path, through: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path = pipe
    if through:
        path = tmp_path / through
        path.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(path)
        assert os.read(reader, 100) == b"new"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_pipe_without_a_reader_is_refused_instead_of_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="no program reads this pipe"):
        write(pipe)


def test_a_device_is_written_to_and_stays_a_device(tmp_path: Path) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.stat(os.devnull).st_rdev)  # noqa: PTH116
        device.write_bytes(b"")
    except PermissionError:
        pytest.skip("only root can make devices")
    assert to_be_replaced(device) is None
    write(device)
    assert stat.S_ISCHR(device.stat().st_mode)
    assert names_in(tmp_path) == ["null"]


def test_anything_else_that_exists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not a regular file"):
        write(tmp_path)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("mode", ["wb", "ab"])
def test_standard_output_is_written_to_even_if_it_is_a_file(tmp_path: Path, mode: str) -> None:
    """Replacing that file would lose what is printed before and after."""
    path = tmp_path / "printed"
    path.write_bytes(b"old ")
    program = (
        "from pathlib import Path\n"
        "from zodbshootout.results.replacement import replace_file\n"
        "print('before', end=' ', flush=True)\n"
        "replace_file(Path('/dev/fd/1'), lambda path: path.write_bytes(b'new'))\n"
        "print(' after', end='')\n"
    )
    with path.open(mode) as stdout:
        subprocess.run([sys.executable, "-c", program], stdout=stdout, check=True)
    assert path.read_bytes().removeprefix(b"old ") == b"before new after"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_replaced_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    path.chmod(mode)
    seen = []

    def look_and_write(temporary: Path) -> None:
        seen.append(stat.S_IMODE(temporary.stat().st_mode))
        temporary.write_text("new")

    replace_file(path, look_and_write)
    assert seen == [stat.S_IMODE(path.stat().st_mode)] == [mode]
    assert path.read_text() == "new"
