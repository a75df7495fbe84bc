"""The names that plug-ins import are documented, and our own examples import no others."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import re
from importlib.metadata import EntryPoint, version
from pathlib import Path
from types import ModuleType

import pytest
from packaging.version import Version

import zodbshootout
from zodbshootout import api
from zodbshootout.plugins import BrokenPlugin, load_plugin

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
PAGE = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
NAMES = sorted(path.stem for path in Path(api.__file__).parent.glob("*.py"))
MODULES = {name: importlib.import_module(f"zodbshootout.api.{name}") for name in NAMES[1:]}
DIRECTIVE = re.compile(
    r"^\.\. (?P<kind>autoclass|autofunction|autoexception|data):: (?P<name>\w+)(?:\(.*\))?\n"
    r"(?:    :members: (?P<members>.+(?:\n {8}.+)*)\n)?",
    re.MULTILINE,
)


def documented(module: ModuleType) -> list[re.Match[str]]:
    """Return the directives in the section of the page that is about a module."""
    _, _, section = PAGE.partition(f".. module:: {module.__name__}\n")
    return list(DIRECTIVE.finditer(section.partition("\n.. module::")[0]))


@pytest.mark.parametrize("module", list(MODULES.values()), ids=list(MODULES))
def test_the_page_lists_exactly_the_names_of_the_api(module: ModuleType) -> None:
    names = [match["name"] for match in documented(module)]
    assert sorted(names) == sorted(module.__all__)


@pytest.mark.parametrize("module", list(MODULES.values()), ids=list(MODULES))
def test_every_listed_name_and_member_has_a_docstring(module: ModuleType) -> None:
    for match in documented(module):
        thing = getattr(module, match["name"])
        assert match["kind"] == "data" or inspect.getdoc(thing), match["name"]
        for member in re.findall(r"\w+", match["members"] or ""):
            of_classes = [docstrings(cls).get(member) for cls in inspect.getmro(thing)]
            assert any(of_classes), f"{match['name']}.{member}"


@functools.cache
def docstrings(cls: type) -> dict[str, str]:
    """Return the docstrings of a class's methods and attributes, by name."""
    if not cls.__module__.startswith("zodbshootout."):
        return {}
    (definition,) = ast.parse(inspect.getsource(cls)).body
    assert isinstance(definition, ast.ClassDef)
    functions = [node for node in definition.body if isinstance(node, ast.FunctionDef)]
    docs = {node.name: ast.get_docstring(node) or "" for node in functions}
    constructors = [node.body for node in functions if node.name == "__init__"]
    for body in (definition.body, *constructors):
        for node, following in itertools.pairwise(body):
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                docs.update(dict.fromkeys(assigned(node), str(following.value.value)))
    return docs


def assigned(node: ast.stmt) -> list[str]:
    """Return the names of the attributes that a statement assigns to."""
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
    return [getattr(target, "id", getattr(target, "attr", "")) for target in targets]


def test_the_version_of_the_api_is_that_of_the_release() -> None:
    assert Version(version("zodbshootout")).release[:2] == api.VERSION


def test_a_plugin_for_another_release_is_told_which_one_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "newer_plugin.py").write_text("from zodbshootout.api.benchmarks import Tomorrow\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("newer", "newer_plugin:Newer", "zodbshootout.benchmarks")
    with pytest.raises(BrokenPlugin) as raised:
        load_plugin(entry)
    message = str(raised.value)
    assert message.startswith("cannot import newer_plugin:Newer, the entry point newer of ")
    needed = ".".join(map(str, api.VERSION))
    assert f"; install a release of its package for zodbshootout {needed}, or uni" in message


def test_the_example_plugins_and_their_tests_import_nothing_else_of_zodbshootout() -> None:
    entry_points = re.findall(r'^\w+ = "(\w+):\w+"$', read("pyproject.toml"), re.MULTILINE)
    plugins = [f"{name}/__init__.py" for name in entry_points if (EXAMPLES / name).is_dir()]
    plugins += [f"{name}.py" for name in entry_points if not (EXAMPLES / name).is_dir()]
    tests = [f"test_{name.removeprefix('shootout_')}.py" for name in entry_points]
    assert len(plugins) == len(tests) >= 4
    imported = {
        str(node.module)
        for name in plugins + tests
        for node in ast.walk(ast.parse(read(name)))
        if isinstance(node, ast.ImportFrom)
    }
    ours = {name for name in imported if name.startswith("zodbshootout")}
    assert ours <= {module.__name__ for module in MODULES.values()}


def read(name: str) -> str:
    return (EXAMPLES / name).read_text(encoding="utf-8")


def test_every_group_of_entry_points_has_a_module_and_an_example() -> None:
    home = Path(zodbshootout.__file__).parent
    sources = [path.read_text(encoding="utf-8") for path in home.rglob("*.py")]
    groups = set(re.findall(r'^ENTRY_POINTS = "(.+)"$', "\n".join(sources), re.MULTILINE))
    assert groups == {f"zodbshootout.{name}" for name in MODULES if name != "testing"}
    registered = re.findall(r'entry-points\."(.+)"', read("pyproject.toml"))
    assert sorted(registered) == sorted(groups)
    page = (ROOT / "docs" / "extending.rst").read_text(encoding="utf-8")
    assert re.findall(r":start-at: (zodbshootout\.\w+)$", page, re.MULTILINE) == registered
