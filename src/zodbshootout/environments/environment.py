"""What an environment is: a Python, and perhaps packages to install for it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement

from zodbshootout.config.sections import EnvironmentSection

INSTALLED = "installed"
"""What the environment is called of contenders that are as they are installed."""
_ARCHIVES = (".whl", ".tar.gz", ".zip")
_DIRECT = re.compile(r"[\w.+-]+://|[\w.-]+\s*@\s*\S")
"""How a requirement begins that tells where a package comes from."""


class BadWord(ValueError):  # noqa: N818
    """A word that stands for no environment; the message says what one looks like."""


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
        """What it is made of, in one line."""
        with_python = [self.python] if self.python else []
        told = ", ".join([*with_python, *self.requirements]) or "as installed"
        return f"{told}, all else as installed" if self.upon_ours else told


def of_section(section: EnvironmentSection) -> Environment:
    """Return the environment that a section describes."""
    requirements = tuple(map(_absolute, section.requirements))
    return Environment(section.name, section.python or "", requirements)


def of_words(words: Sequence[str]) -> list[Environment]:
    """Return the environments that words of a command line stand for, each with its own name.

    A word is a requirement, the path of something that pip installs, or a Python.

    :raises BadWord: when one is none of these, or several are the same
    """
    found = [_of_word(word) for word in words]
    found = [replace(each, name=each.name.lower()) for each in found]  # as ZConfig has names
    for number, each in enumerate(found):
        if each in found[:number]:
            raise BadWord(f"{words[number]!r} is there twice")
        if each.name in {other.name for other in [Environment(INSTALLED), *found[:number]]}:
            found[number] = replace(each, name=f"{each.name}-{number + 1}")
    return found


def _of_word(word: str) -> Environment:
    path = Path(word).expanduser()
    if path.is_dir() and _is_project(path):
        return Environment(
            path.resolve().name, requirements=(str(path.absolute()),), upon_ours=True
        )
    if path.is_dir():
        python = path / "bin" / "python"
        if not python.exists():
            raise BadWord(
                f"{word!r} is neither a checkout, with pyproject.toml or setup.py, nor a virtual "
                "environment"
            )
        return Environment(path.resolve().name, str(python.absolute()))
    if path.is_file() and word.endswith(_ARCHIVES):
        return Environment(path.name, requirements=(str(path.absolute()),), upon_ours=True)
    if path.is_file() and os.access(path, os.X_OK):
        return Environment(_name_of_python(path), str(path.absolute()))
    if os.sep in word and not _DIRECT.match(word):
        raise BadWord(f"there is no {word}")
    if re.fullmatch(r"(python|pypy)[\d.]*", word) and shutil.which(word):
        return Environment(word, word)
    return Environment(_name_of_requirement(word), requirements=(word,), upon_ours=True)


def _name_of_python(path: Path) -> str:
    """Return how a Python is called: as its virtual environment, if it is in one."""
    directory = path.absolute().parent.parent
    return directory.name if (directory / "pyvenv.cfg").exists() else path.name


def _name_of_requirement(word: str) -> str:
    if _DIRECT.match(word):
        name, _, _ = word.partition("@")
        # A password can stand in a URL.
        return Path(urlsplit(word).path).name if "://" in name else name.strip()
    try:
        requirement = Requirement(word)
    except InvalidRequirement:
        raise BadWord(
            f"{word!r} is no requirement such as RelStorage==4.2.0, and there is no such file"
        ) from None
    return f"{requirement.name}{requirement.specifier}"


def _is_project(path: Path) -> bool:
    return any((path / name).exists() for name in ("pyproject.toml", "setup.py"))


def _absolute(requirement: str) -> str:
    """Return a requirement, with a path in it made absolute."""
    path = Path(requirement).expanduser()
    is_path = os.sep in requirement or requirement.startswith(".") or path.suffix == ".whl"
    return str(path.absolute()) if is_path and path.exists() else requirement
