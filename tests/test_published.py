"""The command that repeats published measurements, and the pages that it makes."""

from __future__ import annotations

import gzip
import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.published import __main__ as command
from benchmarks.published.experiments import EXPERIMENTS, Experiment, Published, Run
from benchmarks.published.pages import ENDING, make_pages, written
from docutils.core import publish_doctree

from tests.reports.swept import swept
from tests.runs import cell, failed
from zodbshootout.cli import options
from zodbshootout.cli.parser import parse
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.config.pythons import Environment
from zodbshootout.config.source import read_source
from zodbshootout.reports import drawing
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.tables import make_report
from zodbshootout.results.files import ResultFiles, read_results

ROOT = Path(__file__).parents[1]
RUNS = [run for experiment in EXPERIMENTS for run in experiment.runs]
PUBLISHED = Published(
    "a page", ["fs", "zeo"], {"add": (1000, 4000), "cold": (500, 500), "hot": (1, 1)},
    "fs", clients=2, objects=100, object_size=300,
)  # fmt: skip
SMALL = Experiment(
    "small",
    [Run("one", "One", "x.conf", "add --at-most 1", [PUBLISHED], [("fs", "zeo")], seconds=True)],
)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_command_line_covers_its_published_figures(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    # uv asks an index which releases there are.
    monkeypatch.setattr(options, "releases_and_commits", lambda word: [Environment(word)])
    arguments = parse(shlex.split(run.command)[1:])
    sections = read_source(arguments.paths[0]).tree.root.sections
    contenders = {section.name for section in sections if section.type == "zodb"}
    sweep = {
        (parameters.crew.size, parameters.objects, parameters.object_size)
        for parameters in arguments.sweep.parameters()
    }
    for published in run.published:
        assert published.relative_to in published.columns
        assert contenders.issuperset(published.columns)
        assert (published.clients, published.objects, published.object_size) in sweep
        assert set(published.rows) <= set(arguments.benchmarks) <= set(benchmarks())
        assert all(len(figures) == len(published.columns) for figures in published.rows.values())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    directory = tmp_path / "data"
    directory.mkdir()
    results = [*swept(names=("fs", "zeo")), *swept("cold", names=("fs",))]
    for result in results:
        for run in result.runs:
            run._metadata |= {"date": "2026-11-22 10:00:00", "cpu_count": 2, "platform": "Linux"}
    ResultFiles(directory / f"one{ENDING}").write(results)
    return directory


@pytest.mark.slow
def test_a_page_has_the_command_the_chart_and_the_ratios_then_and_now(
    data: Path, tmp_path: Path
) -> None:
    (page,) = make_pages([SMALL], data, tmp_path / "made")
    text = page.read_text(encoding="utf-8")
    publish_doctree(text, settings_overrides={"halt_level": 2})
    assert "$ zodbshootout x.conf add --at-most 1" in text
    assert "Measured 2026-11-22 on 2 CPUs (a processor, Linux)" in text
    assert ".. image:: made/one.svg" in text
    assert (tmp_path / "made" / "one.svg").read_text(encoding="utf-8").startswith("<svg")
    then_and_now = text[text.index("Times as fast as fs") :]
    # 20,000 and 40,000 objects a second with two clients; neither zeo cold nor hot was measured.
    assert [line.strip() for line in then_and_now.splitlines() if "Objects" in line] == [
        '"Add 100 Objects","4.00","2.00"', '"Read 100 Cold Objects","1.00","-"',
    ]  # fmt: skip


def test_docutils_reads_special_characters_of_a_page_literally() -> None:
    odd = failed(cell("hot", 'a_b*|c`\\"'), "x_ *y |z|")
    text = written(make_report([ResultSet([odd])]))
    tree = publish_doctree(text, settings_overrides={"report_level": 5})
    assert not list(tree.findall(lambda node: node.tagname == "system_message"))
    entries = [node.astext() for node in tree.findall(lambda node: node.tagname == "entry")]
    assert entries[:2] == ["Benchmark", 'a_b*|c`\\"']
    assert "x_ *y |z|" in tree.astext()


def test_a_page_shows_traffic_in_place_of_speed(data: Path, tmp_path: Path) -> None:
    results = read_results(data / f"one{ENDING}")
    for result in results:
        for run in result.runs:
            objects = result.cell.parameters.objects
            run._metadata |= {"trips": "2 2 3", "network_bytes": f"{objects} {objects}"}
            if result.cell.contender == "zeo":
                run._metadata["cache_trips"] = "1 1"
    ResultFiles(data / f"one{ENDING}").write(results)
    counting = Experiment("small", [Run("one", "One", "x.conf", "add -c 1", traffic=True)])
    (page,) = make_pages([counting], data, tmp_path / "made")
    text = page.read_text(encoding="utf-8")
    publish_doctree(text, settings_overrides={"halt_level": 2})
    assert "Objects per second" not in text
    assert "2 to 3 + 1" in text
    assert [path.name for path in page.parent.iterdir()] == [page.name]


class FakeCommand:
    """A stand-in for zodbshootout that records its command lines and leaves result files."""

    def __init__(self, statuses: list[int]) -> None:
        self.commands: list[list[str]] = []
        self.statuses = statuses

    def __call__(self, words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(words)
        path = Path(words[-1])
        with gzip.open(path, "wt") as file:
            json.dump({}, file)
        ResultFiles(path).cells.touch()
        ResultFiles(path).directory.mkdir(exist_ok=True)
        return subprocess.CompletedProcess(words, self.statuses.pop(0))


@pytest.fixture
def fake_command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeCommand]:
    def install(*statuses: int) -> FakeCommand:
        fake = FakeCommand(list(statuses))
        monkeypatch.setattr(subprocess, "run", fake)
        return fake

    return install


def test_an_interrupted_run_is_resumed_and_a_complete_one_kept(
    tmp_path: Path, fake_command: Callable[..., FakeCommand]
) -> None:
    runs = fake_command(130, 0)
    with pytest.raises(SystemExit, match="one: exit status 130; the same command continues"):
        command.measure(SMALL, tmp_path)
    assert runs.commands[0][3:-1] == ["x.conf", "add", "--at-most", "1", "-o"]
    command.measure(SMALL, tmp_path)
    assert runs.commands[1][-2] == "--resume"
    command.measure(SMALL, tmp_path)
    assert len(runs.commands) == 2
    there = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))
    assert there == ["data", "data/one.cells.jsonl", f"data/one{ENDING}", "running"]


@pytest.mark.slow
def test_the_committed_pages_match_the_committed_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Charts take most of the time, and depend on the version of the drawing package.
    monkeypatch.setattr(drawing, "write_svg", lambda report, console: None)
    kept = ROOT / "docs" / "results"
    make_pages(EXPERIMENTS, kept / "data", tmp_path / "made")
    made = {path.name: path for path in (tmp_path / "made").iterdir()}
    assert made.keys() == {path.name for path in (kept / "made").iterdir()}
    for name, path in made.items():
        # Charts depend on the version of the drawing package.
        if path.suffix != ".svg":
            text = (kept / "made" / name).read_text(encoding="utf-8")
            assert text == path.read_text(encoding="utf-8"), name
