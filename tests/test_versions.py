"""The versions of installed packages."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from zodbshootout import versions
from zodbshootout.versions import installed_versions


class Installed:
    version = "4.3.0"

    def __init__(self, origin: Mapping[str, Any] | None) -> None:
        self.origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self.origin is None else json.dumps(self.origin)


@pytest.fixture(autouse=True)
def _empty_version_cache() -> Iterator[None]:
    versions._version.cache_clear()
    yield
    versions._version.cache_clear()


def version(monkeypatch: pytest.MonkeyPatch, origin: Mapping[str, Any] | None) -> str:
    versions._version.cache_clear()
    monkeypatch.setattr(versions, "distribution", lambda _: Installed(origin))
    return installed_versions(["x"])["x"]


def git(directory: Path, *words: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    command = ["git", *identity, "-C", str(directory), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    directory = tmp_path / "a package"
    directory.mkdir()
    git(directory, "init", "-q")
    (directory / "module.py").write_text("a = 1\n")
    git(directory, "add", ".")
    git(directory, "commit", "-q", "-m", "first")
    return directory


def editable(directory: Path) -> dict[str, Any]:
    return {"url": directory.as_uri(), "dir_info": {"editable": True}}


def test_a_released_package_has_its_version_and_a_missing_one_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert set(installed_versions(["ZODB", "no-such-package"])) == {"ZODB"}
    assert version(monkeypatch, None) == "4.3.0"
    archive = {"url": "https://example.org/x.tar.gz", "archive_info": {}}
    assert version(monkeypatch, archive) == "4.3.0"


def test_a_package_from_a_repository_has_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    origin = {
        "url": "https://example.org/x",
        "vcs_info": {"vcs": "git", "commit_id": "0123456789" * 4},
    }
    assert version(monkeypatch, origin) == "4.3.0+git.012345678901"


def test_the_version_of_a_checkout_has_its_commit_and_marks_changes(
    monkeypatch: pytest.MonkeyPatch, checkout: Path
) -> None:
    commit = git(checkout, "rev-parse", "--short=12", "HEAD")
    assert version(monkeypatch, editable(checkout)) == f"4.3.0+git.{commit}"
    (checkout / "note.txt").write_text("not a part of it")
    assert version(monkeypatch, editable(checkout)) == f"4.3.0+git.{commit}"
    (checkout / "module.py").write_text("a = 2\n")
    assert version(monkeypatch, editable(checkout)) == f"4.3.0+git.{commit}.modified"


def test_a_git_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, checkout: Path, tmp_path: Path
) -> None:
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nsleep 9\necho 0123456789ab\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(versions, "GIT_TIMEOUT", 0.2)
    assert version(monkeypatch, editable(checkout)) == "4.3.0"


def test_a_copied_directory_or_one_without_git_has_only_a_version(
    monkeypatch: pytest.MonkeyPatch, checkout: Path, tmp_path: Path
) -> None:
    assert version(monkeypatch, {**editable(checkout), "dir_info": {}}) == "4.3.0"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert version(monkeypatch, editable(elsewhere)) == "4.3.0"
    monkeypatch.setenv("PATH", str(elsewhere))
    assert version(monkeypatch, editable(checkout)) == "4.3.0"
