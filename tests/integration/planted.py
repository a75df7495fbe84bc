"""A git repository of the RelStorage that is installed, with planted commits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import distribution
from pathlib import Path

from tests.repositories import git

ONE_MORE_QUERY = (
    "relstorage/adapters/postgresql/mover.py",
    """

def _asking(store_temps):
    def ask(self, cursor, rows):
        cursor.execute("SELECT 1")
        cursor.fetchall()
        return store_temps(self, cursor, rows)
    return ask


PostgreSQLObjectMover.store_temps = _asking(PostgreSQLObjectMover.store_temps)
""",
)
SLEEP = (
    "relstorage/storage/__init__.py",
    """

def _sleeping(finish):
    import time
    def tpc_finish(self, *arguments, **more):
        time.sleep(0.2)
        return finish(self, *arguments, **more)
    return tpc_finish


RelStorage.tpc_finish = _sleeping(RelStorage.tpc_finish)
""",
)
BACKEND = """
import pathlib, zipfile
def build_wheel(directory, *_, **__):
    (information,) = pathlib.Path().glob("*.dist-info")
    tag = (information / "WHEEL").read_text().partition("Tag: ")[2].splitlines()[0]
    name = f"{information.stem}-{tag}.whl"
    with zipfile.ZipFile(f"{directory}/{name}", "w") as archive:
        for path in [*information.rglob("*"), *pathlib.Path("relstorage").rglob("*")]:
            archive.write(path)
    return name
"""
PROJECT = "[build-system]\nrequires = []\nbuild-backend = 'back'\nbackend-path = ['.']\n"


def relstorage(
    directory: Path,
    number: int,
    planted: Mapping[int, tuple[str, str]],
    broken: Collection[int] = (),
) -> list[str]:
    """Make a checkout of RelStorage with a *number* of commits after the first one, ``v1``.

    Each of the *planted* ones adds a text to a file, whose name comes first.  The *broken* ones
    cannot be built.  Return the hashes of all.
    """
    installed = distribution("RelStorage")
    for path in installed.files or ():
        if ".." not in path.parts and path.suffix != ".pyc" and "tests" not in path.parts:
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_binary())
    (directory / "pyproject.toml").write_text(PROJECT)
    git(directory, "init", "-q", "-b", "main")
    for commit in range(number + 1):
        (directory / "back.py").write_text("" if commit in broken else BACKEND)
        (directory / "NEWS").write_text(f"Change {commit}\n")
        if commit in planted:
            name, text = planted[commit]
            with (directory / name).open("a", encoding="utf-8") as file:
                file.write(text)
        git(directory, "add", "--force", ".")
        git(directory, "commit", "-q", "-m", f"Change {commit}")
    git(directory, "tag", "v1", f"HEAD~{number}")
    return git(directory, "rev-list", "--reverse", "HEAD").split()
