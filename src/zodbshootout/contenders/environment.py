"""What an environment is: a Python, and perhaps packages to install for it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement

from zodbshootout.client.specification import INSTALLED
from zodbshootout.config.configuration import EnvironmentSection
from zodbshootout.errors import UserError

_ARCHIVES = (".whl", ".tar.gz", ".zip")
_LOGIN = re.compile(r"://[^/\s]*@")
_DIRECT = re.compile(r"[\w.+-]+://|[\w.-]+(\[[\w.,\s-]*\])?\s*@\s*\S")
"""How a requirement begins that tells where a package comes from."""


@dataclass(frozen=True)
class Environment:
    """Where a contender is opened."""

    name: str
    python: str = ""
    """The path of a program, or its name; the Python of the command where it is empty."""
    requirements: tuple[str, ...] = ()
    """What is installed for it: as pip takes them, one in each."""
    upon_ours: bool = False
    """Whether everything else is there as it is installed for the Python of the command."""

    @property
    def made_of(self) -> str:
        """What it is made of, in one line, without anything that lets somebody in."""
        with_python = [self.python] if self.python else []
        told = ", ".join([*with_python, *self.told]) or "as installed"
        told = _LOGIN.sub("://", told)
        return f"{told}, all else as installed" if self.upon_ours else told

    @cached_property
    def told(self) -> list[str]:
        """The requirements, a path with what tells its content from what it was before."""
        return [_with_content(each) for each in self.requirements]

    @property
    def is_pinned(self) -> bool:
        """Whether what is installed for it is the same whenever that happens."""
        return all("==" in each or Path(each).is_absolute() for each in self.requirements)


def of_section(section: EnvironmentSection) -> Environment:
    """Return the environment that a section describes."""
    requirements = tuple(map(_absolute, section.requirements))
    return Environment(section.name, section.python or "", requirements)


def of_words(words: Sequence[str]) -> list[Environment]:
    """Return the environments that words of a command line stand for, each with its own name.

    A word is a requirement, the path of something that pip installs, or a Python.

    :raises UserError: if one is none of these, or several are the same
    """
    found = [_of_word(word) for word in words]
    found = [replace(each, name=each.name.lower()) for each in found]  # as ZConfig has names
    for number, each in enumerate(found):
        if each in found[:number]:
            raise UserError(f"--against: {words[number]!r} is there twice")
        taken = {INSTALLED, *(other.name for other in found[:number])}
        others = (f"{each.name}-{more}" for more in count(2))
        free = next(name for name in chain([each.name], others) if name not in taken)
        found[number] = replace(each, name=free)
    return found


def _of_word(word: str) -> Environment:
    path = Path(word).expanduser()
    if path.exists():
        return _of_path(word, path)
    if os.sep in word and not _DIRECT.match(word):
        raise UserError(f"--against: there is no {word}")
    if re.fullmatch(r"(python|pypy)[\d.]*", word):
        if shutil.which(word) is None:
            raise UserError(f"--against: there is no Python {word}")
        return Environment(word, word)
    return Environment(_name_of_requirement(word), requirements=(word,), upon_ours=True)


def _of_path(word: str, path: Path) -> Environment:
    if path.is_dir() and _is_project(path):
        project = (str(path.absolute()),)
        return Environment(path.resolve().name, requirements=project, upon_ours=True)
    if path.is_dir():
        python = path / "bin" / "python"
        if not python.exists():
            raise UserError(
                f"--against: {word!r} is neither a checkout, with pyproject.toml or setup.py, nor "
                "a virtual environment"
            )
        return Environment(path.resolve().name, str(python.absolute()))
    if word.endswith(_ARCHIVES):
        return Environment(path.name, requirements=(str(path.absolute()),), upon_ours=True)
    if not os.access(path, os.X_OK):
        raise UserError(f"--against: {word!r} is neither a wheel nor a Python")
    return Environment(_name_of_python(path), str(path.absolute()))


def _name_of_python(path: Path) -> str:
    """Return how a Python is called: as its virtual environment, if it is in one."""
    directory = path.absolute().parent.parent
    return directory.name if (directory / "pyvenv.cfg").exists() else path.name


def _name_of_requirement(word: str) -> str:
    if _DIRECT.match(word):
        name, _, _ = word.partition("@")
        # A password can stand in a URL.
        named = Path(urlsplit(word).path).name if "://" in name else name.strip()
        return named or "url"
    try:
        requirement = Requirement(word)
    except InvalidRequirement:
        raise UserError(
            f"--against: {word!r} is no requirement such as RelStorage==4.2.0, and there is no "
            "such file"
        ) from None
    # Commas separate the names of contenders in options.
    return f"{requirement.name}{requirement.specifier}".replace(",", "")


def _with_content(requirement: str) -> str:
    path = Path(requirement.partition("[")[0])
    if not path.is_absolute() or not path.exists():
        return requirement
    digest = hashlib.sha256()
    for each in [path] if path.is_file() else _files(path):
        digest.update(f"{each.relative_to(path)}\n".encode())
        try:
            digest.update(each.read_bytes())
        except OSError:  # then it cannot be installed, either
            continue
    return f"{requirement} ({digest.hexdigest()[:12]})"


def _files(directory: Path) -> list[Path]:
    """Return the files of a checkout that may be installed from it."""
    command = ["git", "-C", str(directory), "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, check=True, capture_output=True).stdout
        found = [directory / os.fsdecode(name) for name in listed.split(b"\0") if name]
    except (OSError, subprocess.CalledProcessError):
        found = list(_walked(directory))
    return sorted(each for each in found if each.is_file())


def _walked(directory: Path) -> Iterator[Path]:
    for place, directories, names in os.walk(directory):
        passed_over = {each for each in directories if each.startswith(".")}
        passed_over |= {"__pycache__", "build", "dist"}
        directories[:] = [each for each in directories if each not in passed_over]
        yield from (Path(place) / name for name in names)


def _is_project(path: Path) -> bool:
    return any((path / name).exists() for name in ("pyproject.toml", "setup.py"))


def _absolute(requirement: str) -> str:
    """Return a requirement, with a path in it made absolute."""
    path = Path(requirement).expanduser()
    is_path = os.sep in requirement or requirement.startswith(".") or path.suffix == ".whl"
    there = Path(str(path).partition("[")[0]).exists()  # extras can follow it
    return str(path.absolute()) if is_path and there else requirement
