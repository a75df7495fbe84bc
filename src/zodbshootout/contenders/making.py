"""Environments whose packages uv installs for a single run.

Packages that replace installed ones go into a directory that precedes the installed packages on the
module path of the command's own Python.  Packages of a separate environment go into a virtual
environment.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from typing import IO

from zodbshootout.config.pythons import Environment, is_direct
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian, last_lines
from zodbshootout.model.specification import Interpreter, for_another_python, variables_for

CARRIED = (
    "__init__.py",
    "api/__init__.py",
    "api/benchmarks.py",
    "api/storages.py",
    "client",
    "crews",
    "errors.py",
    "guardian.py",
    "model",
    "network",
    "mysql",
    "newt",
    "plugins.py",
    "recording",
    "versions.py",
    "workers",
)
"""Our modules that run in a worker.  These modules need only pyperf, ZODB and the storage."""
OLDEST = (3, 9)
"""The oldest Python that clients run on."""
_PROBE_TIMEOUT = 60.0
"""Seconds to wait for a Python's answer to :data:`_PROBE`."""
_INSTALL_TIMEOUT = 3600.0
"""Seconds that an installation may take, including builds of packages without wheels."""
_PROBE = """
import json, platform, sys
try:
    import ZODB
    flaw = ""
except Exception as error:
    flaw = "%s: %s" % (type(error).__name__, error)
print(json.dumps({
    "version": list(sys.version_info[:3]), "implementation": platform.python_implementation(),
    "flaw": flaw,
}))
"""


@dataclass(frozen=True)
class _Python:
    """A Python's answer to the probe."""

    version: tuple[int, ...]
    implementation: str
    flaw: str
    """The reason why ZODB cannot be imported; empty if it can be."""


@dataclass(frozen=True)
class Maker:
    """Creates environments in a directory of the run."""

    guardian: Guardian
    directory: Path
    tell: Callable[[str], None] = lambda _: None
    """A function that takes messages about progress."""

    def interpreter(self, environment: Environment, modules: Path) -> Interpreter:
        """Create an environment and return its Python.

        *modules* is the directory to which :func:`carry_to` has copied our modules.

        :raises UserError: if uv fails, or the Python is too old or lacks ZODB
        """
        python, path = _base(environment), str(modules)
        if environment.requirements:
            self.tell(f"making environment {environment.name}: {environment.description}")
            place = Path(mkdtemp(prefix="environment-", dir=self.directory))
            try:
                requirements = _copied(environment.requirements, place / "sources")
                if environment.keeps_installed:
                    packages = self._changed(python, requirements, place / "packages")
                    path = f"{path}{os.pathsep}{packages}"
                else:
                    python = self._virtual(python, requirements, place / "packages")
            except (OSError, UserError) as error:
                message = f"environment {environment.name} cannot be made: {error}"
                raise UserError(message) from error
        sees_ours = environment.is_ours or environment.keeps_installed
        interpreter = Interpreter(environment.name, str(python), path, sees_ours)
        flaw = _probed(interpreter).flaw
        if flaw:
            raise UserError(f"environment {environment.name} has no working ZODB: {flaw}")
        return interpreter

    def _changed(self, python: Path, requirements: Sequence[str], directory: Path) -> Path:
        """Install into *directory* the packages that uv would change; leave *python* as it is."""
        install = ["pip", "install", "--python", str(python)]
        asked = [*install, "--dry-run", "--break-system-packages", "--output-format", "json"]
        changes = json.loads(self._uv(asked, requirements))["changes"]
        versions = [
            f"{change['name']}=={change['version']}"
            for change in changes
            if change["action"] == "installed" and "version" in change
        ]
        directory.mkdir()
        if changed := [*filter(is_direct, requirements), *versions]:
            self._uv([*install, "--no-deps", "--target", str(directory)], changed)
        return directory

    def _virtual(self, python: Path, requirements: Sequence[str], directory: Path) -> Path:
        """Create a virtual environment in *directory*; return its Python."""
        # RelStorage has to link C++, but PyPy 7.3.11 of Debian 12 has no default command for that.
        is_pypy = _probed(Interpreter("", str(python), "")).implementation == "PyPy"
        linker = {"LDCXXSHARED": "c++ -shared"} if is_pypy else {}
        self._uv(["venv", "--python", str(python), str(directory)])
        made = directory / "bin" / "python"
        self._uv(["pip", "install", "--python", str(made)], requirements, **linker)
        return made

    def _uv(
        self, command: Sequence[str], requirements: Sequence[str] = (), **variables: str
    ) -> str:
        """Run uv with *requirements* on its standard input; return its output.

        On a command line, everybody could see the passwords in the requirements' URLs.

        :raises UserError: if uv fails; the message quotes uv
        """
        words = ["--requirements", "-"] if requirements else []
        with (
            TemporaryFile() as standard_input, TemporaryFile() as output, TemporaryFile() as errors,
        ):  # fmt: skip
            standard_input.write("\n".join(requirements).encode())
            standard_input.seek(0)
            process = self.guardian.start(
                [uv_program(), "--quiet", *command, *words],
                stdin=standard_input, stdout=output, stderr=errors,
                env={**variables, **for_another_python(os.environ)},
            )  # fmt: skip
            try:
                exit_code = process.exit_code(_INSTALL_TIMEOUT)
            finally:
                process.end()
            if exit_code is None:
                raise UserError(f"it takes longer than {_INSTALL_TIMEOUT:.0f} s")
            if exit_code:
                raise UserError(reason_in(errors))
            output.seek(0)
            return output.read().decode()


