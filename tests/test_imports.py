"""Which way imports point, and what each part may know of the world outside."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import zodbshootout
from zodbshootout.environments.modules import CARRIED

HOME = Path(zodbshootout.__file__).parent
PACKAGE = "zodbshootout"

ORDER = (
    ("cli", "__main__"),
    ("launching",),
    ("hosts", "clusters", "sides", "destination", "zapping", "selecting", "comparing", "reporting"),
    ("show",),
    ("options", "words", "arguments", "argument_values"),
    ("shootout",),
    ("ledger", "progress", "reports"),
    ("compare",),
    ("perf",),
    ("preparing",),
    ("plan",),
    ("result_files",),
    ("result_kinds",),
    ("results",),
    ("engine",),
    ("estimate",),
    ("contenders",),
    ("servers", "environments"),
    ("config", "mysql", "newt"),
    ("guardian", "streams"),
    ("model",),
    ("crews",),
    ("logs",),
    ("masking",),
    ("client",),
)
"""What stands higher may import what stands lower, or beside it, and never the reverse."""

FORBIDDEN = {
    "client": {"pyperf", "rich", "hdrh", "objgraph", "platformdirs"},
    "crews": {"pyperf", "rich", "hdrh"},
    "engine": {"pyperf", "rich", "hdrh", "ZODB", "ZEO", "relstorage"},
    "reports": {"ZODB", "ZEO", "relstorage", "ZConfig"},
    "results": {"ZODB", "ZEO", "relstorage", "ZConfig"},
    "result_files": {"ZODB", "ZEO", "relstorage", "ZConfig", "rich"},
    "model": {"pyperf", "rich", "ZODB", "ZEO", "relstorage"},
    "config": {"pyperf", "rich"},
    "contenders": {"pyperf", "rich", "hdrh"},
    "servers": {"pyperf", "rich", "hdrh"},
}
"""What must not be imported anywhere in a part, not even late."""

LATE = {"client": {"ZEO", "relstorage", "zodburi"}}
"""What may be imported only when it is needed."""


def part_of(module: str) -> str:
    """Return the part of ours that a module belongs to."""
    return module.split(".")[1] if "." in module else ""


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(HOME.rglob("*.py")):
        words = [PACKAGE, *path.relative_to(HOME).with_suffix("").parts]
        found[".".join(words[:-1] if words[-1] == "__init__" else words)] = path
    return found


MODULES = modules()


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Return the modules that are imported in *path*, and whether that is when it is imported."""
    tree = ast.parse(path.read_text())
    late = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) not in late
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{path}: relative imports hide where they lead"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module, id(node) not in late


def test_every_part_has_its_place() -> None:
    placed = [name for level in ORDER for name in level]
    assert len(placed) == len(set(placed))
    assert {part_of(module) for module in MODULES} - {""} == set(placed)


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_downwards(module: str) -> None:
    level = {name: number for number, names in enumerate(ORDER) for name in names}
    own = part_of(module)
    ours = [name for name, _ in imports(MODULES[module]) if name.startswith(f"{PACKAGE}.")]
    upwards = [name for name in ours if own and level[part_of(name)] < level[own]]
    assert upwards == []
    beside = [
        name for name in ours if own and own != part_of(name) and level[part_of(name)] == level[own]
    ]
    assert [name for name in beside if _leads_back(name, module)] == []


def _leads_back(module: str, goal: str) -> bool:
    """Say whether *module* imports *goal*, be it through others."""
    seen: set[str] = set()
    to_see = [module]
    while to_see:
        each = to_see.pop()
        if each == goal:
            return True
        if each not in seen:
            seen.add(each)
            to_see += [name for name, _ in imports(MODULES[each]) if name in MODULES]
    return False


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_imported_that_a_part_must_not_know(module: str) -> None:
    found = list(imports(MODULES[module]))
    own = part_of(module)
    known = {name.split(".")[0] for name, _ in found}
    assert known & FORBIDDEN.get(own, set()) == set()
    early = {name.split(".")[0] for name, at_once in found if at_once}
    assert early & LATE.get(own, set()) == set()


CLIENT = [module for module in MODULES if part_of(module) == "client"]
CARRIED_PARTS = {name.removesuffix(".py") for name in CARRIED} - {"__init__"}
ELSEWHERE = [module for module in MODULES if part_of(module) in CARRIED_PARTS]
"""What runs in another Python."""


@pytest.mark.parametrize("module", ELSEWHERE)
def test_what_runs_elsewhere_is_written_for_python_3_9(module: str) -> None:
    ast.parse(MODULES[module].read_text(), feature_version=(3, 9))


@pytest.mark.parametrize("module", ELSEWHERE)
def test_what_runs_elsewhere_names_nothing_of_ours_that_is_not_there(module: str) -> None:
    ours = {name for name, _ in imports(MODULES[module]) if name.split(".")[0] == PACKAGE}
    assert {part_of(name) for name in ours} <= CARRIED_PARTS


@pytest.mark.parametrize("module", CLIENT)
def test_the_client_names_nothing_of_ours_but_itself(module: str) -> None:
    ours = {name for name, _ in imports(MODULES[module]) if name.split(".")[0] == PACKAGE}
    assert all(part_of(name) == "client" for name in ours), ours


def loaded_after(*imported: str) -> set[str]:
    """Return the modules that are there once a new interpreter has imported some."""
    code = f"import sys\nimport {', '.join(imported)}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def roots(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def test_a_client_that_was_imported_has_brought_nothing_that_it_does_not_need() -> None:
    loaded = loaded_after(*CLIENT)
    ours = {name for name in loaded if name.split(".")[0] == PACKAGE}
    assert {part_of(name) for name in ours} == {"", "client"}
    unwanted = FORBIDDEN["client"] | LATE["client"] | {"psutil", "gevent"}
    assert roots(loaded) & unwanted == set()


def test_reports_bring_no_zodb_and_crews_and_the_engine_no_pyperf() -> None:
    reports = [module for module in MODULES if part_of(module) == "reports"]
    assert roots(loaded_after(*reports)) & {"ZODB", "ZEO", "relstorage"} == set()
    below = [module for module in MODULES if part_of(module) in {"crews", "engine"}]
    assert roots(loaded_after(*below)) & {"pyperf", "rich", "hdrh"} == set()
