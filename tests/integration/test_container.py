"""Take the steps of the container file in trees of Debian's files, in place of docker.

This downloads packages and takes minutes.  It is done if DEBIAN_TREE names such a tree, as root:

    debootstrap --variant=minbase trixie /tmp/debian
    DEBIAN_TREE=/tmp/debian pytest tests/integration/test_container.py
"""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integration.command import open_directory
from tests.repository import ROOT, container_steps

TREE = os.environ.get("DEBIAN_TREE")
ENTER = """
for name in proc dev sys; do mount --rbind /$name "$0/$name"; done
exec chroot "$@"
"""
"""Changes the root directory, in a namespace whose mounts end with the command."""

pytestmark = pytest.mark.skipif(
    not TREE or os.geteuid() != 0, reason="DEBIAN_TREE names no tree of Debian, or this is not root"
)


@dataclass
class Image:
    """The result of the steps so far."""

    place: Path
    """The directory of the stages."""
    stages: dict[str, Path] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    user: str = "root"
    directory: str = "/"
    entry: list[str] = field(default_factory=list)

    @property
    def tree(self) -> Path:
        """The root directory of the newest stage."""
        return list(self.stages.values())[-1]

    def take(self, instruction: str, rest: str, wheel: Path) -> None:
        """Do what docker does for an instruction; *wheel* stands for the release in the index."""
        if instruction == "FROM":
            self._begin(rest.partition(" AS ")[2] or "image")
        elif instruction == "ARG":
            shutil.copy(wheel, self.tree / "opt")
            self.environment[rest.partition("=")[0]] = f" @ file:///opt/{wheel.name}"
        elif instruction == "RUN":
            self.run("/bin/sh", "-c", rest)
        elif instruction == "COPY":
            stage, source, target = rest.split()
            origin = self.stages[stage.removeprefix("--from=")]
            shutil.copytree(f"{origin}{source}", f"{self.tree}{target}", symlinks=True)
        elif instruction == "USER":
            self.user = rest
        elif instruction == "WORKDIR":
            self.directory = rest
        else:
            assert instruction == "ENTRYPOINT"
            self.entry = json.loads(rest)

    def _begin(self, name: str) -> None:
        """Begin a stage with Debian's files, names of hosts and certificates as they are here."""
        self.stages[name] = self.place / name
        subprocess.run(["cp", "-a", str(TREE), str(self.tree)], check=True)
        shutil.copy("/etc/resolv.conf", self.tree / "etc")
        shutil.copy(ssl.get_default_verify_paths().cafile or "", self.tree / "opt" / "ca.crt")

    def run(self, *command: str) -> str:
        """Run a command in the newest stage, and return its output."""
        words = [
            f"--userspec={self.user}",
            str(self.tree),
            "/usr/bin/env",
            f"--chdir={self.directory}",
        ]
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", ENTER, str(self.tree), *words, *command],
            check=False, capture_output=True, text=True,
            env={
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": "/root" if self.user == "root" else f"/home/{self.user}",
                "DEBIAN_FRONTEND": "noninteractive", "PIP_CERT": "/opt/ca.crt",
                **self.environment,
            },
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    with open_directory() as place:
        build = [sys.executable, "-m", "uv", "build", "--quiet", "--out-dir", str(place), str(ROOT)]
        subprocess.run(build, check=True)
        (wheel,) = place.glob("*.whl")
        image = Image(place)
        for instruction, rest in container_steps():
            image.take(instruction, rest, wheel)
        yield image


@pytest.mark.timeout(3600)
def test_the_sample_measures_its_servers_without_rights(image: Image) -> None:
    assert image.run("id", "--user", "--name").strip() == image.user != "root"
    table = image.run(*image.entry, "sample", "--list")
    assert table.splitlines()[2].split() == ["Benchmark", "postgresql", "mysql", "mysql_mc", "zeo"]
    assert image.run(*image.entry, "website-sample", "add", "-p", "1", "-n", "1", "-o", "out.json")
    assert "mysql" in image.run(*image.entry, "show", "out.json")
