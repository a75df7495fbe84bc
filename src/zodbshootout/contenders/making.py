"""Making virtual environments, once: what went into one is the name of its directory."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import distributions
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import platformdirs

from zodbshootout.client.specification import Interpreter
from zodbshootout.contenders.environment import Environment
from zodbshootout.crews.interpreters import foreign_environment
from zodbshootout.guardian import Guardian, last_lines

OLDEST = (3, 9)
"""The oldest Python that clients run on."""
_PATIENCE = 60.0
"""Seconds that a Python may take to tell what it is."""
_LONGEST = 3600.0
"""Seconds that an installation may take: what has no wheel is built."""
_SOURCES = "sources"
"""The directory that checkouts are built in."""
_MADE = "made"
"""The file that says of a directory that all of it is there."""
_READ = ("--requirement", "/dev/stdin")
"""How pip and uv are told to read what to install."""
_QUESTION = """
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


class CannotBeMade(Exception):  # noqa: N818
    """An environment that is not there; the message says why, in one line."""


@dataclass(frozen=True)
class _Answer:
    """What a Python says of itself."""

    version: tuple[int, ...]
    implementation: str
    flaw: str
    """Why ZODB cannot be imported; empty where it can."""


def cache_directory() -> Path:
    """Return where environments are kept."""
    return Path(platformdirs.user_cache_dir("zodbshootout", appauthor=False)) / "environments"


class Maker:
    """Makes environments, or finds those that were made."""

    def __init__(
        self,
        guardian: Guardian,
        tell: Callable[[str], None] = lambda _: None,
        cache: Path | None = None,
    ) -> None:
        """Keep environments in *cache*; *tell* is called with what is done at the time."""
        self._cache = cache or cache_directory()
        self._guardian = guardian
        self._tell = tell

    def interpreter(self, environment: Environment, modules: Path) -> Interpreter:
        """Return the Python of an environment, which is made if it is not there.

        *modules* is the directory with the modules of ours that it needs.

        :raises CannotBeMade: when it cannot be had, or is too old, or has no ZODB
        """
        python = self._base(environment)
        if environment.requirements:
            python = self._with_requirements(environment, python)
        flaw = _asked(python).flaw
        if flaw:
            raise CannotBeMade(f"environment {environment.name} has no ZODB that works: {flaw}")
        ours = not (environment.python or environment.requirements)
        return Interpreter(environment.name, str(python), str(modules), ours)

    def told(self, environment: Environment) -> str:
        """Say of an environment what is there and what would be made; nothing is."""
        text = f"environment {environment.name}: {environment.made_of}"
        try:
            python = self._base(environment)
        except CannotBeMade as error:
            return str(error)
        if not environment.requirements:
            return text
        made = _is_made(self._directory(environment, python))
        return f"{text}: {'made before' if made else 'to be made'}"

    def _base(self, environment: Environment) -> Path:
        named = environment.python or sys.executable
        python = shutil.which(named)
        if python is None:
            raise CannotBeMade(f"environment {environment.name}: there is no Python {named}")
        answer = _asked(Path(python))
        if answer.version < OLDEST:
            told = ".".join(map(str, answer.version))
            wanted = ".".join(map(str, OLDEST))
            raise CannotBeMade(
                f"environment {environment.name}: {named} is Python {told}; {wanted} is the "
                "oldest that clients run on"
            )
        return Path(python).absolute()

    def _directory(self, environment: Environment, python: Path) -> Path:
        answer = _asked(python)
        parts = [str(python.resolve()), answer.implementation, *map(str, answer.version)]
        parts += environment.told
        parts += _installed() if environment.upon_ours else []
        return self._cache / hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def _with_requirements(self, environment: Environment, python: Path) -> Path:
        directory = self._directory(environment, python)
        inside = directory / "bin" / "python"
        with self._locked(environment, directory):
            if _is_made(directory):
                self._tell_of_age(environment, directory)
            else:
                shutil.rmtree(directory, ignore_errors=True)
                self._tell(f"making environment {environment.name}: {environment.made_of}")
                self._make(environment, python, directory)
        return inside

    def _tell_of_age(self, environment: Environment, directory: Path) -> None:
        """Say how old an environment is for which today another release might be installed."""
        if not environment.is_pinned:
            made = datetime.fromtimestamp((directory / _MADE).stat().st_mtime).astimezone()
            self._tell(
                f"environment {environment.name}: as it was made on {made:%Y-%m-%d}; remove "
                f"{directory} to have it made again"
            )

    def _make(self, environment: Environment, python: Path, directory: Path) -> None:
        try:
            self._take_steps(environment, python, directory)
        except BaseException as error:
            shutil.rmtree(directory, ignore_errors=True)
            if isinstance(error, OSError):
                message = f"environment {environment.name} cannot be made: {error}"
                raise CannotBeMade(message) from error
            raise

    def _take_steps(self, environment: Environment, python: Path, directory: Path) -> None:
        for command, requirements in _steps(environment, python, directory):
            failure = self._run(command, requirements, _variables(python))
            if failure:
                raise CannotBeMade(f"environment {environment.name} cannot be made: {failure}")
        shutil.rmtree(directory / _SOURCES, ignore_errors=True)
        (directory / _MADE).write_text(f"{environment.name}\n")

    @contextmanager
    def _locked(self, environment: Environment, directory: Path) -> Iterator[None]:
        """Let nobody else make the same environment meanwhile.

        :raises CannotBeMade: when nothing can be kept there
        """
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            file = directory.with_suffix(".lock").open("w")
        except OSError as error:
            raise CannotBeMade(
                f"environments cannot be kept in {directory.parent}: {error}"
            ) from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._tell(f"environment {environment.name}: another run is making it; waiting")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _run(
        self, command: Sequence[str], requirements: Sequence[str], variables: Mapping[str, str]
    ) -> str:
        """Run an installer; return its last lines where it failed.

        It reads requirements from its standard input: a URL may have a password in it, and the
        command line of a process is seen by everybody.
        """
        with TemporaryFile() as output, TemporaryFile() as wanted:
            wanted.write("\n".join(requirements).encode())
            wanted.seek(0)
            installer = self._guardian.start(
                command, stdin=wanted, stdout=output, stderr=subprocess.STDOUT, env=variables
            )
            try:
                exit_code = installer.exit_code(_LONGEST)
            finally:
                installer.end()
            if exit_code is None:
                return f"it takes longer than {_LONGEST:.0f} s"
            return _last_lines(output) if exit_code else ""


