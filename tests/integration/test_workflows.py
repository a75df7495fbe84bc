"""Run the steps of the documented workflows, as GitHub does, for a repository of ZEO."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
import ZEO

from tests.integration.command import open_directory
from tests.repositories import git
from tests.wheel import build_wheel, make_python
from zodbshootout.cli.parser import parse
from zodbshootout.config.sample_files import samples

WORKFLOWS = Path(__file__).parents[2] / "docs" / "examples" / "workflows"
REPOSITORY = "zopefoundation/ZEO"
BRIEFLY = {
    "--at-most 3": "-p 3 -n 1 --object-counts 5 --min-time 0.001",
    "--at-most 5": "-p 3 -n 1 --object-counts 5 --min-time 0.001",
    "add update cold hot": "update",
    "5%": "10000%",  # the noise of three short runs cannot exceed it
}
"""Replacements in steps and inputs, so that steps take seconds and depend on no clock."""
BACKEND = f"""
import pathlib, zipfile
def build_wheel(directory, *_, **__):
    name = "ZEO-{version("ZEO")}-py3-none-any.whl"
    with zipfile.ZipFile(f"{{directory}}/{{name}}", "w") as archive:
        for path in pathlib.Path("ZEO").rglob("*"):
            archive.write(path)
        information = "ZEO-{version("ZEO")}.dist-info"
        metadata = "Metadata-Version: 2.1\\nName: ZEO\\nVersion: {version("ZEO")}\\n"
        archive.writestr(f"{{information}}/METADATA", metadata)
        tags = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        archive.writestr(f"{{information}}/WHEEL", tags)
        archive.writestr(f"{{information}}/RECORD", "")
    return name
"""
GH = """#!/bin/bash
# Stands in for GitHub's own gh: it has the comments in a directory.
words="$*"
echo "$words" >> "$COMMENTS/calls"
case "$words" in
    *--jq*) ls "$COMMENTS" | grep -x 7 || true ;;
    *body=@*) cp "${words##*body=@}" "$COMMENTS/7" ;;
esac
"""
PIP = """#!/bin/bash
exec python -m pip "$@"
"""
OURS = re.compile(r"^zeo\b|zodbshootout", re.IGNORECASE)
"""The names of what steps install."""
VOTE = "        tbuf = self._check_trans(txn, 'tpc_vote')\n"
"""The line of ZEO's client before which a change puts another query."""


def workflow(name: str) -> Any:
    return yaml.safe_load((WORKFLOWS / f"{name}.yml").read_text(encoding="utf-8"))


def callers() -> list[str]:
    return sorted(path.stem for path in WORKFLOWS.glob("benchmark-*.yml"))


