"""Exit statuses and error messages."""

from __future__ import annotations

import builtins
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from tests.commands import outcome
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.config.sample_files import samples
from zodbshootout.errors import UserError, errors_of_files

FILESTORAGE = "<zodb a>\n<filestorage>\npath $scratch/a.fs\n</filestorage>\n</zodb>\n"
MAPPING = "<zodb m>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    Path("x.conf").write_text(FILESTORAGE)


def refusing(function: Callable[..., Any], name: str, error: type[OSError]) -> Callable[..., Any]:
    """Return a form of *function* that raises an *error* for a path with *name* in it.

    Permissions alone would not make it fail for root.
    """

    def refuse(path: Any, *arguments: Any, **more: Any) -> Any:
        if name in str(path):
            raise error(13, "Permission denied", str(path))
        return function(path, *arguments, **more)

    return refuse


def replace(monkeypatch: pytest.MonkeyPatch, name: str, function: Any) -> None:
    """Replace a function of :mod:`os` for a test."""
    monkeypatch.setattr(os, name, function)
    if sys.version_info < (3, 11):  # pathlib calls copies of these functions
        monkeypatch.setattr(f"pathlib._NormalAccessor.{name}", staticmethod(function))


@pytest.mark.parametrize(
    "option", ["-o", "--append", "--resume", "--report", "--profile", "--against"]
)
def test_an_inaccessible_directory_is_reported_in_one_line_with_status_2(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace(monkeypatch, "stat", refusing(os.stat, "secret", PermissionError))
    name = {"--report": "secret/a.html"}.get(option, "secret/a.json")
    status, out, err = outcome("x.conf", "add", "-c1", option, name)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert "secret" in line
    assert line.startswith("zodbshootout: ")


def test_an_unreadable_logging_file_is_reported_in_one_line_with_status_2(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("log.conf").write_text("<eventlog>\n</eventlog>\n")
    for module in (io, builtins):
        monkeypatch.setattr(module, "open", refusing(open, "log.conf", PermissionError))
    for words in (("--log", "log.conf"), ("--log=log.conf",)):
        status, _, err = outcome(*words, "x.conf", "--list")
        assert status == 2
        (line,) = err.splitlines()
        assert "log.conf" in line
        assert "Permission denied" in line


@pytest.mark.parametrize("words", [["show", "secret/a.json"], ["report", "a", "-o", "secret/a.md"]])
def test_commands_that_read_files_report_an_inaccessible_directory_too(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replace(monkeypatch, "stat", refusing(os.stat, "secret", PermissionError))
    status, _, err = outcome(*words)
    assert status == 2
    (line,) = err.splitlines()
    assert "secret" in line


@pytest.mark.parametrize(
    "words",
    [
        ["{}", "add"], ["x.conf", "{}"], ["show", "{}"], ["compare", "{}", "{}"], ["sample", "{}"],
        ["x.conf", "--hosts", "{}"], ["x.conf", "--against", "{}"], ["report", "{}", "-o", "a.md"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("uri", ["postgres//u:geheim@h/x", "postgresql:u:geheim@h", "u:geheim@h"])
def test_a_misspelt_uri_is_shown_without_its_password(
    uri: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.conf").write_text("<mappingstorage/>\n")
    status, out, err = outcome(*(word.format(uri) for word in words))
    assert status == 2
    assert "***" in err
    assert "geheim" not in out + err


@pytest.mark.parametrize("word", ["pw:geheim", "geheim"])
def test_a_definition_without_an_equals_sign_is_not_repeated(word: str) -> None:
    _, out, err = outcome("x.conf", "add", "--define", word)
    assert "--define: write NAME=VALUE" in err
    assert "geheim" not in out + err


class OddError(Exception):
    """An unforeseen error."""


@pytest.mark.slow
def test_a_defect_has_its_own_status_and_asks_for_a_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise OddError("zeo://u:geheim@h is odd")

    monkeypatch.setattr("zodbshootout.cli.preparing.make_plan", fail)
    status, out, err = outcome("zeo://u:geheim@h")
    assert (status, out) == (70, "")
    (line,) = err.splitlines()
    assert re.sub(r":\d+\)", ":n)", line) == (
        "zodbshootout: unexpected error, which is a defect: OddError: zeo://u:***@h is odd "
        "(test_main.py:n); please report it at https://github.com/zodb/zodbshootout/issues with "
        "the command line, and what --log DEBUG prints"
    )
    for words in (["--log", "DEBUG"], ["--log=debug"]):
        status, out, err = outcome("zeo://u:geheim@h", *words)
        assert (status, out) == (70, "")
        *before, line = err.splitlines()
        assert before[0] == "Traceback (most recent call last):"
        assert before[-1].endswith("OddError: zeo://u:***@h is odd")
        assert line.endswith("/issues with the lines above")


@pytest.mark.servers
@pytest.mark.parametrize("words", [[], ["--against", sys.executable]])
@pytest.mark.parametrize("what", ["zodbshootout-", "workers", "modules"])
def test_a_full_temporary_directory_is_reported_in_one_line(
    what: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Any, *arguments: Any, **more: Any) -> None:
        if Path(path).name.startswith(what):
            raise OSError(28, "No space left on device", str(path))
        mkdir(path, *arguments, **more)

    mkdir = os.mkdir
    replace(monkeypatch, "mkdir", full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    status, _, err = outcome("x.conf", "add", "-c1", "--debug-single-value", *words)
    if what == "modules" and not words:
        assert status == 0  # no other Python needs our modules
        return
    assert status == 2
    line = err.splitlines()[-1]
    assert line.startswith(f"zodbshootout: {tmp_path}/zodbshootout-")
    assert line.endswith(
        f": No space left on device; make room in {tmp_path}, or name another directory in the "
        "environment variable TMPDIR"
    )
    assert sorted(path.name for path in tmp_path.glob("zodbshootout-*")) == []


def test_no_temporary_directory_and_no_process_are_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_directory() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "_get_default_tempdir", no_directory)
        patch.setattr(tempfile, "tempdir", None)
        status, _, err = outcome("x.conf", "add", "-c1")
    message = (
        "zodbshootout: No usable temporary directory found in ['/tmp']; make room, or name another "
        "directory in the environment variable TMPDIR\n"
    )
    assert (status, err) == (2, message)

    def no_process(*_: Any, **__: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("zodbshootout.guardian.subprocess.Popen", no_process)
    status, _, err = outcome("x.conf", "add", "-c1")
    message = "zodbshootout: no process can be started: Resource temporarily unavailable\n"
    assert (status, err) == (2, message)


def test_a_tree_that_cannot_be_copied_is_reported_with_the_first_reason(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "gone").symlink_to("nowhere")
    reason = r"^\[Errno 2\] No such file or directory: '.*gone'$"
    with pytest.raises(UserError, match=reason), errors_of_files():
        shutil.copytree(tmp_path / "from", tmp_path / "to")


@pytest.fixture
def enormous() -> str:
    """Return the name of a FileStorage that is too large to be read."""
    with Path("Data.fs").open("wb") as file:
        file.write(b"FS21")
        file.truncate(2**42)
    return "Data.fs"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "cannot read Data.fs: it is not UTF-8 text; if it is a FileStorage, write file:///"),
        (["--log"], "cannot read Data.fs: it is not UTF-8 text; if it is a FileStorage, write "),
        (["x.conf", "-o", "a.json", "--report"], "--report: Data.fs: no format ends in '.fs'"),
        (["x.conf", "--log=Data.fs"], "--log: Data.fs is too large to configure logging"),
        (["x.conf", "--append"], "--append: Data.fs was not written by pyperf"),
        (["show"], "Data.fs was not written by pyperf"),
        (["compare", "x.conf"], "x.conf was not written by pyperf"),
        (["workload"], "Data.fs: this is not a recorded workload"),
        (["replay", "--workload"], "--workload: Data.fs: this is not a recorded workload"),
    ],
)
def test_a_large_file_that_is_something_else_is_not_read(
    enormous: str, words: list[str], message: str
) -> None:
    words = words if words[-1:] == ["--log=Data.fs"] else [*words, enormous]
    status, out, err = outcome(*words)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert message in line


@pytest.mark.slow
def test_only_the_beginning_of_a_file_tells_whether_it_is_a_configuration() -> None:
    Path("x.fs").write_bytes(b"FS21")
    Path("endless").symlink_to("/dev/zero")
    Path("long.conf").write_text("# comment\n" * 2**17)
    for name, reason in (
        ("x.fs", "cannot read x.fs: it is not UTF-8 text; if it is a FileStorage"),
        ("endless", "cannot read endless: it is not UTF-8 text"),
        ("long.conf", "cannot read long.conf: it is larger than 1 MB, too large for a config"),
        (".", "cannot read .: Is a directory"),
    ):
        status, _, err = outcome(name)
        assert (status, len(err.splitlines())) == (2, 1)
        assert reason in err
    status, _, err = outcome("show", "endless")
    assert (status, err) == (2, "zodbshootout: endless is not a regular file\n")


@pytest.mark.servers
def test_a_configuration_can_come_from_a_pipe() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"<zodb a>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n")
    os.close(writing)
    try:
        status, out, _ = outcome(f"/dev/fd/{reading}", "add", "--list")
    finally:
        os.close(reading)
    assert status == 0
    assert "1 cell" in out


@pytest.mark.parametrize("words", [["--list"], ["show", "a.json", "--format", "ndjson"]])
def test_a_plugin_that_cannot_be_imported_is_named_in_one_line(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = "zodbshootout.formats" if "show" in words else "zodbshootout.benchmarks"
    broken = EntryPoint("ndjson", "no_such_module:write", group)
    monkeypatch.setattr(
        "zodbshootout.plugins.entries", lambda group: [broken] if group == broken.group else []
    )
    monkeypatch.setattr("zodbshootout.reports._all_formats", lambda: {"ndjson": broken})
    benchmarks.cache_clear()
    status, out, err = outcome(*words)
    benchmarks.cache_clear()
    assert (status, out) == (2, "")
    assert err == (
        f"zodbshootout: cannot import no_such_module:write, the entry point ndjson of {group}: "
        "ModuleNotFoundError: No module named 'no_such_module'; repair or uninstall the package "
        "that registers it\n"
    )


def test_a_defect_in_a_command_that_reads_files_has_the_same_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise OddError("odd")

    monkeypatch.setattr("zodbshootout.cli.show.read_files", fail)
    status, _, err = outcome("show", "a.json")
    assert status == 70
    assert "OddError: odd (test_main.py:" in err


@pytest.mark.servers
def test_one_client_is_the_default_if_two_processes_cannot_open_a_storage() -> None:
    line = (
        "zodbshootout: 1 client instead of 2: FileStorage: only one DB at a time can open it; "
        "use --threads shared, or -c 1\n"
    )
    status, out, err = outcome("x.conf", "add", "--list")
    assert (status, err) == (0, line)
    assert "Objects per second: 100 objects of 300 bytes, 1 process\n" in out
    assert "n/a" not in out


@pytest.mark.servers
def test_one_client_is_the_default_if_a_benchmark_leaves_the_database_to_one() -> None:
    Path("x.conf").write_text(SQLITE)
    status, out, err = outcome("x.conf", "add", "pack", "--list")
    reason = "one client at a time can pack a database"
    assert status == 0
    *opening, note = err.splitlines()
    assert note == f"zodbshootout: 1 client instead of 2: {reason}"
    # A busy machine takes long enough for these.
    assert all("waiting for it to open" in line for line in opening)
    assert "n/a" not in out
    _, out, err = outcome("x.conf", "pack", "--list", "-c", "2")
    assert (err, f"{reason}; use -c 1" in out) == ("", True)


@pytest.mark.servers
@pytest.mark.parametrize("words", [["-c", "2"], ["--threads"], ["-c", "1"]])
def test_no_note_is_printed_if_the_number_or_kind_of_clients_is_given(words: list[str]) -> None:
    status, _, err = outcome("x.conf", "add", "--list", *words)
    assert (status, err) == (0, "")


SQLITE = (
    "%import relstorage\n<zodb b>\n<relstorage>\n<sqlite3>\ndata-dir $scratch/s\n</sqlite3>\n"
    "</relstorage>\n</zodb>\n"
)
NO_SERVER = "<zodb b>\n<zeoclient>\nserver localhost:1\n</zeoclient>\n</zodb>\n"


@pytest.mark.servers
def test_two_clients_are_the_default_if_any_contender_supports_them() -> None:
    Path("x.conf").write_text(f"{FILESTORAGE}{SQLITE}")
    status, out, err = outcome("x.conf", "add", "--list")
    assert (status, err) == (0, "")
    assert "Objects per second: 100 objects of 300 bytes, 2 processes\n" in out
    assert out.splitlines()[4].split() == ["add", "n/a", "[1]", "yes"]


@pytest.mark.servers
def test_a_listing_names_what_cannot_be_opened_and_fails() -> None:
    Path("x.conf").write_text(f"{FILESTORAGE}{NO_SERVER}")
    status, out, err = outcome("x.conf", "add", "--list")
    assert status == 3
    assert out.splitlines()[4].split() == ["add", "yes", "failed", "[1]"]
    assert "[1] b: failed: no ZEO server at localhost:1; start one there: runzeo -a " in out
    assert "1 cell, measured until all are known within" in out
    # What cannot be opened has no say in the number of clients.
    assert err.startswith("zodbshootout: 1 client instead of 2: FileStorage: only one DB")


@pytest.mark.servers
def test_a_listing_asks_nothing_and_leaves_no_results(tmp_path: Path) -> None:
    path = tmp_path / "kept.fs"
    Path("x.conf").write_text(FILESTORAGE.replace("$scratch/a.fs", str(path)))
    for words in (["--zap"], ["--zap", "a"], []):
        status, _, err = outcome("x.conf", "add", "-c1", "--list", *words)
        assert (status, err) == (0, "")
    assert path.is_file()  # a contender is opened as for a run
    assert list(tmp_path.rglob("*.json*")) == []
    status, _, err = outcome("x.conf", "add", "-c1", "--list", "-o", "x.conf")
    assert (status, "x.conf exists" in err) == (2, True)


@pytest.mark.servers
def test_the_error_of_a_failed_pyperf_command_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = subprocess.run

    def run_without_file(words: list[str], **more: Any) -> Any:
        return run([*words[:-1], str(tmp_path / "gone.json")], **more)

    Path("x.conf").write_text(MAPPING)
    monkeypatch.setattr(subprocess, "run", run_without_file)
    status, out, err = outcome(
        "x.conf", "ex_commit", "-c1", "--debug-single-value", "-q", "-o", "a.json", "--stats"
    )
    assert status == 3
    assert "Results: a.json" in out
    (line,) = err.splitlines()
    assert line.startswith("zodbshootout: pyperf stats failed: ")
    assert "gone.json" in line


def test_a_broken_installation_has_the_status_of_a_defect(tmp_path: Path) -> None:
    (tmp_path / "rich.py").write_text("raise ImportError('broken')\n")
    done = subprocess.run(
        [sys.executable, "-m", "zodbshootout", "compare", "a.json", "b.json"],
        check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.pathsep.join(sys.path)}"},
    )  # fmt: skip
    assert done.returncode == 70
    assert "ImportError: broken" in done.stderr


@pytest.mark.parametrize(("name", "where"), [("remote", "42: dsn"), ("oracle", "21: password")])
def test_an_unset_environment_variable_is_named_with_its_line(
    name: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOOTOUT_PASSWORD", raising=False)
    path = samples()[f"{name}-sample"]
    status, _, err = outcome(f"{name}-sample", "--list")
    assert status == 2
    assert err == (
        f"zodbshootout: {path}:{where}: the environment variable SHOOTOUT_PASSWORD is not set; "
        "set it: export SHOOTOUT_PASSWORD=...\n"
    )
