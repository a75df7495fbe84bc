"""Type what the documentation says, with the wheel alone, outside the sources."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documented import DOCS, ROOT, Command, commands
from tests.integration.command import LONGEST, left_behind, open_directory
from tests.wheel import install_wheel
from zodbshootout.cli.main import command_in
from zodbshootout.client.benchmarks import benchmarks

ASSUMED = re.compile(
    r"/srv/|(my|remote|zodb)\.conf|(main|x)\.workload|(before|monday)\.json|Data\.fs|by_oid|history"
    r"|FILE|zeo://|file://"
)
"""What only the reader of a page has."""
FETCHED = re.compile(r"--against|bisect|newt-sample|pgjsonb-sample")
"""Commands that ask an index for packages."""
LONG = re.compile(r"website-sample|\ball\b|\bpack\b|--rate|--latency-limit|--define")
"""Commands that take long even if they are brief."""
BRIEF = "-p 1 -n 1 --min-time 0.001 --object-counts 2"


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    """Return the directory of the programs of an environment with the wheel."""
    with open_directory() as directory:
        yield install_wheel(directory)


def typed(command: Command) -> str:
    """Return a command with options that make it brief, or have it open its contenders only."""
    words = command.words.split()
    line = re.sub(r"\s{2,}#.*", "", command.line)
    if command_in(words)[0] != "run" or "--list" in words:
        return line
    if "-o" not in words and (command.page != "README.rst" or LONG.search(line)):
        return f"{line} --list"
    line = re.sub(r" --(at-most|object-counts) \S+|(?<=-c \d),\S+", "", line)
    benchmark = "" if {"--workload", *benchmarks()} & {*words} else "add"
    return f"{line} {benchmark} {BRIEF}"


def by_page() -> dict[str, list[str]]:
    """Return the commands that can run here, each once, if their results are made on their page."""
    pages: dict[str, list[str]] = {}
    opened: set[str] = set()
    for command in commands():
        lines = pages.setdefault(command.page, [])
        line = typed(command)
        read = re.findall(r"(?<!-o )\b[\w-]+\.json", line)
        made = re.findall(r"-o ([\w-]+\.json)", " ".join(lines))
        opens = f"{line.split()[1:2]} {'--workload' in line} {'--hosts' in line}"
        again = line.endswith("--list") and opens in opened
        if ASSUMED.search(command.words) or FETCHED.search(line) or {*read} - {*made} or again:
            continue
        lines.append(line)
        if line != command.line:
            opened.add(opens)
    return {page: lines for page, lines in pages.items() if lines}


def offered(page: str) -> Iterator[Path]:
    """Yield the files that a page offers to its readers."""
    path = ROOT / page if page == "README.rst" else DOCS / page
    for name in set(re.findall(r"<(examples/[\w-]+\.conf)>", path.read_text(encoding="utf-8"))):
        yield DOCS / name


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("page", "lines"), by_page().items(), ids=by_page())
def test_the_commands_of_a_page_work_in_an_environment_with_the_wheel_alone(
    page: str, lines: list[str], programs: Path, place: Path
) -> None:
    for path in offered(page):
        shutil.copy(path, place)
    (place / "tmp").mkdir()
    environment = {
        **{name: text for name, text in os.environ.items() if name != "PYTHONPATH"},
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(place / "tmp"), "XDG_DATA_HOME": str(place / "data"),
    }  # fmt: skip
    for line in lines:
        done = subprocess.run(
            ["bash", "-c", line],
            check=False, capture_output=True, text=True, cwd=place, env=environment,
            stdin=subprocess.DEVNULL, timeout=LONGEST,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    assert left_behind(place) == []
