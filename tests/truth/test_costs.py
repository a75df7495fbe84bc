"""The costs of storages that use a known amount of the machine, and of equal ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import open_directory, run
from zodbshootout.model.quantities import QUANTITIES
from zodbshootout.results.files import read_results

pytestmark = pytest.mark.servers

SPENDING = {"plain": "", "busy": "cpu-milliseconds 20\n", "keeping": "megabytes 100\n"}
"""The settings of the storage behind each contender's server."""
SERVED = "%import faulty\n" + "".join(
    f"<zeoserver server_{name}>\n<spending>\n{settings}<filestorage>\npath $scratch/{name}.fs\n"
    f"</filestorage>\n</spending>\n</zeoserver>\n"
    f"<zodb {name}>\n<zeoclient>\nserver $server_{name}\n</zeoclient>\n</zodb>\n"
    for name, settings in SPENDING.items()
)
DATABASES = """
%import relstorage
%import zodbshootout.mysql
<postgresqlserver pg>
database x
user x
</postgresqlserver>
<mysqlserver my>
database x
user x
</mysqlserver>
<zodb postgresql>
<relstorage>
blob-dir $scratch/of-postgresql
<postgresql>
dsn host='$pg_host' port='$pg_port' dbname='x' user='x' password='$pg_password'
</postgresql>
</relstorage>
</zodb>
<zodb mariadb>
<relstorage>
blob-dir $scratch/of-mariadb
<mysql-or-mariadb>
host $my_host
port $my_port
db x
user x
passwd $my_password
</mysql-or-mariadb>
</relstorage>
</zodb>
"""
PADDING = 10_000
LOCAL = "%import faulty\n" + "".join(
    f"<zodb {name}>\n<spending>\n{spending}"
    f"<filestorage>\npath $scratch/{name}.fs\n</filestorage>\n</spending>\n</zodb>\n"
    for name, spending in {
        "plain": "", "equal": "", "padded": f"padding {PADDING}\n",
        "busy": "cpu-milliseconds 20\n", "helped": "helper-milliseconds 20\n",
    }.items()
)  # fmt: skip
EFFORT = ("--object-counts", "50", "-n", "3", "-l", "3")
COMPARED = ("--only", "plain,equal,padded,busy")
shares_local = pytest.mark.xdist_group("local costs")

Costs = Mapping[tuple[str, str, str], float]
"""The mean of a cost by the contender, the benchmark and the name of the cost."""


def measured(place: Path, configuration: str, *words: str) -> Costs:
    """Measure contenders; return the costs, and leave the results in a.json."""
    (place / "x.conf").write_text(configuration)
    done = run(place, "x.conf", *words, *EFFORT, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    return {
        (result.cell.contender, result.cell.benchmark, name): figure.value
        for result in read_results(place / "a.json")
        for name, cost in QUANTITIES.items()
        if (figure := result.figures[cost]) is not None
    }


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Costs]:
    place = tmp_path_factory.mktemp("local")
    return place, measured(place, LOCAL, "add", "-c", "1", "-p", "5", *COMPARED)


def test_what_a_server_uses_is_found_within_a_tenth(tmp_path: Path) -> None:
    costs = measured(tmp_path, SERVED, "update", "-c", "1", "-p", "3")
    plain, busy, keeping = (
        {name: costs[contender, "update", name] for name in ("server_cpu", "cpu", "server_memory")}
        for contender in SPENDING
    )
    assert busy["server_cpu"] - plain["server_cpu"] == pytest.approx(0.020, rel=0.1)
    # Switches of a busy processor cost the client itself up to 2 ms.
    assert busy["cpu"] - plain["cpu"] < 0.005
    assert keeping["server_memory"] - plain["server_memory"] == pytest.approx(100e6, rel=0.1)
    shown = run(tmp_path, "show", "a.json", "--costs", COLUMNS="80")
    assert shown.status == 0, shown.err
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "  processor time, server" in shown.out


@shares_local
def test_what_a_client_uses_is_found_within_a_tenth(local: tuple[Path, Costs]) -> None:
    _, costs = local
    cpu = {name: costs[name, "add", "cpu"] for name in ("plain", "busy")}
    assert cpu["busy"] - cpu["plain"] == pytest.approx(0.020, rel=0.1)
    disk = {name: costs[name, "add", "disk"] for name in ("plain", "padded")}
    assert disk["padded"] - disk["plain"] == pytest.approx(PADDING, rel=0.001)
    written = {name: costs[name, "add", "written"] for name in ("plain", "padded")}
    assert written["padded"] - written["plain"] > 50 * PADDING * 0.9
    assert ("plain", "add", "server_cpu") not in costs


@pytest.mark.servers("PostgreSQL", "MariaDB")
def test_records_blobs_and_the_log_of_a_server_grow_by_what_is_stored() -> None:
    words = ("add", "-s", "8192", "--compressibility", "0", "-c", "1", "-p", "1")
    with open_directory() as place:
        records = measured(place, DATABASES, *words)
    with open_directory() as place:
        blobs = measured(place, DATABASES, *words, "--blobs")
    for name in ("postgresql", "mariadb"):
        assert 8192 < records[name, "add", "log"] < 4 * 8192
        # A blob is an object that refers to one, and a file or a row.
        assert 4096 * 0.9 < blobs[name, "add", "log"] < 4 * 8192
        assert 1 < records[name, "add", "amplification"] < 40
    assert 8192 < records["postgresql", "add", "disk"] < 2 * 8192
    assert blobs["postgresql", "add", "disk"] < 1000
    assert 4096 < blobs["postgresql", "add", "blobs"] < 3 * 4096
    assert ("postgresql", "add", "blobs") not in records


@pytest.mark.parametrize("clients", [("-c", "1"), ("-c", "3", "--threads", "shared")])
def test_helpers_are_counted_while_they_run(tmp_path: Path, clients: Sequence[str]) -> None:
    contenders = ("--only", "plain", "--only", "helped")
    costs = measured(tmp_path, LOCAL, "add", "-p", "1", *contenders, *clients)
    assert costs["helped", "add", "helper_cpu"] == pytest.approx(0.020, rel=0.1)
    assert costs["plain", "add", "helper_cpu"] == 0.0
    assert costs["helped", "add", "cpu"] - costs["plain", "add", "cpu"] < 0.005


def verdicts(place: Path, base: str, new: str, cost: str) -> list[Any]:
    words = ("compare", "a.json", "--contender", base, new, "--metric", cost, "--format", "json")
    records = json.loads(run(place, *words).out)
    return [record["verdict"] for record in records]


@shares_local
def test_costs_are_compared_like_times(local: tuple[Path, Costs]) -> None:
    place, _ = local
    assert verdicts(place, "plain", "busy", "cpu") == ["slower"]
    assert verdicts(place, "plain", "padded", "disk") == ["slower"]
    for cost in ("cpu", "disk", "memory", "written"):
        assert not {"slower", "faster"}.intersection(verdicts(place, "plain", "equal", cost))
    words = ("compare", "a.json", "--metric", "server_cpu", "--contender", "plain", "equal")
    missing = run(place, *words)
    assert missing.status == 2
    assert missing.complaint == (
        "zodbshootout: --metric: a.json has no server_cpu of plain: "
        "the run started no server for it"
    )
