"""The client package needs ZODB, and nothing else of ours or others'."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

import zodbshootout.client
from zodbshootout.client.parameters import CrewShape, Parameters
from zodbshootout.client.specification import Specification, Storage

SECTION = """<zodb x>
    <filestorage>
        path $here/x.fs
    </filestorage>
</zodb>
"""

DRIVE = """
import json, queue, sys, threading
from zodbshootout.client import protocol
from zodbshootout.client.benchmarks.registry import benchmarks
from zodbshootout.client.client import Client
from zodbshootout.client.clock import SystemClock
from zodbshootout.client.database import Database
from zodbshootout.client.populating import populate
from zodbshootout.client.session import follow_orders
from zodbshootout.client.specification import Specification


class Channel:
    def __init__(self):
        self.orders, self.reports = queue.Queue(), queue.Queue()
        self.send, self.receive = self.reports.put, self.orders.get

    def poll(self):
        return not self.orders.empty()


def opened():
    return benchmark(Client(0, specification.parameters, Database(specification.storage)))


specification = Specification.from_json(json.load(sys.stdin))
benchmark = benchmarks()[specification.benchmark]
with Database(specification.storage) as database:
    populate(database, benchmark.purpose, specification.parameters)
channel, clock = Channel(), SystemClock()
threading.Thread(target=follow_orders, args=(channel, opened, clock), daemon=True).start()
reports = [channel.reports.get(timeout=20)]
for order in (
    protocol.Prepare(5), protocol.Start(clock.now()), protocol.Stop(), protocol.Verify(),
    protocol.Leave(),
):
    channel.orders.put(order)
    reports.append(channel.reports.get(timeout=20))
(stretch,) = (each for each in reports if isinstance(each, protocol.Stretch))
ours = {name for name in sys.modules if name.startswith("zodbshootout.")}
print(json.dumps({
    "reports": [type(each).__name__ for each in reports],
    "done": stretch.done,
    "counts": stretch.counts,
    "latencies": sum(stretch.latencies.counts.values()),
    "progress": list(stretch.progress.done),
    "beside": sorted(name for name in ours if not name.startswith("zodbshootout.client")),
    "root": sys.modules["zodbshootout"].__file__,
}))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python that has ZODB alone, and beside it a copy of the client package."""
    place = tmp_path_factory.mktemp("alone")
    venv.create(place / "env", with_pip=True)
    found = place / "env" / "bin" / "python"
    subprocess.run(
        [found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "ZODB"],
        check=True,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )
    package = place / "path" / "zodbshootout"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copytree(Path(zodbshootout.client.__file__).parent, package / "client")
    return found


def alone(python: Path, code: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-c", code],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": str(python.parents[2] / "path")},
    )


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("add", {"loads": 0, "stores": 55}),
        ("cold", {"loads": 55}),
        ("update", {"loads": 0, "stores": 50}),
    ],
)
def test_it_measures_a_filestorage_where_there_is_zodb_alone(
    name: str, counts: dict[str, int], python: Path, tmp_path: Path
) -> None:
    storage = Storage(SECTION, names={"here": str(tmp_path)})
    told = Specification(storage, name, Parameters(CrewShape(1), objects=10))
    done = alone(python, DRIVE, json.dumps(told.to_json()))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["root"] == str(python.parents[2] / "path" / "zodbshootout" / "__init__.py")
    assert found["reports"] == ["Ready", "Ready", "Finished", "Stretch", "Verified", "Left"]
    assert (found["done"], found["latencies"]) == (5, 5)
    assert found["progress"] == [1, 2, 3, 4, 5]
    assert found["counts"] == counts
    assert found["beside"] == []


@pytest.mark.parametrize("module", ["pyperf", "rich", "hdrh", "ZEO", "relstorage"])
def test_nothing_else_is_there(module: str, python: Path) -> None:
    done = alone(python, f"import {module}")
    assert f"No module named '{module}'" in done.stderr
