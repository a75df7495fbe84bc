"""The command that prints result files."""

from __future__ import annotations

import io
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pyperf
import pytest

from tests.cli.files import written
from tests.commands import outcome
from tests.reports.results import EVERYTHING, noisy_run, with_worker_metadata
from tests.runs import cell, measured
from zodbshootout.cli.output import console_on
from zodbshootout.cli.values import default_directory
from zodbshootout.model.specification import MappingType
from zodbshootout.reports import text
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.tables import make_report
from zodbshootout.results.cell import Cell
from zodbshootout.results.files import ResultFiles, read_results
from zodbshootout.results.result import CellResult


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return written(tmp_path / "out.json", *EVERYTHING)


def test_show_prints_the_table_of_the_run_byte_for_byte(out: Path) -> None:
    stream = io.StringIO()
    text.write(make_report([ResultSet(EVERYTHING)]), console_on(stream))
    status, shown, stderr = outcome("show", out)
    assert (status, shown.partition("Next:\n")[0], stderr) == (0, stream.getvalue(), "")


def test_the_next_commands_after_a_run_without_a_file_name_are_about_the_last_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    file = default_directory() / "2026.json"
    file.parent.mkdir(parents=True)
    written(file, *EVERYTHING)
    _, shown, _ = outcome("show", file)
    assert "  zodbshootout report last -o page.html\n" in shown
    assert "  zodbshootout compare last --contender fs zeo\n" in shown


@pytest.mark.slow
def test_show_ends_with_commands_that_can_be_run_as_they_are(tmp_path: Path) -> None:
    def commands(*files: Path) -> list[list[str]]:
        _, shown, _ = outcome("show", *files)
        lines = shown.partition("Next:\n")[2].splitlines()
        assert lines[-1].startswith("Reading the table: https://")
        return [shlex.split(line)[1:] for line in lines[:-1]]

    (tmp_path / "two words").mkdir()
    one = written(tmp_path / "two words" / "a.json", *EVERYTHING)
    two = written(tmp_path / "b.json.gz", *EVERYTHING)
    other = written(tmp_path / "c.json", measured(cell("add", "other"), [1.0]))
    page = str(one.with_name("a.html"))
    shown = [["report", str(one), "-o", page], ["show", str(one), "--format", "markdown"]]
    assert commands(one) == [
        ["compare", str(one), "--contender", "fs", "zeo"],
        ["show", str(one), "--baseline", "zeo"],
        *shown,
    ]
    assert commands(one, two)[0] == ["compare", str(one), str(two)]
    assert commands(one, two, other)[0][0] == "report"
    assert commands(one, other)[0][0] == "report"
    for command in [*commands(one), *commands(one, two), *commands(one, other), *commands(other)]:
        assert outcome(*command)[::2] == (0, "")


@pytest.mark.slow
def test_a_table_and_its_notes_fit_into_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = written(tmp_path / "out.json", *noisy_run(("filestorage", "zeo", "sqlite"), 0.1))
    monkeypatch.setenv("COLUMNS", "80")
    _, shown, _ = outcome("show", out)
    assert max(len(line) for line in shown.splitlines() if str(tmp_path) not in line) <= 80
    monkeypatch.setenv("COLUMNS", "200")
    _, wide, _ = outcome("show", out)
    narrow_table, wide_table = (printed.partition("\n\n")[0] for printed in (shown, wide))
    # Neither a figure nor a ratio is lost, whereas intervals need room.
    figures = re.findall(r"[\d,]{6,}|[\d.]+[M×?]", narrow_table)
    assert figures == re.findall(r"[\d,]{6,}|[\d.]+[M×?]", wide_table)
    assert len(figures) == 7 * (3 + 2)
    assert (narrow_table.count(" to "), wide_table.count(" to ")) == (0, 7 * 2)


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    odd = cell(
        "cold", "fs", objects=7, object_size=128, mapping=MappingType.OO, leaf_size=8,
        internal_size=9, blobs=True, compressibility=0.25, min_objects=11, seed=3,
    )  # fmt: skip
    bare = cell("tpc", "fs", objects=0)
    path = written(tmp_path / "a.json", measured(odd, [1.0, 2.0]), measured(bare, [3.0]))
    for file in (path, tmp_path / "a.d" / "fs.json"):
        results = {result.cell: result for result in read_results(file)}
        assert set(results) == {odd, bare}
        assert results[odd].benchmark().get_values() == (1.0, 2.0)


def test_a_file_alone_tells_what_failed(out: Path) -> None:
    shutil.copy(out, out.with_name("moved.json"))
    for path in (out.with_name("moved.json"), *out.with_name("out.d").iterdir()):
        alone = {one.cell: (one.state, one.reason) for one in read_results(path)}
        titles = {cell.title for cell in alone}
        assert alone == {
            one.cell: (one.state, one.reason) for one in EVERYTHING if one.cell.title in titles
        }


def test_an_appended_result_is_merged_into_its_cell(out: Path) -> None:
    again = measured(cell("add", "fs"), [0.04])
    late = measured(cell("cold", "pg"), [0.5])
    ResultFiles(out).appending().write([with_worker_metadata(again), with_worker_metadata(late)])
    results = read_results(out)
    assert len(results) == len(EVERYTHING)
    by_cell: dict[Cell, CellResult] = {result.cell: result for result in results}
    assert by_cell[again.cell].benchmark().get_values() == (0.02, 0.02, 0.02, 0.04)
    assert by_cell[late.cell].measured
    assert by_cell[late.cell].reason == ""


