"""Virtual environments, made once and kept as long as they are used.

An environment's directory is named after a hash of what it is made of.  Next to it is a lock file,
whose modification time is the time of the last use.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import distribution, distributions
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import platformdirs

from zodbshootout.config.pythons import Environment
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian, last_lines
from zodbshootout.model.specification import Interpreter, for_another_python

CARRIED = (
    "__init__.py",
    "client",
    "crews",
    "errors.py",
    "guardian.py",
    "model",
    "mysql",
    "newt",
    "plugins.py",
    "recording",
    "versions.py",
    "workers",
)
"""Our modules that run in a worker.  They need pyperf, ZODB and the storage, nothing else."""
OLDEST = (3, 9)
"""The oldest Python that clients run on."""
KEPT_DAYS = 30
"""Days without use after which an environment is removed."""
_PROBE_TIMEOUT = 60.0
"""Seconds in which a Python has to answer."""
_INSTALL_TIMEOUT = 3600.0
"""Seconds that an installation may take: packages without wheels are built."""
_SOURCES = "sources"
"""The directory in which checkouts are built."""
_COMPLETE = "made"
"""The file that marks a complete environment; its modification time is when that was made."""
_FROM_INPUT = ("--requirement", "/dev/stdin")
"""Arguments of pip and uv for requirements from the standard input."""
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
    """The answer of a Python to the probe."""

    version: tuple[int, ...]
    implementation: str
    flaw: str
    """Why ZODB cannot be imported; empty if it can."""


@dataclass(frozen=True)
class Maker:
    """Make environments, or find them in a cache."""

    guardian: Guardian
    tell: Callable[[str], None] = lambda _: None
    """Takes messages about the progress."""
    cache: Path = field(
        default_factory=lambda: platformdirs.user_cache_path("zodbshootout") / "environments"
    )
    """The directory that keeps the environments."""

    def interpreter(self, environment: Environment, modules: Path) -> Interpreter:
        """Return the Python of an environment; make the environment if it is not in the cache.

        *modules* is the directory to which :func:`carry_to` has copied our modules.

        :raises UserError: if it cannot be made, or its Python is too old or has no ZODB
        """
        python = self._base(environment)
        if environment.requirements:
            python = self._with_requirements(environment, python)
        flaw = _probed(python).flaw
        if flaw:
            raise UserError(f"environment {environment.name} has no ZODB that works: {flaw}")
        return Interpreter(environment.name, str(python), str(modules), environment.is_ours)

    def describe(self, environment: Environment) -> str:
        """Return a line that says whether an environment would have to be made; make nothing."""
        description = f"environment {environment.name}: {environment.description}"
        try:
            python = self._base(environment)
        except UserError as error:
            return str(error)
        if not environment.requirements:
            return description
        complete = _is_complete(self._directory(environment, python))
        return f"{description}: {'made before' if complete else 'to be made'}"

    def _base(self, environment: Environment) -> Path:
        """Return the Python on which an environment is based."""
        named = environment.python or sys.executable
        path = shutil.which(named)
        if path is None:
            raise UserError(f"environment {environment.name}: there is no Python {named}")
        python = _probed(Path(path))
        if python.version < OLDEST:
            raise UserError(
                f"environment {environment.name}: {named} is Python {_dotted(python.version)}; "
                f"{_dotted(OLDEST)} is the oldest that clients run on"
            )
        return Path(path).absolute()

    def _directory(self, environment: Environment, path: Path) -> Path:
        python = _probed(path)
        key = [
            str(path.resolve()),
            python.implementation,
            *map(str, python.version),
            *environment.contents,
            *(_installed() if environment.keeps_installed else []),
        ]
        return self.cache / hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]

    def _with_requirements(self, environment: Environment, python: Path) -> Path:
        directory = self._directory(environment, python)
        with self._locked(environment, directory):
            if not _is_complete(directory):
                self._prune()
                shutil.rmtree(directory, ignore_errors=True)
                self.tell(f"making environment {environment.name}: {environment.description}")
                self._make(environment, python, directory)
            elif not environment.is_pinned:
                made = datetime.fromtimestamp((directory / _COMPLETE).stat().st_mtime).astimezone()
                self.tell(
                    f"environment {environment.name}: as it was made on {made:%Y-%m-%d}; remove "
                    f"{directory} to have it made again"
                )
        return directory / "bin" / "python"

    def _prune(self) -> None:
        """Remove the environments that have not been used for :data:`KEPT_DAYS`."""
        for lock in self.cache.glob("*.lock"):
            with suppress(OSError), lock.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                unused = time.time() - os.fstat(file.fileno()).st_mtime
                if _is_at(lock, file) and unused > KEPT_DAYS * 86400:
                    shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                    lock.unlink()

    def _make(self, environment: Environment, python: Path, directory: Path) -> None:
        try:
            for command, requirements in _steps(environment, python, directory):
                self._run(command, requirements, python)
            shutil.rmtree(directory / _SOURCES, ignore_errors=True)
            (directory / _COMPLETE).write_text(f"{environment.name}\n")
        except BaseException as error:
            shutil.rmtree(directory, ignore_errors=True)
            if isinstance(error, (OSError, UserError)):
                message = f"environment {environment.name} cannot be made: {error}"
                raise UserError(message) from error
            raise

    @contextmanager
    def _locked(self, environment: Environment, directory: Path) -> Iterator[None]:
        """Keep other runs from making or removing the same environment until the context ends."""
        lock = directory.with_suffix(".lock")
        while True:
            try:
                lock.parent.mkdir(parents=True, exist_ok=True)
                file = lock.open("w")
            except OSError as error:
                raise UserError(f"environments cannot be kept in {lock.parent}: {error}") from error
            with file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    self.tell(f"environment {environment.name}: another run is making it; waiting")
                    fcntl.flock(file, fcntl.LOCK_EX)
                if _is_at(lock, file):
                    os.utime(file.fileno())
                    yield
                    return

    def _run(self, command: Sequence[str], requirements: Sequence[str], python: Path) -> None:
        """Run an installer, which reads requirements from its standard input.

        Their URLs may contain passwords, and everybody can see the command line of a process.
        """
        # PyPy 7.3.11, in Debian 12, has no default command to link C++, which RelStorage needs.
        linker = {"LDCXXSHARED": "c++ -shared"} if _probed(python).implementation == "PyPy" else {}
        with TemporaryFile() as output, TemporaryFile() as standard_input:
            standard_input.write("\n".join(requirements).encode())
            standard_input.seek(0)
            installer = self.guardian.start(
                command, stdin=standard_input, stdout=output, stderr=subprocess.STDOUT,
                env={**linker, **for_another_python(os.environ)},
            )  # fmt: skip
            try:
                exit_code = installer.exit_code(_INSTALL_TIMEOUT)
            finally:
                installer.end()
            if exit_code is None:
                raise UserError(f"it takes longer than {_INSTALL_TIMEOUT:.0f} s")
            if exit_code:
                raise UserError(_last_lines(output))


def carry_to(directory: Path) -> Path:
    """Copy the modules that workers need into a new directory; return it, for ``sys.path``."""
    ignored = shutil.ignore_patterns("__pycache__", "tests")
    package, target = Path(__file__).parents[1], directory / "zodbshootout"
    target.mkdir(parents=True)
    for name in CARRIED:
        if (package / name).is_dir():
            shutil.copytree(package / name, target / name, ignore=ignored)
        else:
            shutil.copy(package / name, target / name)
    pyperf = distribution("pyperf")
    shutil.copytree(str(pyperf.locate_file("pyperf")), directory / "pyperf", ignore=ignored)
    # With its entry points, Python finds its hooks there.
    information = directory / f"pyperf-{pyperf.version}.dist-info"
    information.mkdir()
    for name in ("METADATA", "entry_points.txt"):
        (information / name).write_text(pyperf.read_text(name) or "", encoding="utf-8")
    return directory


def _steps(
    environment: Environment, python: Path, directory: Path
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Yield the commands that make an environment in *directory*, each with its requirements.

    Each command has to be run before the next one is asked for.
    """
    new_python = str(directory / "bin" / "python")
    uv = shutil.which("uv")
    # uv would resolve without the packages that a .pth file adds.
    if uv is not None and not environment.keeps_installed:
        yield [uv, "venv", "--quiet", "--python", str(python), str(directory)], ()
        install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", new_python]
        yield [*install, *_FROM_INPUT], _copied(environment.requirements, directory / _SOURCES)
        return
    # Installing pip takes seconds, and the packages that are added may include it.
    has_pip = environment.keeps_installed and find_spec("pip") is not None
    without_pip = ["--without-pip"] if has_pip else []
    yield [str(python), "-m", "venv", *without_pip, str(directory)], ()
    requirements = _copied(environment.requirements, directory / _SOURCES)
    pip = [new_python, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"]
    if environment.keeps_installed:
        _add_ours(directory)
        paths = [requirement for requirement in requirements if Path(requirement).is_absolute()]
        if paths:
            # Local packages replace installed ones, even those of the same version.
            wheels = directory / "wheels"
            yield [*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), *_FROM_INPUT], paths
            built = sorted(map(str, wheels.iterdir()))
            yield [*pip, "install", "--no-deps", "--force-reinstall", *_FROM_INPUT], built
            requirements = [
                *(requirement for requirement in requirements if requirement not in paths),
                *built,
            ]
    yield [*pip, "install", *_FROM_INPUT], requirements


