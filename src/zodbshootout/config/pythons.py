"""Environments, each of which is a Python, perhaps with packages to install for it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from zodbshootout.errors import UserError
from zodbshootout.model.outcome import State
from zodbshootout.model.specification import INSTALLED
from zodbshootout.model.titles import ENVIRONMENT, RELEASE, Release, Value

MAX_NAME = 100
"""The maximum length of an environment's name, which also becomes part of file names."""
_ARCHIVES = (".whl", ".tar.gz", ".zip")
_LOGIN = re.compile(r"(?<=://)(?!git@)[^/\s]*@")
"""Credentials in a URL, except ``git``, the usual user name of repositories reached by SSH."""
_URL = re.compile(r"[\w.+-]+://")
"""The beginning of a URL."""
_LOCAL_URL = re.compile(r"([\w.-]+\s*(?P<extras>\[.*\])?\s*@\s*)?file://(?P<path>/[^;#\s]*)")
"""A ``file:`` URL as a requirement, perhaps after a package's name and ``@``."""
_VERSION = re.compile(r"\d+(\.|$)")
"""The beginning of a version; ``packaging`` mistakes a version for a package's name."""


@dataclass(frozen=True)
class Environment:
    """A Python with its packages, in which contenders are opened."""

    name: str
    python: str = ""
    """The path or name of a program; empty for the command's own Python."""
    requirements: tuple[str, ...] = ()
    """The packages to install, in uv's notation."""
    keeps_installed: bool = False
    """Whether the environment also has the packages of the command's own Python."""
    one_of_several: bool = False
    """Whether one word of ``--against`` stands for several environments, of which this is one."""
    release: Release | None = None
    """The release or commit by which the environment differs from what is installed, if it differs
    by just one; its text is the environment's name."""

    @property
    def variant(self) -> Mapping[str, Value]:
        """The place of a contender in this environment, by axis."""
        return {RELEASE: self.release} if self.release else {ENVIRONMENT: self.name}

    @property
    def description(self) -> str:
        """The Python and the packages, in one line without credentials."""
        with_python = [self.python] if self.python else []
        parts = ", ".join([*with_python, *self.contents]) or "as installed"
        shown = _LOGIN.sub("", parts)
        return f"{shown}, all else as installed" if self.keeps_installed else shown

    @property
    def is_ours(self) -> bool:
        """Whether the environment is the command's own Python with its installed packages."""
        return not (self.python or self.requirements)

    @property
    def if_absent(self) -> State:
        """The state of a contender that cannot be opened, or whose environment cannot be made.

        If one of several releases or commits does not work here, this is not a failure.
        """
        return State.UNSUPPORTED if self.one_of_several else State.FAILED

    @cached_property
    def contents(self) -> list[str]:
        """The requirements; a local path is followed by a hash of its contents."""
        return [_with_hash(requirement) for requirement in self.requirements]


def environment_of_section(section: Any) -> Environment:
    """Return the environment that an ``<environment>`` section describes.

    :raises ValueError: if the section is empty
    """
    if not section.python and not section.requirements:
        raise ValueError("an <environment> needs requirements or a python")
    requirements = tuple(section.requirements)
    return Environment(section.getSectionName(), section.python or "", requirements)


def requirement(text: str) -> str:
    """Return a requirement of a section; if it is a path, make the path absolute.

    :raises ValueError: if the path is a directory that cannot be installed
    """
    made = _absolute(text)
    path = Path(made.partition("[")[0])
    if path.is_absolute() and path.is_dir() and not _is_project(path):
        raise ValueError(f"{text} has neither pyproject.toml nor setup.py")
    return made


def environments_of_words(
    words: Sequence[str], several: Callable[[str], Sequence[Environment]] = lambda _: ()
) -> list[Environment]:
    """Return the environments for the words of ``--against``, each with a unique name.

    For each word, *several* returns the environments that the word stands for.  If there are none,
    the word is a Python, a list of requirements, or the path of something that uv installs.

    :raises UserError: if a word is none of these, or names the same environment as another word
    """
    environments: list[Environment] = []
    taken = {INSTALLED}
    for word, wanted in [(w, e) for w in words for e in several(w) or [_of_word(w)]]:
        name = wanted.name.lower()[:MAX_NAME]  # in lower case, as in ZConfig
        environment = replace(wanted, name=name)
        alike = [other for other in environments if _packages_of(other) == _packages_of(wanted)]
        if any(one.one_of_several for one in (*alike, wanted)) and alike:
            continue
        if alike:
            raise UserError(f"--against: {word!r} names the same environment as another value")
        candidates = chain([environment.name], (f"{environment.name}-{n}" for n in count(2)))
        name = next(candidate for candidate in candidates if candidate not in taken)
        taken.add(name)
        release = wanted.release if str(wanted.release).lower() == name else None
        environments.append(replace(environment, name=name, release=release and release.lower()))
    return environments


def _packages_of(environment: Environment) -> tuple[object, ...]:
    """Return a value that is equal for equal environments, even if their words differ."""
    requirements = [_normalized(text) for text in environment.requirements]
    return environment.python, environment.keeps_installed, requirements