def test_a_run_without_measurements_can_be_shown_and_appended_to(tmp_path: Path) -> None:
    nothing = [result for result in EVERYTHING if not result.measured]
    path = written(tmp_path / "out.json", *nothing)
    assert not path.exists()
    status, shown, _ = outcome("show", path)
    assert status == 0
    assert "OperationalError: connection refused" in shown
    ResultFiles(path).appending().write([with_worker_metadata(measured(cell("add", "fs"), [1.0]))])
    assert len(read_results(path)) == len(nothing) + 1


def test_a_measured_cell_has_no_figure_if_the_result_file_is_gone(out: Path) -> None:
    out.unlink()
    status, shown, _ = outcome("show", out)
    assert status == 0
    assert "20,000" not in shown
    assert shown.count("not run") == 5


def test_several_files_are_shown_side_by_side_under_their_names(out: Path, tmp_path: Path) -> None:
    other = written(tmp_path / "b.json", measured(cell("add", "fs"), [0.01]))
    status, shown, _ = outcome("show", out, other)
    assert status == 0
    assert "out: fs" in shown
    assert "b: fs" in shown
    (tmp_path / "d").mkdir()
    same_name = written(tmp_path / "d" / "out.json", measured(cell("add", "fs"), [0.01]))
    _, shown, _ = outcome("show", out, same_name)
    assert f"{same_name}: fs" in shown


def test_csv_has_the_layout_of_the_table_if_requested(out: Path) -> None:
    _, cells, _ = outcome("show", out, "--format", "csv")
    _, table, _ = outcome("show", out, "--format", "csv", "--layout", "table")
    assert cells.startswith("file,benchmark,contender,")
    assert table.splitlines()[1] == "Transaction,fs,zeo,pg"
    assert table.splitlines()[2] == "Add 1000 Objects,100000.0,20000.0,failed"


def test_a_plain_pyperf_file_is_refused_with_the_command_that_shows_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "timeit.json"
    pyperf.BenchmarkSuite(
        [pyperf.Benchmark([pyperf.Run([1.0], metadata={"name": "timeit"})])]
    ).dump(str(path))
    status, shown, stderr = outcome("show", path)
    assert (status, shown) == (2, "")
    refusal = f"{path} was not written by zodbshootout; pyperf shows it: pyperf show {path}"
    assert stderr == f"zodbshootout: {refusal}\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere.json"], "there is no file nowhere.json"),
        (["OUT", "--format", "cvs"], "--format: no 'cvs'; did you mean csv?"),
        (["OUT", "--format", "svg"],
         "--format: svg is for charts; write it with zodbshootout report FILE -o page.svg"),
        (["OUT", "--format", "json", "--layout", "table"],
         "--layout table: not available in json; use csv"),
        (["OUT", "--baseline", "oracle"],
         "no contender 'oracle'; there are fs, zeo, pg"),
        (["OUT", "--unit", "p100"], "argument --unit: no quantity 'p100'; there are objects"),
        ([], "the following arguments are required: FILE"),
    ],
)  # fmt: skip
def test_bad_usage_is_reported_in_one_line(out: Path, arguments: list[str], complaint: str) -> None:
    status, shown, stderr = outcome(
        "show", *[str(out) if argument == "OUT" else argument for argument in arguments]
    )
    assert (status, shown) == (2, "")
    assert stderr.startswith(f"zodbshootout: {complaint}")
    assert stderr.count("\n") == 1


def test_a_damaged_file_is_named(out: Path) -> None:
    out.write_text("{")
    status, _, stderr = outcome("show", out)
    assert status == 2
    assert str(out) in stderr
    out.unlink()
    written(out, *EVERYTHING)
    for nonsense in ("nonsense\n", "{}\n", "[1]\n"):
        ResultFiles(out).cells.write_text(nonsense)
        status, _, stderr = outcome("show", out)
        assert status == 2
        assert "out.cells.jsonl" in stderr


@pytest.mark.parametrize(
    "wrong",
    [
        {"latency_histogram": "x"}, {"clients": "many"}, {"objects": "many"}, {"mapping": "dict"},
        {"workload_seconds": "x"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["show --unit p99", "compare {}", "report -o {}.html"])
def test_results_with_wrong_metadata_are_damage_in_one_line(
    tmp_path: Path, wrong: dict[str, Any], command: str
) -> None:
    add, path = cell("add", "fs"), tmp_path / "out.json"
    ResultFiles(path).write([measured(add, *[[1.0]] * 3, **{**add.metadata(), **wrong})])
    ResultFiles(path).cells.unlink()
    name, *words = command.format(path).split()
    status, _, stderr = outcome(name, path, *words)
    assert "Traceback" not in stderr
    if status or command.startswith("show"):
        assert (status, stderr.count("\n")) == (2, 1)
        assert re.match(f"zodbshootout: {path}( or {path})? is damaged: ", stderr)


def test_a_file_can_be_shown_next_to_itself(out: Path) -> None:
    status, text, _ = outcome("show", out, out)
    assert status == 0
    assert f"1. {out}: fs" in text
    assert f"2. {out}: fs" in text
