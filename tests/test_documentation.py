"""The documentation shows commands, options and files that exist."""

from __future__ import annotations

import ast
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import ZConfig
from docutils import nodes
from docutils.core import publish_doctree
from packaging.version import Version

from tests.documented import DOCS, LITERAL, PAGES, ROOT, blocks, commands
from zodbshootout.cli.main import command_in, parser_of
from zodbshootout.cli.output import project_url
from zodbshootout.cli.parser import parse as parsed
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

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXAMPLES = DOCS / "examples"
SCHEMA = ROOT / "src" / "zodbshootout" / "config" / "schema.xml"
DATA_DIRECTORY = "/var/bench"
"""The directory for data that the pages assume."""
EXAMPLE_BENCHMARK = "by_oid"
"""A benchmark that a page shows how to add."""


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
        servers = [server_of(section, context).name for section in configuration.servers]
        servers += [section.name for section in configuration.external]
    contenders = contenders_of(configuration)
    assert contenders
    unused = [
        name
        for name in servers
        if not any(name in {**one.servers, **one.external} for one in contenders)
    ]
    assert unused == []


@pytest.mark.parametrize(
    "words", [pytest.param(command.words, id=command.place) for command in commands()]
)
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
        parsed(typed)
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


def test_the_page_of_benchmarks_says_how_many_there_are() -> None:
    text = (DOCS / "benchmarks.rst").read_text(encoding="utf-8")
    assert f"There are {len(benchmarks())} benchmarks." in text


def test_the_page_of_checks_quotes_messages_of_clients() -> None:
    page = (DOCS / "checks.rst").read_text(encoding="utf-8").partition(".. list-table::")[2]
    rows = re.findall(r"\* - (``.+?``)\n {6}- ", page, re.DOTALL)
    quoted = [" ".join(quotation.split()) for quotation in re.findall("``(.+?)``", " ".join(rows))]
    assert len(quoted) > 25
    printed = list(messages(ROOT / "src" / "zodbshootout" / "client"))
    unknown = [
        part
        for message in quoted
        for part in re.split(r"\b[NM]\b|…|; ", message)
        if not any(part.strip() in text for text in printed)
    ]
    assert unknown == []


def messages(package: Path) -> Iterator[str]:
    """Yield the strings in a package, with an ellipsis in place of each expression."""
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (
                    part.value if isinstance(part, ast.Constant) else "…" for part in node.values
                )
                yield "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_the_configuration_page_lists_exactly_the_samples() -> None:
    text = (DOCS / "configuration.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^``([\w-]+)``$", text.partition("Contenders\n===")[0], re.MULTILINE)
    assert sorted(listed) == sorted(samples())


@pytest.mark.parametrize("product", ["zeo", "postgresql", "mysql", "memcached"])
def test_the_page_of_a_server_mentions_every_key_of_its_section(product: str) -> None:
    keys = {key for key, _ in ZConfig.loadSchema(str(SCHEMA)).gettype(f"{product}server") if key}
    page = (DOCS / f"{product}.rst").read_text(encoding="utf-8")
    assert [key for key in sorted(keys) if f"``{key}" not in page] == []


class Installed:
    """A Python that has the examples of plug-ins with their entry points."""

    def __init__(self, directory: Path) -> None:
        """Install them for programs that run in this *directory*."""
        self.directory = directory
        project = tomllib.loads((EXAMPLES / "pyproject.toml").read_text(encoding="utf-8"))
        self.groups: dict[str, dict[str, str]] = project["project"]["entry-points"]
        information = directory / "examples-1.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: examples\nVersion: 1\n")
        entry_points = ConfigParser()
        entry_points.read_dict(self.groups)
        with (information / "entry_points.txt").open("w") as file:
            entry_points.write(file)

    def output_of(self, module: str, *arguments: object) -> str:
        """Run a module as a program that succeeds; return its output."""
        path = os.pathsep.join([str(self.directory), str(EXAMPLES), *filter(None, sys.path)])
        done = subprocess.run(
            [sys.executable, "-m", module, *map(str, arguments)],
            check=False, capture_output=True, text=True, timeout=200, cwd=self.directory,
            env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


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


@pytest.mark.parametrize(("builder", "links"), [("man", 1), ("html", 2)])
def test_the_page_for_man_links_to_no_other_page(builder: str, links: int) -> None:
    document = publish_doctree("See `the page`__ and `ZODB <https://zodb.org>`_.\n\n__ .")
    next(document.findall(nodes.reference))["internal"] = True
    app = mock.Mock()
    app.builder.name = builder
    runpy.run_path(str(DOCS / "conf.py"))["name_pages"](app, document, "manual")
    assert document.astext().strip() == "See the page and ZODB."
    assert len(list(document.findall(nodes.reference))) == links


@pytest.mark.servers
def test_the_example_plugins_pass_their_tests(installed: Installed) -> None:
    names = [name for points in installed.groups.values() for name in points]
    tests = [EXAMPLES / f"test_{name}.py" for name in names]
    installed.output_of("pytest", "-q", "-p", "no:cacheprovider", *tests)


@pytest.mark.servers
def test_one_run_uses_all_example_plugins(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "my.conf").write_text(
        "%import acme\n%import webserver\n<webserver web/>\n"
        "<acme speedy>\npath $scratch/$web_port\n</acme>\n"
    )
    words = shlex.split("my.conf by_oid --object-counts 10 -c 1 -p 1 -n 1 -l 1 -o out.json")
    installed.output_of("zodbshootout", *words)
    shown = installed.output_of("zodbshootout", "show", "out.json", "--format", "tsv")
    assert "\tspeedy\n" in shown
    assert "unknown: " not in shown