def _normalized(text: str) -> Requirement | str:
    """Return an object that is equal for equivalent requirements; return a path unchanged."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return text
    requirement.name = canonicalize_name(requirement.name)
    return requirement


def _of_word(word: str) -> Environment:
    path = Path(word).expanduser()
    if os.path.exists(path):  # noqa: PTH110 - a Path raises if it is too long
        return _of_path(word, path)
    if re.fullmatch(r"(python|pypy)[\d.]*", word):
        if shutil.which(word) is None:
            raise UserError(f"--against: there is no Python {word}")
        return Environment(word, word)
    requirements = tuple(_requirements_of(word))
    name = "+".join(map(_name_of_requirement, requirements))
    release = _release_of(requirements[0]) if len(requirements) == 1 else None
    installed = tuple(map(_absolute, requirements))
    return Environment(name, "", installed, keeps_installed=True, release=release)


def _of_path(word: str, path: Path) -> Environment:
    if path.is_dir() and _is_project(path):
        project = (str(path.absolute()),)
        return Environment(path.resolve().name, requirements=project, keeps_installed=True)
    if path.is_dir():
        python = path / "bin" / "python"
        if not python.exists():
            raise UserError(
                f"--against: {word!r} is neither a checkout, with pyproject.toml or setup.py, nor "
                "a virtual environment"
            )
        return Environment(path.resolve().name, str(python.absolute()))
    if word.endswith(_ARCHIVES):
        return Environment(path.name, requirements=(str(path.absolute()),), keeps_installed=True)
    if not os.access(path, os.X_OK):
        raise UserError(
            f"--against: {word!r} is neither a wheel, a source archive nor an executable Python"
        )
    directory = path.absolute().parent.parent
    is_virtual = (directory / "pyvenv.cfg").exists()
    return Environment(directory.name if is_virtual else path.name, str(path.absolute()))


def _requirements_of(word: str) -> Iterator[str]:
    """Split a word into requirements, each as long as possible: a requirement may have spaces."""
    parts = word.split() or [""]
    start = 0
    while start < len(parts):
        ends = range(len(parts), start, -1)
        end = next((end for end in ends if _is_requirement(" ".join(parts[start:end]))), None)
        if end is None:
            raise _not_requirements(word)
        yield " ".join(parts[start:end])
        start = end


def _is_requirement(text: str) -> bool:
    try:
        name = Requirement(f"url @ {text}" if _URL.match(text) else text).name
    except InvalidRequirement:
        return False
    return not _VERSION.match(name)


def _not_requirements(word: str) -> UserError:
    if os.sep in word and "://" not in word:
        return UserError(f"--against: no such file or directory: {word}")
    shown = _LOGIN.sub("", word)
    return UserError(
        f"--against: {shown!r} is neither a list of requirements such as 'ZEO==5.4.1 ZODB<6' nor "
        "an existing file"
    )


def _name_of_requirement(text: str) -> str:
    if _URL.match(text):  # a URL may contain a password
        return Path(urlsplit(text.split(maxsplit=1)[0]).path).name or "url"
    requirement = Requirement(text)
    # Commas separate the names of contenders in options.
    return f"{requirement.name}{requirement.specifier}".replace(",", "")


def _release_of(text: str) -> Release | None:
    """Return the release to which a requirement pins its package, ``None`` if it pins none."""
    if _URL.match(text):
        return None
    requirement = Requirement(text)
    pins = [one.version for one in requirement.specifier if one.operator == "=="]
    if len(requirement.specifier) != 1 or not pins or pins[0].endswith(".*"):
        return None
    return Release(requirement.name, pins[0])


def is_direct(requirement: str) -> bool:
    """Return whether a requirement locates its package by a URL or a path."""
    try:
        return Requirement(requirement).url is not None
    except InvalidRequirement:
        return True


def _with_hash(requirement: str) -> str:
    path = Path(requirement.partition("[")[0])
    if not path.is_absolute() or not path.exists():
        return requirement
    digest = hashlib.sha256()
    for file in [path] if path.is_file() else _files(path):
        digest.update(f"{file.relative_to(path)}\n".encode())
        with suppress(OSError):  # uv will report an unreadable file
            digest.update(file.read_bytes())
    return f"{requirement} ({digest.hexdigest()[:12]})"


def _files(directory: Path) -> list[Path]:
    """List a checkout's files, except those that git ignores; if git fails, use :func:`_walk`."""
    command = ["git", "-C", str(directory), "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, check=True, capture_output=True).stdout
        paths = [directory / os.fsdecode(name) for name in listed.split(b"\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = list(_walk(directory))
    return sorted(path for path in paths if path.is_file())


def _walk(directory: Path) -> Iterator[Path]:
    for place, directories, names in os.walk(directory):
        directories[:] = [
            name
            for name in directories
            if not name.startswith(".") and name not in {"__pycache__", "build", "dist"}
        ]
        yield from (Path(place) / name for name in names)


def _is_project(path: Path) -> bool:
    return any((path / name).exists() for name in ("pyproject.toml", "setup.py"))


def _absolute(requirement: str) -> str:
    """Return the absolute path to which a requirement refers, if any; else, the requirement."""
    if match := _LOCAL_URL.fullmatch(requirement):
        requirement = f"{unquote(match['path'])}{match['extras'] or ''}"
    path = Path(requirement).expanduser()
    is_path = os.sep in requirement or requirement.startswith(".") or path.suffix == ".whl"
    without_extras, _, _ = str(path).partition("[")
    exists = os.path.exists(without_extras)  # noqa: PTH110 - as above
    return str(path.absolute()) if is_path and exists else requirement
