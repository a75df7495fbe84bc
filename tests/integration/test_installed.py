"""Type what the documentation says, with the wheel alone, outside the sources."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from unittest import mock

import pytest

from tests.documented import DOCS, ROOT, Command, commands
from tests.integration.command import LONGEST, Done, left_behind, open_directory
from tests.integration.zygote import Zygote
from tests.wheel import build_wheel, install_wheel, make_base_python, make_python
from zodbshootout.cli.main import command_in
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.reports import PICTURES, formats

pytestmark = pytest.mark.xdist_group("the wheel")  # which each process would build again
ASSUMED = re.compile(
    r"/srv/|(my|remote|zodb)\.conf|(main|x)\.workload|(before|monday)\.json|Data\.fs|by_oid"
    r"|FILE|zeo://|file://"
)
"""Files and addresses that only the reader of a page has."""
FETCHED = re.compile(r"--against|newt-sample|pgjsonb-sample")
"""Commands that ask an index for packages."""
LONG = re.compile(r"website-sample|\ball\b|\bpack\b|--rate|--latency-limit|--define")
"""Commands that take long even if they are brief."""
NEEDS_SHELL = re.compile(r"[|&;<>$*'\"]")
COMPILE_ALWAYS = "PYTHONDONTWRITEBYTECODE"
"""A variable with which each interpreter would compile the modules of the environment."""
BRIEF = "-p 1 -n 1 --min-time 0.001 --object-counts 2"


@pytest.fixture(scope="module")
def wheel() -> Iterator[Path]:
    with open_directory() as directory:
        yield build_wheel(directory)


@pytest.fixture(scope="module")
def programs(wheel: Path) -> Path:
    """Return the directory of the programs of an environment with the wheel."""
    return install_wheel(make_python(wheel.parent / "environment"), wheel)


@pytest.fixture(scope="module")
def base(wheel: Path) -> Path:
    """Return the directory of the programs of an environment with the wheel, but no extra."""
    return install_wheel(make_base_python(wheel.parent / "base"), wheel)


@pytest.fixture(scope="module")
def forking() -> Iterator[Callable[[Path], Zygote]]:
    """Return a function that returns a process, which forks commands, of some programs."""
    zygotes: dict[Path, Zygote] = {}

    def zygote(programs: Path) -> Zygote:
        if programs not in zygotes:
            with mock.patch.dict(os.environ, {COMPILE_ALWAYS: ""}):
                zygotes[programs] = Zygote("", str(programs / "python"))
        return zygotes[programs]

    yield zygote
    for one in zygotes.values():
        one.end()


def variables_for(programs: Path, place: Path) -> dict[str, str]:
    """Return environment variables with which a shell finds *programs*."""
    (place / "tmp").mkdir()
    return {
        **os.environ, COMPILE_ALWAYS: "",
        "PYTHONPATH": "",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(place / "tmp"), "XDG_DATA_HOME": str(place / "data"),
    }  # fmt: skip


def run(line: str, place: Path, variables: Mapping[str, str], forking: Zygote | None) -> Done:
    """Run a command in a shell, or fork it if it needs none."""
    if forking is None or NEEDS_SHELL.search(line):
        done = subprocess.run(
            ["bash", "-c", line],
            check=False, capture_output=True, text=True, cwd=place, env=variables,
            stdin=subprocess.DEVNULL, timeout=LONGEST,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)
    _, *words = shlex.split(line, comments=True)
    with Path(os.devnull).open() as nothing:
        return Done(*forking.run(words, place, variables, nothing.fileno(), LONGEST))


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
    page: str, lines: list[str], programs: Path, forking: Callable[[Path], Zygote], place: Path
) -> None:
    for path in offered(page):
        shutil.copy(path, place)
    variables = variables_for(programs, place)
    # Those of the first page are typed as a reader does, with the program and new interpreters.
    is_first = page == "README.rst" or sys.platform != "linux"
    for line in lines:
        done = run(line, place, variables, None if is_first else forking(programs))
        assert done.status == 0, f"{line}\n{done.out}{done.err}"
    assert left_behind(place) == []


ONE = "fs.conf add -c 1 --object-counts 2"
FORMATS = {name: "altair" if name in {"html", "svg", "png"} else "" for name in formats()}
ONLY_FOR: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(PICTURES, ("report",)),
    "customSmallerIsBetter": ("show", "report"),
}
"""The commands that can write a format, if not all can."""
WITHOUT_EXTRAS = {
    f"add hot -c 1 {BRIEF} -o a.json": "",
    f"{ONE} --at-most 0.1 -o b.json": "",
    f"--workload sessions fs.conf {BRIEF} -c 1": "",
    "sample": "",
    "sample fs-sample": "",
    "workload sessions": "",
    "compare a.json --contender filestorage zeo --fail-above 100000": "",
    **{
        f"{command} --format {name}": package
        for name, package in FORMATS.items()
        for command in ("show a.json", "compare a.json b.json", "report a.json -o page")
        if command.startswith(ONLY_FOR.get(name, ("",)))
    },
    f"{ONE} --against ZODB==6.0": "uv",
    f"{ONE} --gevent": "gevent",
    f"{ONE} --leaks": "objgraph",
    f"{ONE} --hosts 127.0.0.1:1": "distributed",
    "file:///tmp/x.fs add --list": "zodburi",
    "z.conf add --list": "zc.zlibstorage",
}
"""Commands, with the package that a command wants and that only an extra installs."""
FS = "<filestorage>\npath $scratch/a.fs\n</filestorage>\n"


@pytest.mark.timeout(600)
def test_without_extras_each_command_works_or_names_the_package_that_it_wants(
    base: Path, forking: Callable[[Path], Zygote], place: Path
) -> None:
    (place / "fs.conf").write_text(FS)
    (place / "z.conf").write_text(f"%import zc.zlibstorage\n<zlibstorage>\n{FS}</zlibstorage>\n")
    variables = {**variables_for(base, place), "PATH": f"{base}:/usr/bin:/bin"}  # without our uv
    for words, package in WITHOUT_EXTRAS.items():
        done = run(f"zodbshootout {words}", place, variables, forking(base))
        seen = (words, done.status, done.err)
        assert done.status == (2 if package else 0), seen
        if package:
            assert re.search(rf"\b{package}\b.* not installed|needs {package}", done.complaint), (
                seen
            )
            assert "pip install" in done.complaint, seen
    assert left_behind(place) == []
