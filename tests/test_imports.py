"""The import contracts in pyproject.toml, and the packages that importing a part loads."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import zodbshootout
from zodbshootout.contenders.making import CARRIED, carry_to

HOME = Path(zodbshootout.__file__).parent
ROOT = Path(__file__).parents[1]


def modules_in(*parts: str) -> list[str]:
    """Return the names of the modules in some parts of the package."""
    paths = [path for part in parts for path in sorted((HOME / part).rglob("*.py"))]
    dotted = (".".join(path.relative_to(HOME.parent).with_suffix("").parts) for path in paths)
    return [name.removesuffix(".__init__") for name in dotted]


def loaded_after(*names: str, before: str = "import sys") -> set[str]:
    """Return the top-level packages that a new interpreter has after importing modules."""
    code = f"{before}\nimport {', '.join(names)}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def check_contracts(home: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    return subprocess.run(
        command, cwd=home, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": "src", "COLUMNS": "200", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("client/protocol.py", "import zodbshootout.crews.crew"),
        ("results/cell.py", "import zodbshootout.scheduling.plan"),
        ("client/protocol.py", "import rich"),
        ("scheduling/plan.py", "import pyperf"),
        ("reports/elements.py", "import zodbshootout.contenders.contender"),
    ],
)
def test_the_contracts_reject_a_forbidden_import(module: str, line: str, tmp_path: Path) -> None:
    shutil.copytree(HOME, tmp_path / "src" / "zodbshootout")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    path = tmp_path / "src" / "zodbshootout" / module
    path.write_text(f"{path.read_text()}\n{line}\n")
    done = check_contracts(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"zodbshootout.{module.replace('/', '.').removesuffix('.py')}" in done.stdout


def test_the_documentation_draws_the_layers_of_the_contract() -> None:
    contract = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    layers = re.findall(r'"(.+)"', contract.partition("\nlayers = [")[2].partition("\n]")[0])
    drawing = (ROOT / "docs" / "layers.svg").read_text(encoding="utf-8")
    rows = re.findall(r'fill="(#\w+)" stroke.*\n.*?"bold">(.*?)<', drawing)
    assert [row.replace(", ", " | ") for _, row in rows] == layers[1:]  # cli, below __main__
    orange = {name for color, row in rows if color == "#fbe6c8" for name in row.split(", ")}
    carried = {name.removesuffix(".py") for name in CARRIED if not name.startswith("api/")}
    assert orange == carried - {"__init__"}


@pytest.mark.slow
def test_modules_copied_to_another_python_parse_as_python_3_9() -> None:
    for name in CARRIED:
        carried = HOME / name
        for path in [carried] if carried.is_file() else carried.rglob("*.py"):
            ast.parse(path.read_text(), feature_version=(3, 9))


@pytest.mark.slow
def test_modules_copied_to_another_python_import_no_other_part_of_the_package(
    tmp_path: Path,
) -> None:
    carry_to(tmp_path)
    for path in (tmp_path / "zodbshootout").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("zodbshootout."):
                _, part, *_ = (node.module or "").split(".")
                assert part in {name.removesuffix(".py") for name in CARRIED}, path


def test_the_example_benchmark_and_storage_need_only_modules_copied_to_another_python(
    tmp_path: Path,
) -> None:
    modules = carry_to(tmp_path / "modules")
    path = os.pathsep.join([str(modules), str(ROOT / "docs" / "examples")])
    code = "import shootout_acme, shootout_by_oid, zodbshootout; print(zodbshootout.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert Path(done.stdout.strip()).is_relative_to(modules)


@pytest.mark.slow
def test_importing_the_client_loads_no_unneeded_package() -> None:
    unwanted = {"pyperf", "rich", "hdrh", "objgraph", "platformdirs", "psutil", "gevent"}
    storages = {"ZEO", "relstorage", "zodburi"}
    of_plugins = ("zodbshootout.api.benchmarks", "zodbshootout.api.storages")
    loaded = loaded_after(*of_plugins, *modules_in("client"))
    assert loaded & (unwanted | storages) == set()


@pytest.mark.slow
def test_showing_results_loads_no_zodb(tmp_path: Path) -> None:
    file, page = str(ROOT / "docs/results/data/tutorial.json.gz"), str(tmp_path / "page")
    commands = [["report", file, "-o", page, "--format", "html"]]
    for form in ("text", "csv", "json"):
        commands.append(["show", file, "--format", form])
        commands.append(["compare", file, "--contender", "zeo", "postgresql", "--format", form])
    unwanted = {"ZODB", "BTrees", "persistent", "ZConfig", "ZEO", "relstorage"}
    code = (
        "import sys\n"
        "from zodbshootout.cli.main import main\n"
        f"statuses = {{main(command) for command in {commands}}}\n"
        f"print(statuses, {unwanted} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "{0} set()", done.stderr


@pytest.mark.slow
def test_a_fork_server_loads_only_pyperf_besides_what_clients_need() -> None:
    code = "import sys; sys.modules['psutil'] = None  # pyperf would use it"
    unwanted = {"rich", "hdrh", "objgraph", "platformdirs", "distributed", "gevent"}
    loaded = loaded_after("zodbshootout.workers.fork_server", before=code)
    assert "pyperf" in loaded
    assert loaded & unwanted == set()
