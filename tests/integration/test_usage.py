"""Check bad usage, ``--fail-fast`` and ``--report``."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.commands import outcome
from tests.faults.runs import BUSY, GOOD, faulty
from tests.integration.command import left_behind, run


def test_trap_12_fail_fast_stops_at_the_first_failure_and_logs_its_traceback(
    tmp_path: Path,
) -> None:
    (tmp_path / "x.conf").write_text("%import faulty\n" + faulty("raises", "raise") + GOOD)
    words = ("x.conf", "add", "-c", "1", *BUSY, "--fail-fast", "--log", "DEBUG", "-o", "a.json")
    done = run(tmp_path, *words)
    assert done.status == 3
    assert "not run" in done.out
    assert "Traceback (most recent call last)" in done.err


def test_a_run_ends_with_a_report_that_contains_command_and_configuration(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text("# cache\n" + GOOD)
    words = ("x.conf", "add", "-c", "1", *BUSY, "--label", "a b", "-o", "a.json")
    done = run(tmp_path, *words, "--report", "page.md")
    assert done.status == 0, done.err
    assert "\nReport: page.md\nNext:\n" in done.out
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.startswith("# a b\n")
    assert f"    zodbshootout {' '.join(words)} --report page.md".replace("a b", "'a b'") in page
    section = GOOD[GOOD.index("<zodb") :].split()
    listing = page[page.index("good:") : page.index("## Machine")].partition(":")[2]
    assert listing.replace("{scratch}", "scratch").split() == section


BAD = {
    "no such file": (["nowhere.conf"], "zodbshootout: no such file: nowhere.conf"),
    "no contender": (["empty.conf"], "zodbshootout: empty.conf: no contender; write a section"),
    "a key that is none": (["key.conf"], "key.conf:5: 'cache-sise' is not a known key name"),
    "two of one name": (["twice.conf"], "twice.conf:10: two sections are called 'good'"),
    "no such package": (["package.conf"], "package no.such.package is not installed"),
    "no such benchmark": (
        ["good.conf", "clod"],
        "unknown benchmark 'clod'; did you mean load or cold?",
    ),
    "no such contender": (
        ["good.conf", "--only", "goof"],
        "--only: no contender 'goof'; did you mean good?",
    ),
    "a size that is none": (["good.conf", "-s", "many"], "'many' is not a size in bytes"),
    "a count of zero": (["good.conf", "--object-counts", "0"], "'0' is not a positive number"),
    "a concurrency below one": (["good.conf", "-c", "-1"], "'-1' is not a positive number"),
    "an output file that exists": (
        ["good.conf", "-o", "there.json"],
        "-o: there.json exists; name another file, or use --append to add to it",
    ),
    "an output directory that is none": (
        ["good.conf", "-o", "nowhere/out.json"],
        "there is no directory nowhere to write results to",
    ),
    "a report of no format": (
        ["good.conf", "--report", "page.pdf"],
        "--report: page.pdf: no format ends in '.pdf'",
    ),
    "a report that is a directory": (
        ["good.conf", "--report", "."],
        "--report: . is a directory; name a file, such as page.html",
    ),
    "a name that is too long": (
        ["good.conf", "-o", "a" * 300],
        f"zodbshootout: {'a' * 300}: File name too long",
    ),
    "a name whose files have names that are too long": (
        ["good.conf", "-o", f"{'a' * 245}.json"],
        ".cells.jsonl: File name too long",
    ),
    "a report whose name is too long": (
        ["good.conf", "--report", f"{'a' * 300}.md"],
        "File name too long",
    ),
    "an environment whose name is too long": (
        ["good.conf", "--against", f"./{'a' * 300}"],
        "a" * 300,  # to Python 3.14, it is the name of no file
    ),
    "a report to nowhere": (
        ["good.conf", "--report", "nowhere/page.html"],
        "there is no directory nowhere to write results to",
    ),
    "something else to append to": (
        ["good.conf", "--append", "there.json"],
        "--append: there.json was not written by pyperf",
    ),
}


IN_A_PROCESS = ("no such file", "two of one name", "an output file that exists")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "good.conf").write_text(GOOD)
    (tmp_path / "empty.conf").write_text("# nothing\n")
    (tmp_path / "key.conf").write_text(GOOD.replace("</zodb>", "cache-sise 5\n</zodb>"))
    (tmp_path / "twice.conf").write_text(GOOD + GOOD)
    (tmp_path / "package.conf").write_text("%import no.such.package\n" + GOOD)
    (tmp_path / "there.json").write_text("{}")
    (tmp_path / "tmp").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", BAD)
def test_bad_input_prints_one_line_and_returns_2_before_measuring(
    name: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setattr(tempfile, "tempdir", str(home / "tmp"))
    words, message = BAD[name]
    status, out, err = outcome(*words)
    (line,) = err.splitlines()
    assert message in line
    assert (status, out) == (2, "")
    assert list((home / "tmp").iterdir()) == []
    assert [path.name for path in home.rglob("*.json")] == ["there.json"]


@pytest.mark.parametrize("name", IN_A_PROCESS)
def test_the_process_exits_with_status_2_on_bad_input(name: str, home: Path) -> None:
    words, message = BAD[name]
    done = run(home, *words)
    assert done.status == 2
    assert message in done.complaint
    assert done.out == ""
    assert left_behind(home) == []
