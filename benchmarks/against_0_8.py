"""The small run of :mod:`benchmarks.share`, against zodbshootout 0.8.0 on the same cells.

0.8.0 is installed from PyPI into a virtual environment in a temporary directory.  It cannot start
servers, so this module starts PostgreSQL and ZEO as the command would, and writes their addresses
into the configuration for 0.8.0.  Its wall time includes neither installing it nor starting the
servers; ours includes starting them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyperf

from benchmarks import share
from benchmarks.contenders import IMPORTS
from benchmarks.line import Line, NotMeasured, at_most, info
from zodbshootout.client.database import prelude
from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.guardian import Guardian
from zodbshootout.servers.address import given_names
from zodbshootout.servers.running import RunningServers
from zodbshootout.servers.server import ServerContext

REQUIREMENTS = (
    "zodbshootout==0.8.0",
    "pyperf==2.3.1",  # 2.4 and later have their own --profile
    "six",
    "setuptools<81",
    "RelStorage",
    "ZEO",
    "psycopg2-binary",
)
PART = 1 / 20


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield both wall times, and their ratio."""
    ours = share.small_run(quick=quick).wall / share.CELLS
    theirs = _wall_of_0_8(quick=quick) / share.CELLS
    yield info("against_0_8: wall time per cell, 0.8.0", theirs, "{:.2f} s")
    yield info("against_0_8: wall time per cell, ours", ours, "{:.2f} s")
    yield at_most("against_0_8: ours / 0.8.0", ours / theirs, PART, "{:.3f}")


def _wall_of_0_8(*, quick: bool) -> float:
    prefix = "benchmarks-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        directory = Path(name)
        directory.chmod(0o755)  # root runs PostgreSQL as another user
        source = Source(directory / "servers.conf", share.SERVERS)
        scratch = directory / "scratch"
        scratch.mkdir()
        with Guardian() as guardian, ExitStack() as stack:
            guardian.watch_directory(directory)
            python = _installed(guardian, directory / "venv")
            names = stack.enter_context(given_names(source, scratch))
            configuration = parse(source, names)
            users = {server: ["0.8.0"] for server in configuration.servers}
            context = ServerContext(scratch, source, names, guardian)
            servers = RunningServers()
            servers.start(stack, configuration, users, context)
            if servers.absent:
                reasons = "; ".join(servers.absent.values())
                raise NotMeasured(f"a server does not start: {reasons}")
            file = directory / "contenders.conf"
            file.write_text(prelude(names) + IMPORTS + share.contenders(), encoding="utf-8")
            return _time(guardian, python, file, quick=quick)


def _time(guardian: Guardian, python: Path, file: Path, *, quick: bool) -> float:
    output = file.with_name("out.json")
    command = [
        str(python), "-m", "zodbshootout", "--include-mapping", "false", "-o", str(output),
        *share.effort(quick=quick), *share.OPTIONS, str(file), *share.BENCHMARKS,
    ]  # fmt: skip
    began = time.perf_counter()
    done = _run(guardian, command, file.parent)
    wall = time.perf_counter() - began
    measured = len(pyperf.BenchmarkSuite.load(str(output))) if output.exists() else 0
    if done.returncode or measured != share.CELLS:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise NotMeasured(
            f"0.8.0 ended with {done.returncode} and measured {measured} cells: {''.join(last)}"
        )
    return wall


def _installed(guardian: Guardian, path: Path) -> Path:
    """Return the Python of a virtual environment with 0.8.0 installed."""
    python = path / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", str(path)],
        [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS],
    ):
        done = _run(guardian, command, path.parent)
        if done.returncode:
            raise NotMeasured(f"0.8.0 cannot be installed: {done.stderr.strip()[-300:]}")
    return python


def _run(
    guardian: Guardian, command: Sequence[str], directory: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command without our modules on its path; it ends with this process."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    pipe = subprocess.PIPE
    process = guardian.start(command, stdout=pipe, stderr=pipe, cwd=directory, env=environment)
    try:
        out, err = process.communicate()
    finally:
        process.end()
    return subprocess.CompletedProcess(command, process.returncode, out.decode(), err.decode())