@dataclass
class Runner:
    """A directory in which the steps of a job run, with a Python that they install into."""

    place: Path
    server: Path
    """The directory of the repositories."""
    replaced: Mapping[str, str] = field(default_factory=lambda: BRIEFLY)
    refused: list[str] = field(default_factory=list)
    """The names of the steps that have failed."""
    output: str = ""

    def job(self, name: str, *only: str) -> None:
        """Run the steps of a job, or those that are named, until one fails."""
        called = workflow("zodbshootout")
        inputs = workflow("benchmark-zeo")["jobs"]["benchmark"]["with"]
        for step in called["jobs"][name]["steps"]:
            if "run" in step and not self.refused and step["name"] in (only or [step["name"]]):
                variables = self._substituted({**called["env"], **step.get("env", {})}, inputs)
                self._run(step["name"], self._brief(step["run"]), variables)

    def _brief(self, text: str) -> str:
        for words, others in self.replaced.items():
            text = text.replace(words, others)
        return text

    def _substituted(self, env: Mapping[str, str], inputs: Mapping[str, str]) -> dict[str, str]:
        values = {
            "github.token": "secret", "github.event.pull_request.number": "7",
            "inputs.requirements": "", **{f"inputs.{key}": text for key, text in inputs.items()},
        }  # fmt: skip
        return {
            name: self._brief(re.sub(r"\$\{\{ (.+?) \}\}", lambda match: values[match[1]], text))
            for name, text in env.items()
        }

    def _run(self, name: str, step: str, variables: Mapping[str, str]) -> None:
        assert "${{" not in step
        (wheel,) = self.server.glob("built/*.whl")
        programs = [self.place / "python" / "bin", self.server / "bin", Path(sys.executable).parent]
        environment = {
            **{key: text for key, text in os.environ.items() if not key.startswith("GIT")},
            "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
            "HOME": str(self.place),
            "COMMENTS": str(self.server / "comments"),
            "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1",
            "UV_NO_INDEX": "1", "UV_OFFLINE": "1", "UV_CACHE_DIR": str(self.server / "uv"),
            "GITHUB_SERVER_URL": self.server.as_uri(), "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_RUN_ID": "42", "GITHUB_STEP_SUMMARY": str(self.place / "summary.md"),
            **variables,
            "ZODBSHOOTOUT": f" @ {wheel.as_uri()}",
        }  # fmt: skip
        done = subprocess.run(
            ["bash", "-e", "-c", step],
            check=False, capture_output=True, text=True, cwd=self.place, env=environment,
            timeout=280,
        )  # fmt: skip
        self.output += done.stdout + done.stderr
        if done.returncode:
            self.refused.append(f"{name}: {done.returncode}")

    def read(self, name: str) -> str:
        return (self.place / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    """Make a server with a repository of ZEO, and all that the steps download."""
    with open_directory() as place:
        repository = place / REPOSITORY
        ignored = shutil.ignore_patterns("__pycache__", "tests")
        shutil.copytree(ZEO.__path__[0], repository / "ZEO", ignore=ignored)
        (repository / "pyproject.toml").write_text(
            "[build-system]\nrequires = []\nbuild-backend = 'back'\nbackend-path = ['.']\n"
        )
        (repository / "back.py").write_text(BACKEND)
        git(repository, "init", "-q", "-b", "master")
        git(repository, "add", ".")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GIT_COMMITTER_DATE", "2026-01-01T00:00:00")
            git(repository, "commit", "-q", "-m", "ZEO")
        git(repository, "tag", workflow("benchmark-zeo")["jobs"]["benchmark"]["with"]["anchor"])
        (place / "bin").mkdir()
        for name, text in (("gh", GH), ("pip", PIP)):
            (place / "bin" / name).write_text(text)
            (place / "bin" / name).chmod(0o755)
        (place / "comments").mkdir()
        build_wheel(place)
        yield place


def runner(server: Path, name: str, change: str = "") -> Runner:
    """Return a fresh directory with a checkout of the repository, or of a change merged into it."""
    place = server / name
    place.mkdir()
    make_python(place / "python", left_out=OURS)
    git(server, "clone", "-q", str(server / REPOSITORY), str(place / "head"))
    if change:
        client = place / "head" / "ZEO" / "ClientStorage.py"
        text = client.read_text(encoding="utf-8")
        assert text.count(VOTE) == 1
        git(place / "head", "checkout", "-q", "-b", "change")
        client.write_text(text.replace(VOTE, f"        {change}\n{VOTE}"), encoding="utf-8")
        git(place / "head", "commit", "-q", "-a", "-m", "change")
        git(place / "head", "checkout", "-q", "master")
        git(place / "head", "merge", "-q", "--no-ff", "-m", "merge", "change")
    return Runner(place, server)


def test_a_pull_request_that_adds_no_query_passes(server: Path) -> None:
    passing = runner(server, "passing", "pass  # nothing is asked here")
    passing.job("change")
    assert passing.refused == [], passing.output
    comment = passing.read("comment.md")
    assert comment.startswith("<!-- zodbshootout -->\n### Passed\n")
    assert comment.count("| update |") == 2
    assert passing.read("summary.md") == comment


def test_a_pull_request_that_adds_a_query_is_refused_and_its_comment_is_replaced(
    server: Path,
) -> None:
    adding = runner(server, "adding", "self._call('lastTransaction')")
    adding.job("change")
    assert adding.refused == ["Gate: 1"], adding.output
    assert re.search(r"worse by more than 0 %: zeo: update .*, trips: ", adding.output)
    comment = adding.read("comment.md")
    assert comment.startswith("<!-- zodbshootout -->\n### Refused\n")
    comments = server / "comments"
    assert (comments / "7").read_text(encoding="utf-8") == comment
    adding.refused.clear()
    adding.job("change", "Comment")
    written = [call.split()[2:5] for call in (comments / "calls").read_text().splitlines()]
    assert written[-1] == ["--method", "PATCH", f"repos/{REPOSITORY}/issues/comments/7"]


def test_a_comment_that_github_would_not_take_is_shortened(server: Path) -> None:
    long = Runner(server / "long", server)
    long.place.mkdir()
    (long.place / "findings.txt").touch()
    (long.place / "trips.md").write_text("| trips |\n")
    (long.place / "speed.md").write_text("| update of ×× |\n" * 10_000, encoding="utf-8")
    long.job("change", "Write the comment")
    assert long.refused == [], long.output
    comment = long.read("comment.md")
    assert 50_000 < len(comment) <= 65_536
    *lines, empty, notice = comment.splitlines()
    assert lines[-1] == "| update of ×× |"
    url = f"{server.as_uri()}/{REPOSITORY}/actions/runs/42"
    assert (empty, notice) == ("", f"*Shortened: the [summary of the run]({url}) has all of it.*")
    assert long.read("summary.md").count("update") == 10_000


def test_a_night_compares_the_branch_with_the_day_before_and_the_anchor(server: Path) -> None:
    night = runner(server, "night", "self._call('lastTransaction')")
    git(night.place / "head", "push", "-q", "origin", "HEAD:refs/heads/night")
    night.job("night")
    assert night.refused == [], night.output
    curves = {one["name"]: one["value"] for one in json.loads(night.read("curves.json"))}
    trips = [curves[f"{name}: update objects=5: round trips"]
             for name in ("zeo", "zeo@previous", "zeo@anchor")]  # fmt: skip
    assert trips == [trips[1] + 1, trips[1], trips[1]]
    night.replaced = {"--metric trips": "--metric trips --fail-above 0%", **BRIEFLY}
    night.job("night", "Gate")
    assert night.refused == ["Gate: 1"]
    findings = re.findall(r"worse by more than 0 %: zeo: update .*, trips: ", night.output)
    assert len(findings) == 2


@pytest.mark.parametrize("name", callers())
def test_a_caller_gives_what_the_called_workflow_takes(name: str) -> None:
    called, caller = workflow("zodbshootout"), workflow(name)["jobs"]["benchmark"]
    assert caller["uses"] == "./.github/workflows/zodbshootout.yml"
    inputs = called[True]["workflow_call"]["inputs"]  # "on" is true in YAML 1.1
    assert {key for key, how in inputs.items() if how.get("required")} <= caller["with"].keys()
    assert caller["with"].keys() <= inputs.keys()
    words = shlex.split(caller["with"]["measure"])
    contenders = filter(None, ",".join(parse(words).only).split(","))
    configurations = "".join(path.read_text() for path in samples().values() if path.stem in words)
    assert all(f"<zodb {name}>" in configurations for name in contenders)
    wanted = {scope for job in called["jobs"].values() for scope in job["permissions"].items()}
    granted = {*caller["permissions"].items()}
    assert {scope for scope in wanted if scope[1] == "write"} <= granted
