"""Wheels and git repositories of a package that tests install."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path


def wheel(
    directory: Path, name: str, version: str, module: str, text: str, needs: str = ""
) -> Path:
    """Write a wheel with one module and return its path."""
    information = f"{name}-{version}.dist-info"
    path = directory / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{module}.py", text)
        archive.writestr(
            f"{information}/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            + (f"Requires-Dist: {needs}\n" if needs else ""),
        )
        archive.writestr(
            f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{information}/RECORD", "")
    return path


BACKEND = """
import subprocess, zipfile
def build_wheel(directory, *_, **__):
    described = subprocess.check_output(["git", "describe", "--tags"], text=True)
    version = described.strip()[1:].replace("-", ".post", 1).replace("-", "+")
    name = f"shot-{version}-py3-none-any.whl"
    with zipfile.ZipFile(f"{directory}/{name}", "w") as archive:
        archive.write("shot.py")
        information = f"shot-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\\nName: shot\\nVersion: {version}\\n"
        archive.writestr(f"{information}/METADATA", metadata)
        tags = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        archive.writestr(f"{information}/WHEEL", tags)
        archive.writestr(f"{information}/RECORD", "")
    return name
"""
"""A build backend that takes the version from git's tags."""


def git(directory: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(directory), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def repository(directory: Path, *modules: str) -> None:
    """Make a repository with a commit for each text of the module ``shot``, the first one ``v1``.

    A text ``broken`` stands for a commit that cannot be built.
    """
    directory.mkdir()
    (directory / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'back'\nbackend-path = ['.']\n"
    )
    git(directory, "init", "-q", "-b", "main")
    for text in modules:
        (directory / "back.py").write_text("" if text == "broken" else BACKEND)
        (directory / "shot.py").write_text(text)
        git(directory, "add", ".")
        git(directory, "commit", "-q", "--allow-empty", "-m", text)
        if text == modules[0]:
            git(directory, "tag", "v1")
