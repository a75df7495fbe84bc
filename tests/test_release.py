"""The dry run of a release, with made-up files; ``tox -e release`` runs it with true ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tools import release


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose commit has the tag v1.0."""
    monkeypatch.setattr(release, "ROOT", tmp_path)
    identity = ("-c", "user.name=x", "-c", "user.email=x")
    for words in (["init"], ["add", "."], ["commit", "-m", "x"], ["tag", "v1.0"]):
        (tmp_path / "committed").touch()
        subprocess.run(["git", *identity, "-C", str(tmp_path), *words], check=True)
    return tmp_path


def test_what_is_not_committed_is_not_released(root: Path) -> None:
    (root / "not_committed").touch()
    release.clone("v1.0", root / "source")
    assert [path.name for path in (root / "source").iterdir() if path.name != ".git"] == [
        "committed"
    ]


def test_a_tag_has_to_be_the_version(root: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "zodbshootout-1.1-py3-none-any.whl"
    wheel.touch()
    release.check_version("HEAD", tmp_path)
    with pytest.raises(ValueError, match=r"the tag is v1\.0, but pyproject\.toml says 1\.1"):
        release.check_version("v1.0", tmp_path)
    wheel.rename(tmp_path / "zodbshootout-1.0-py3-none-any.whl")
    release.check_version("v1.0", tmp_path)
