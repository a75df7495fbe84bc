"""The files that tell services what to do with the repository fit each other and the package."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.repository import ROOT, project

OURS = sorted(ROOT.glob(".github/workflows/*.yml"))
"""The workflows of this repository."""
EXAMPLES = sorted(ROOT.glob("docs/examples/workflows/*.yml"))
"""The workflows that users copy."""
WORKFLOWS = [*OURS, *EXAMPLES]
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
"""An action with the commit of a release, whose name is a comment."""


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def content(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def tox() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "tox.ini")
    return parser


def actions(path: Path) -> list[str]:
    """Return what a workflow uses, with the comments behind it, except other workflows."""
    used = re.findall(r"^ *(?:- )?uses: (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return [words for words in used if not words.startswith("./")]


def commands(workflow: Any) -> list[str]:
    return [
        step["run"]
        for job in workflow["jobs"].values()
        for step in job.get("steps", ())
        if "run" in step
    ]


@pytest.mark.parametrize("path", WORKFLOWS, ids=named)
def test_a_workflow_pins_its_actions_by_commit(path: Path) -> None:
    assert [words for words in actions(path) if not PINNED.fullmatch(words)] == []
    assert "example.com" not in path.read_text(encoding="utf-8")


def test_an_action_has_the_same_commit_in_all_workflows() -> None:
    pins = {words for path in WORKFLOWS for words in actions(path)}
    assert len(pins) == len({words.partition("@")[0] for words in pins})


@pytest.mark.parametrize("path", WORKFLOWS, ids=named)
def test_a_workflow_may_do_no_more_than_it_says(path: Path) -> None:
    workflow = content(path)
    assert set(workflow["permissions"].values()) <= {"read"}
    for job in workflow["jobs"].values():
        assert "timeout-minutes" in job or "uses" in job
        assert isinstance(job.get("permissions", {}), dict)


def test_only_the_job_that_publishes_has_a_right_to_write() -> None:
    rights = {
        (path.stem, name, *right)
        for path in OURS
        for name, job in content(path)["jobs"].items()
        for right in job.get("permissions", {}).items()
        if right[1] == "write"
    }
    assert rights == {("publish", "publish", "id-token", "write")}


def test_workflows_run_environments_that_tox_has() -> None:
    run = {
        environment
        for command in commands(content(ROOT / ".github/workflows/tests.yml"))
        for environments in re.findall(r"tox -e (\S+)", command)
        for environment in environments.split(",")
    }
    known = {section.removeprefix("testenv:") for section in tox().sections()}
    assert {"py", "oldest", "lint", "docs"} <= run <= {"py", *known}


def test_workflows_use_all_supported_pythons() -> None:
    supported = {
        words.rpartition(" ")[2]
        for words in project()["classifiers"]
        if re.search(r":: 3\.\d+$", words)
    }
    jobs = {job: steps for path in OURS for job, steps in content(path)["jobs"].items()}
    for name in ("tests", "try"):
        assert {*jobs[name]["strategy"]["matrix"]["python"]} == supported


def test_workflows_name_files_that_exist() -> None:
    text = "\n".join(command for path in OURS for command in commands(content(path)))
    paths = re.findall(r"(?:docs|tests|tools)/[\w./-]+", text)
    assert len(paths) > 1
    assert [path for path in paths if not (ROOT / path).exists()] == []