def _add_ours(directory: Path) -> None:
    """Add the packages of this Python to a virtual environment, after its own packages."""
    (packages,) = directory.glob("lib/*/site-packages")
    lines = (f"import site; site.addsitedir({path!r})\n" for path in _site_directories())
    (packages / "as-installed.pth").write_text("".join(lines))


def _copied(requirements: Sequence[str], directory: Path) -> list[str]:
    """Return the requirements with checkouts replaced by copies: a build writes into them."""
    ignored = shutil.ignore_patterns("__pycache__", ".tox", ".venv", "build", "*.egg-info")
    copied = list(requirements)
    for number, requirement in enumerate(requirements):
        path, bracket, extras = requirement.partition("[")
        if Path(path).is_absolute() and Path(path).is_dir():
            copy = directory / str(number) / Path(path).name
            shutil.copytree(path, copy, symlinks=True, ignore=ignored)
            copied[number] = f"{copy}{bracket}{extras}"
    return copied


def _installed() -> list[str]:
    """Return the packages of this Python, as parts of an environment's key."""
    packages = {
        f"{package.name} {package.version} {package.read_text('direct_url.json')}"
        for package in distributions()
    }
    return [*_site_directories(), *sorted(packages)]


def _site_directories() -> list[str]:
    return [path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]


