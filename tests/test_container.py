"""The container file installs what there is, and runs it as a user whom the servers accept."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.repository import container_steps, project
from zodbshootout.servers.installation import MEMCACHED, MYSQL, POSTGRESQL

LISTS = Path("/var/lib/apt/lists")


def arguments(instruction: str) -> list[str]:
    return [rest for word, rest in container_steps() if word == instruction]


def packages() -> list[str]:
    """Return the packages of Debian that the steps install."""
    installs = re.compile(r"apt-get install --yes --no-install-recommends ([^&]+)")
    return [
        name
        for step in arguments("RUN")
        for names in installs.findall(step)
        for name in names.split()
    ]


@pytest.mark.slow
def test_debian_has_the_packages() -> None:
    if shutil.which("apt-cache") is None or not any(LISTS.glob("*_Packages*")):
        pytest.skip("this system has no list of Debian's packages")
    # Debian 12 has libraries without the suffix, which stands for a change of the type of times.
    wanted = {name: name.removesuffix("t64") for name in packages()}
    policy = subprocess.run(
        ["apt-cache", "policy", *wanted, *wanted.values()],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    known = set(re.findall(r"^(\S+):\n  Installed: .*\n  Candidate: [^(\n]", policy, re.MULTILINE))
    assert len(wanted) > 5
    assert [name for name, old in wanted.items() if not {name, old} & known] == []


def test_the_servers_that_a_run_starts_are_installed() -> None:
    for installation in (POSTGRESQL, MYSQL, MEMCACHED):
        assert {*installation.packages.split()} <= {*packages()}


def test_the_extras_exist() -> None:
    (default,) = (rest.partition("=")[2].strip('"') for rest in arguments("ARG"))
    (written,) = re.findall(r'"(zodbshootout\[.+?)"', str(arguments("RUN")))
    requirement = Requirement(written.replace("$ZODBSHOOTOUT", default))
    assert requirement.extras <= project()["optional-dependencies"].keys()
    assert requirement.specifier.contains("1.0.0")
    assert not requirement.specifier.contains("0.8.0")


def test_it_runs_as_a_user_without_rights() -> None:
    (made,) = re.findall(r"useradd --create-home (\w+)", str(arguments("RUN")))
    instructions = [word for word, _ in container_steps()]
    assert arguments("USER") == [made]
    assert made != "root"
    assert instructions.index("USER") < instructions.index("ENTRYPOINT")
    assert "RUN" not in instructions[instructions.index("USER") :]
