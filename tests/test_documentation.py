"""The documentation shows commands, options and files that exist."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import ZConfig
from docutils import nodes
from docutils.core import publish_doctree
from packaging.version import Version

from zodbshootout.cli import options
from zodbshootout.cli.main import command_in, parser_of
from zodbshootout.cli.output import project_url
from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.config.configuration import parse
from zodbshootout.config.sample_files import samples, workloads
from zodbshootout.config.source import Source
from zodbshootout.contenders import releases
from zodbshootout.contenders.contender import contenders_of
from zodbshootout.guardian import Guardian
from zodbshootout.servers import address
from zodbshootout.servers.address import given_names
from zodbshootout.servers.running import server_of
from zodbshootout.servers.server import ServerContext

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
SCHEMA = ROOT / "src" / "zodbshootout" / "config" / "schema.xml"
PAGES = [ROOT / "README.rst", *sorted(DOCS.glob("*.rst")), *sorted(DOCS.glob("results/*.rst"))]
DATA_DIRECTORY = "/var/bench"
"""The directory for data that the pages assume."""
EXAMPLE_BENCHMARK = "by_oid"
"""A benchmark that a page shows how to add."""

CONSOLE = re.compile(r"\.\. code-block:: console")
LITERAL = re.compile(r"(?!\.\.).*::|( *)::")
GROUP = re.compile(r'\[project\.entry-points\."(?P<name>[\w.]+)"\]')
COMMAND = re.compile(
    r"(?:\$ )?(?:[A-Z]+=\S+ )?(?:\.venv/bin/)?zodbshootout(?P<words> [^[]*?|)(?: > \S+)?"
)
"""A line that runs zodbshootout; a synopsis, which has brackets, does not match."""


def blocks(page: Path, introduction: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each indented block after a line such as *introduction*."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if introduction.fullmatch(line.strip()):
            indent = len(line) - len(line.lstrip())
            end = re.compile(rf" {{0,{indent}}}\S")
            inside = (
                n for n, candidate in enumerate(lines) if n >= number and end.match(candidate)
            )
            block = "\n".join(lines[number : next(inside, None)])
            yield f"{page.name}:{number}", textwrap.dedent(block).strip("\n")


def configurations() -> list[Any]:
    return [
        pytest.param(text, id=place)
        for page in PAGES
        for place, text in blocks(page, LITERAL)
        if text.startswith(("%", "<"))
    ] + [
        pytest.param(path.read_text(encoding="utf-8"), id=path.name)
        for path in sorted(EXAMPLES.glob("*.conf"))
    ]


def commands() -> list[Any]:
    return [
        pytest.param(match["words"], id=place)
        for page in PAGES
        for introduction in (CONSOLE, LITERAL)
        for place, text in blocks(page, introduction)
        for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines()
        if (match := COMMAND.fullmatch(line))
    ]


@pytest.mark.parametrize("text", configurations())
def test_every_configuration_can_be_read_and_every_server_in_it_is_used(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(tmp_path / "x.conf", text.replace(DATA_DIRECTORY, str(tmp_path)))
    for name in source.environment_names:
        monkeypatch.setenv(name, "secret")
    # An address in the manual is that of no host here.
    monkeypatch.setattr(address, "reserved_port", lambda _: nullcontext(4321))
    with given_names(source, tmp_path) as names:
        configuration = parse(source, names)
        context = ServerContext(tmp_path, source, names, mock.Mock(spec=Guardian))
        servers = [server_of(section, context) for section in configuration.servers]
    contenders = contenders_of(configuration)
    assert contenders
    unused = [
        server.name
        for server in servers
        if not any(server.name in contender.servers for contender in contenders)
    ]
    assert unused == []


@pytest.mark.parametrize("words", commands())
def test_every_command_line_can_be_parsed(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    Path("my.conf").touch()
    Path("remote.conf").touch()
    for name in ("out.json", "out.cells.jsonl"):  # for last
        Path(name).touch()
    for path in EXAMPLES.glob("*.conf"):
        shutil.copy(path, here)
    for checkout in ("../before", "../RelStorage"):
        Path(checkout).mkdir(exist_ok=True)
        (Path(checkout) / "pyproject.toml").touch()
    typed = [word for word in shlex.split(words, comments=True) if word != EXAMPLE_BENCHMARK]
    for name in ("main", "x"):
        shutil.copy(workloads()["sessions"], f"{name}.workload")
    # No index is asked: each package has one release.
    only = Version("9.9")
    monkeypatch.setattr(releases, "_newest", lambda _, left: None if "!=" in str(left) else only)
    command, rest = command_in(typed)
    if command == "run":
        options.parse(typed)
    else:
        parser_of(command).parse_intermixed_args(rest)


@pytest.mark.parametrize(
    ("page", "command"),
    [
        ("manual.rst", "run"),
        ("results.rst", "show"),
        ("comparing.rst", "compare"),
        ("report.rst", "report"),
        ("recording.rst", "workload"),
        ("own-application.rst", "workload make"),
    ],
)
def test_a_page_documents_exactly_the_options_of_its_command(page: str, command: str) -> None:
    assert options_on(page) | {"-h", "--help"} == set(parser_of(command).option_names)


def options_on(page: str) -> set[str]:
    """Return the options that a page describes."""
    text = (DOCS / page).read_text(encoding="utf-8")
    described = re.findall(r"^\.\. option:: (.+(?:\n {12}-.+)*)", text, re.MULTILINE)
    return {name for synopsis in described for name in re.findall(r"(?<![\w-])-[\w-]+", synopsis)}


def test_the_page_about_commits_documents_what_bisect_has_beside_the_options_of_a_run() -> None:
    own, of_run = (set(parser_of(command).option_names) for command in ("bisect", "run"))
    documented = options_on("bisect.rst")
    assert own - of_run <= documented <= own


def test_the_page_of_benchmarks_says_how_many_there_are() -> None:
    text = (DOCS / "benchmarks.rst").read_text(encoding="utf-8")
    assert f"There are {len(benchmarks())}." in text


def test_the_configuration_page_lists_exactly_the_samples() -> None:
    text = (DOCS / "configuration.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^``([\w-]+)``$", text.partition("Contenders\n===")[0], re.MULTILINE)
    assert sorted(listed) == sorted(samples())


@pytest.mark.parametrize("product", ["zeo", "postgresql", "mysql", "memcached"])
def test_the_page_of_a_server_mentions_every_key_of_its_section(product: str) -> None:
    keys = {key for key, _ in ZConfig.loadSchema(str(SCHEMA)).gettype(f"{product}server") if key}
    page = (DOCS / f"{product}.rst").read_text(encoding="utf-8")
    assert [key for key in sorted(keys) if f"``{key}" not in page] == []


def run_tests(*tests: Path, cwd: Path, modules: Sequence[Path]) -> None:
    """Run *tests* in a new interpreter that searches the directories *modules* first."""
    path = os.pathsep.join([*map(str, modules), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, tests)],
        check=False, capture_output=True, text=True, timeout=200, cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.servers
def test_the_examples_that_entry_points_register_pass_their_tests(tmp_path: Path) -> None:
    lines = (EXAMPLES / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    starts = [number for number, line in enumerate(lines) if GROUP.fullmatch(line)]
    assert len(starts) == 3
    installed = tmp_path / "examples-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: examples\nVersion: 1\n")
    registered = [GROUP.sub(r"[\g<name>]", line) for n in starts for line in lines[n : n + 2]]
    (installed / "entry_points.txt").write_text("\n".join(registered).replace('"', ""))
    tests = [EXAMPLES / f"test_{name}.py" for name in ("by_oid", "acme", "tsv")]
    run_tests(*tests, cwd=tmp_path, modules=[tmp_path, EXAMPLES])


def code_block(beginning: str) -> str:
    """Return the only code block of extending.rst that begins with *beginning*."""
    examples = [
        text
        for _, text in blocks(DOCS / "extending.rst", re.compile(r"\.\. code-block:: \w+"))
        if text.startswith(beginning)
    ]
    assert len(examples) == 1
    return examples[0]


def insert(path: Path, before: str, text: str) -> None:
    """Insert a text before the line that begins with *before*, indented like that line."""
    whole = path.read_text(encoding="utf-8")
    line = re.search(rf"^( *){re.escape(before)}", whole, re.MULTILINE)
    assert line is not None
    added = textwrap.indent(text, line[1]) + "\n"
    path.write_text(whole[: line.start()] + added + whole[line.start() :], encoding="utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of the source tree with the fixtures of the tests of servers."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(
        ROOT / "src" / "zodbshootout", tmp_path / "src" / "zodbshootout", ignore=ignored
    )
    for folder in ("tests", "tests/servers"):
        (tmp_path / folder).mkdir()
        shutil.copy(ROOT / folder / "__init__.py", tmp_path / folder)
    shutil.copy(ROOT / "tests/servers/conftest.py", tmp_path / "tests/servers")
    return tmp_path


@pytest.mark.servers
def test_the_example_server_passes_its_test(tree: Path) -> None:
    package = tree / "src" / "zodbshootout"
    shutil.copy(EXAMPLES / "webserver.py", package / "servers")
    test = shutil.copy(EXAMPLES / "test_webserver.py", tree / "tests" / "servers")
    insert(
        package / "config" / "component.xml", '<sectiontype name="zeo', code_block("<sectiontype")
    )
    running = package / "servers" / "running.py"
    insert(running, '"zeoserver":', code_block('"webserver"'))
    insert(running, "from zodbshootout", "from zodbshootout.servers.webserver import WebServer")
    run_tests(Path(test), cwd=tree, modules=[package.parent, tree])


def test_each_link_of_the_readme_leads_to_a_page_or_a_file_from_wherever_it_is_shown() -> None:
    pages, files = (
        f"{project_url('Documentation')}en/latest/",
        f"{project_url('Source')}/blob/HEAD/",
    )
    raw = files.replace("github.com", "raw.githubusercontent.com").replace("/blob", "")
    readme = publish_doctree((ROOT / "README.rst").read_text(encoding="utf-8"))
    links = [node["refuri"] for node in readme.findall(nodes.reference)]
    links += [node["uri"] for node in readme.findall(nodes.image)]
    for link in links:
        assert link.startswith("https://"), link
        if link.startswith(project_url("Documentation")):
            page = link.removeprefix(pages).replace(".html", ".rst") or "index.rst"
            assert (DOCS / page).is_file(), link
        elif "github" in link:
            assert (ROOT / link.removeprefix(files).removeprefix(raw)).is_file(), link
    assert len(links) > 15