@functools.cache
def _probed(path: Path) -> _Python:
    """Run a Python to learn its version, and whether it has ZODB."""
    try:
        done = subprocess.run(
            [str(path), "-c", _PROBE],
            check=True, capture_output=True, timeout=_PROBE_TIMEOUT, stdin=subprocess.DEVNULL,
            env=None if str(path) == sys.executable else for_another_python(os.environ),
        )  # fmt: skip
        answer = json.loads(done.stdout.splitlines()[-1])
        return _Python(tuple(answer["version"]), answer["implementation"], answer["flaw"])
    except subprocess.CalledProcessError as error:
        reason = _last_lines(BytesIO(error.stderr))
    except (OSError, subprocess.TimeoutExpired, ValueError, LookupError) as error:
        reason = str(error)
    raise UserError(f"cannot run Python {path}: {reason}")


def _last_lines(output: IO[bytes]) -> str:
    return " / ".join(last_lines(output, 3, errors="(?i)^error")) or "no message"


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


def _is_at(path: Path, file: IO[str]) -> bool:
    """Return whether an open lock file still has its name: another run may have removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _is_complete(directory: Path) -> bool:
    # Its Python is a link, whose target may be gone.
    return (directory / _COMPLETE).exists() and (directory / "bin" / "python").exists()