def _variables(python: Path) -> dict[str, str]:
    """Return the environment variables that an installer has."""
    # PyPy 7.3.11, which is Debian 12's, does not know how C++ is linked; RelStorage needs that.
    known = {"LDCXXSHARED": "c++ -shared"} if _asked(python).implementation == "PyPy" else {}
    return {**known, **foreign_environment(os.environ)}


def _steps(
    environment: Environment, python: Path, directory: Path
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Return what makes an environment in *directory*: commands, and the requirements of each.

    Each comes when what is before it is done.
    """
    inside = str(directory / "bin" / "python")
    uv = shutil.which("uv")
    if uv is not None and not environment.upon_ours:
        yield [uv, "venv", "--quiet", "--python", str(python), str(directory)], ()
        install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", inside]
        yield [*install, *_READ], _copied(environment.requirements, directory / _SOURCES)
        return
    yield [str(python), "-m", "venv", str(directory)], ()
    wanted = _copied(environment.requirements, directory / _SOURCES)
    pip = [inside, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"]
    if environment.upon_ours:
        _add_ours(directory)
        files = [each for each in wanted if Path(each).is_absolute()]
        wheels = directory / "wheels"
        if files:
            # What is installed already may be of the same version, and is not to be taken for it.
            yield [*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), *_READ], files
            made = sorted(map(str, wheels.iterdir()))
            yield [*pip, "install", "--no-deps", "--force-reinstall", *_READ], made
            wanted = [*(each for each in wanted if each not in files), *made]
    yield [*pip, "install", *_READ], wanted


def _add_ours(directory: Path) -> None:
    """Have a virtual environment find what is installed for this Python, after its own packages."""
    (packages,) = directory.glob("lib/*/site-packages")
    lines = (f"import site; site.addsitedir({path!r})\n" for path in _site_directories())
    (packages / "as-installed.pth").write_text("".join(lines))


def _copied(requirements: Sequence[str], directory: Path) -> list[str]:
    """Return requirements with copies in place of checkouts, for a build writes into them."""
    passed_over = shutil.ignore_patterns("__pycache__", ".tox", ".venv", "build", "*.egg-info")
    found = list(requirements)
    for number, requirement in enumerate(requirements):
        path, bracket, extras = requirement.partition("[")
        if Path(path).is_absolute() and Path(path).is_dir():
            copy = directory / str(number) / Path(path).name
            shutil.copytree(path, copy, symlinks=True, ignore=passed_over)
            found[number] = f"{copy}{bracket}{extras}"
    return found


def _installed() -> list[str]:
    """Return what tells whether something else is installed for this Python than before."""
    found = {
        f"{each.name} {each.version} {each.read_text('direct_url.json')}"
        for each in distributions()
    }
    return [*_site_directories(), *sorted(found)]


def _site_directories() -> list[str]:
    return [path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]


def _last_lines(output: IO[bytes]) -> str:
    return " / ".join(last_lines(output, 3, errors="(?i)^error")) or "the installer says nothing"


@functools.cache
def _asked(python: Path) -> _Answer:
    """Return what a Python says of itself.

    :raises CannotBeMade: when it says nothing
    """
    try:
        done = subprocess.run(
            [str(python), "-c", _QUESTION],
            check=True, capture_output=True, timeout=_PATIENCE, stdin=subprocess.DEVNULL,
            env=None if str(python) == sys.executable else foreign_environment(os.environ),
        )  # fmt: skip
        told = json.loads(done.stdout.splitlines()[-1])
        return _Answer(tuple(told["version"]), told["implementation"], told["flaw"])
    except subprocess.CalledProcessError as error:
        reason = _last_lines(BytesIO(error.stderr))
    except (OSError, subprocess.TimeoutExpired, ValueError, LookupError) as error:
        reason = str(error)
    raise CannotBeMade(f"{python} is no Python that works: {reason}")


def _is_made(directory: Path) -> bool:
    # Its Python is a link, of which the other end may be gone.
    return (directory / _MADE).exists() and (directory / "bin" / "python").exists()
