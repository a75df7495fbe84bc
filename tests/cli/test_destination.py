from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentTypeError
from contextlib import ExitStack
from pathlib import Path

import platformdirs
import pytest

from tests.reports.results import with_worker_metadata
from tests.runs import cell, contender, failed, measured, sweep_of
from zodbshootout.cli.destination import destination, result_files
from zodbshootout.cli.parser import parse
from zodbshootout.cli.values import is_last, result_to_read
from zodbshootout.errors import UserError
from zodbshootout.model.masking import Mask
from zodbshootout.model.specification import CrewShape, Parameters
from zodbshootout.results.files import ResultFiles, read_results
from zodbshootout.scheduling.calibration import Effort
from zodbshootout.scheduling.plan import Plan, make_plan


def plan_of(*names: str) -> Plan:
    sweep = sweep_of(Parameters(CrewShape(1)))
    return make_plan([contender(name) for name in names], ["add"], sweep, Effort(1, 1, 0, 1, 0.1))


PLAN = plan_of()


def test_a_user_without_a_home_directory_has_to_name_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def user_data_dir(*_: object, **__: object) -> str:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr(platformdirs, "user_data_dir", user_data_dir)
    with pytest.raises(UserError) as caught:
        result_files(parse([]), PLAN)
    assert str(caught.value) == (
        "results cannot be written: could not determine the home directory; name a file with -o"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_an_unwritable_directory_is_refused_before_measuring() -> None:
    with pytest.raises(UserError, match="results cannot be written to /proc: "):
        result_files(parse(["-o", "/proc/a.json"]), PLAN)


def test_names_that_files_cannot_have_are_refused_before_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name, length in (("存" * 28, 257), ("a" * 251, 256)):
        for words in (["-o", "a.json"], []):
            with pytest.raises(UserError) as caught:
                result_files(parse(words), plan_of(name))
            assert str(caught.value) == (
                f"{name}: the name is too long: the file of its results would have a name of "
                f"{length} characters; shorten it"
            )
    for name in ("存" * 27, "a" * 250):
        files = result_files(parse(["-o", f"{len(name)}.json"]), plan_of(name))
        files.write([measured(cell("add", name), [1.0])])
        assert len(list(files.directory.iterdir())) == 1


def test_profiles_whose_names_files_cannot_have_are_refused_before_measuring(
    tmp_path: Path,
) -> None:
    options = parse(["-o", str(tmp_path / "a.json"), "--profile", str(tmp_path / "profiles")])
    with ExitStack() as stack:
        destination(options, plan_of("a" * 240), Mask(), stack)
    with ExitStack() as stack, pytest.raises(OSError, match="File name too long"):
        destination(options, plan_of("a" * 250), Mask(), stack)


@pytest.mark.parametrize("name", ["a.json", "a.cells.jsonl", "a.d"])
def test_a_pipe_in_place_of_a_file_of_results_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo(name)
    with pytest.raises(UserError, match=f"{name} is not a |{name} exists"):
        result_files(parse(["-o", "a.json"]), PLAN)


def test_results_are_written_through_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    Path("a.json").symlink_to("there/b.json")
    files = result_files(parse(["-o", "a.json"]), PLAN)
    files.write([measured(cell("add", "fs"), [1.0])])
    assert Path("a.json").is_symlink()
    assert Path("there/b.json").is_file()
    files.write([failed(cell("add", "fs"), "broken")])
    assert Path("a.json").is_symlink()
    assert not Path("there/b.json").exists()


def test_results_written_through_a_link_are_compressed_as_its_name_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.json.gz").symlink_to("b")
    files = result_files(parse(["-o", "a.json.gz"]), PLAN)
    files.write([with_worker_metadata(measured(cell("add", "fs"), [1.0]))])
    (result,) = read_results(Path("a.json.gz"))
    assert [run.values for run in result.runs] == [(1.0,)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def test_default_names_have_at_most_60_characters(here: Path) -> None:
    (here / f"{'long' * 20}.conf").touch()
    (name,) = {result_files(parse([f"{'long' * 20}.conf"]), PLAN).combined.name}
    assert len(name) <= 60
    assert name.endswith(f"-{os.getpid()}.json")


def test_last_is_the_newest_result_of_this_directory(here: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="no results of runs started in this directory"):
        result_to_read("last")
    default = result_files(parse([]), PLAN)
    for number, files in enumerate([ResultFiles(Path("a.json")), default]):
        files.write([measured(cell("add", "fs"), [1.0])])
        os.utime(files.cells, (number, number))
        assert result_to_read("last") == files.combined
        assert is_last(files.combined) == (files is default)
    os.utime("a.cells.jsonl", (9, 9))
    assert result_to_read("last") == Path("a.json")
    assert not is_last(default.combined)
    (here.parent / "there").mkdir()
    os.chdir(here.parent / "there")
    with pytest.raises(ArgumentTypeError):
        result_to_read("last")
    Path("last").touch()
    assert result_to_read("last") == Path("last")


def test_a_run_in_which_everything_failed_does_not_block_the_next(here: Path) -> None:
    files = result_files(parse(["-o", "out.json"]), PLAN)
    files.write([failed(cell("add", "fs"), "broken")])
    assert [path.name for path in here.iterdir()] == ["out.cells.jsonl"]
    result_files(parse(["-o", "out.json"]), PLAN).write([measured(cell("add", "fs"), [1.0])])
    with pytest.raises(UserError, match=r"-o: out\.json exists"):
        result_files(parse(["-o", "out.json"]), PLAN)


@pytest.mark.parametrize("option", ["-o", "--append"])
@pytest.mark.parametrize("other", ["out.json", "out.json.gz", "link.json"])
def test_a_second_run_cannot_write_to_the_same_files(option: str, other: str, here: Path) -> None:
    Path("link.json").symlink_to("out.json")
    with ExitStack() as first:
        destination(parse([option, "out.json"]), PLAN, Mask(), first)
        with ExitStack() as second, pytest.raises(UserError) as caught:
            destination(parse([option, other]), PLAN, Mask(), second)
        assert str(caught.value) == (
            f"{option}: another run writes to {other}; wait for its end, or name another file"
        )
        with ExitStack() as elsewhere:
            destination(parse([option, "other.json"]), PLAN, Mask(), elsewhere)
    with ExitStack() as second:
        destination(parse([option, other]), PLAN, Mask(), second)
    assert [path.name for path in here.iterdir()] == ["link.json"]


def test_the_files_of_a_killed_run_are_not_locked(here: Path) -> None:
    code = (
        "from zodbshootout.results.files import ResultFiles\nfrom pathlib import Path\n"
        "import os, signal\n"
        "with ResultFiles(Path('out.json')).locked():\n    os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert [path.name for path in here.iterdir()] == [".out.lock"]
    with ExitStack() as stack:
        destination(parse(["-o", "out.json"]), PLAN, Mask(), stack)
    assert not [*here.iterdir()]