def uv_program() -> str:
    """Return the path of uv; raise UserError if it is not installed."""
    try:
        from uv import find_uv_bin

        return find_uv_bin()
    except (ImportError, FileNotFoundError):
        path = shutil.which("uv")
    if path is None:
        raise UserError(
            "uv makes environments, but is not installed; install it: "
            "pip install 'zodbshootout[against]'"
        )
    return path


def carry_to(directory: Path) -> Path:
    """Copy the modules for workers to *directory*, a new directory for ``sys.path``; return it."""
    ignored = shutil.ignore_patterns("__pycache__", "tests")
    package, target = Path(__file__).parents[1], directory / "zodbshootout"
    target.mkdir(parents=True)
    for name in CARRIED:
        if (package / name).is_dir():
            shutil.copytree(package / name, target / name, ignore=ignored)
        else:
            (target / name).parent.mkdir(exist_ok=True)
            shutil.copy(package / name, target / name)
    pyperf = distribution("pyperf")
    shutil.copytree(str(pyperf.locate_file("pyperf")), directory / "pyperf", ignore=ignored)
    # Python finds pyperf's hooks by entry points in the distribution's metadata.
    information = directory / f"pyperf-{pyperf.version}.dist-info"
    information.mkdir()
    for name in ("METADATA", "entry_points.txt"):
        (information / name).write_text(pyperf.read_text(name) or "", encoding="utf-8")
    return directory


def _base(environment: Environment) -> Path:
    named = environment.python or sys.executable
    path = shutil.which(named)
    if path is None:
        raise UserError(f"environment {environment.name}: there is no Python {named}")
    version = _probed(Interpreter("", path, "", environment.python == "")).version
    if version < OLDEST:
        raise UserError(
            f"environment {environment.name}: {named} is Python {_dotted(version)}; "
            f"clients need {_dotted(OLDEST)} or later"
        )
    return Path(path).absolute()


def _copied(requirements: Sequence[str], directory: Path) -> list[str]:
    """Replace checkouts in the requirements by copies, because builds write into a checkout."""
    ignored = shutil.ignore_patterns("__pycache__", ".tox", ".venv", "build", "*.egg-info")
    copied = list(requirements)
    for number, requirement in enumerate(requirements):
        path, bracket, extras = requirement.partition("[")
        if Path(path).is_absolute() and Path(path).is_dir():
            copy = directory / str(number) / Path(path).name
            shutil.copytree(path, copy, symlinks=True, ignore=ignored)
            copied[number] = f"{copy}{bracket}{extras}"
    return copied


@functools.cache
def _probed(interpreter: Interpreter) -> _Python:
    """Run a Python to determine its version, and whether it has ZODB."""
    try:
        done = subprocess.run(
            [interpreter.executable, "-c", _PROBE],
            check=True, capture_output=True, timeout=_PROBE_TIMEOUT, stdin=subprocess.DEVNULL,
            env=variables_for(interpreter, os.environ),
        )  # fmt: skip
        answer = json.loads(done.stdout.splitlines()[-1])
        return _Python(tuple(answer["version"]), answer["implementation"], answer["flaw"])
    except subprocess.CalledProcessError as error:
        reason = reason_in(BytesIO(error.stderr))
    except (OSError, subprocess.TimeoutExpired, ValueError, LookupError) as error:
        reason = str(error)
    raise UserError(f"cannot run Python {interpreter.executable}: {reason}")


def reason_in(output: IO[bytes]) -> str:
    """Return the reason for a program's failure: lines of its output, joined into one line."""
    return " / ".join(last_lines(output, 3, errors="(?i)^(error|cause|fatal)")) or "no message"


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
