"""Round trips as they are counted, and the time that a distance adds, on real servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import left_behind, open_directory, run
from zodbshootout.results.figures import time_of
from zodbshootout.results.files import read_results

pytestmark = pytest.mark.servers("PostgreSQL")

RELSTORAGE = """<relstorage>
keep-history false
<postgresql>
dsn host='$pg_host' port='$pg_port' dbname='{}' user='zodbshootout' password=$pg_password
</postgresql>
</relstorage>
"""
CONF = f"""
%import relstorage
%import faulty
<zeoserver main>
<filestorage>
path $scratch/zeo.fs
</filestorage>
</zeoserver>
<postgresqlserver pg>
database one
database two
</postgresqlserver>
<zodb zeo>
<zeoclient>
server $main
</zeoclient>
</zodb>
<zodb postgresql>
{RELSTORAGE.format("one")}</zodb>
<zodb chatty>
<chatty>
{RELSTORAGE.format("two")}</chatty>
</zodb>
<zodb fs>
<filestorage>
path $scratch/fs.fs
</filestorage>
</zodb>
"""
OBJECTS = 20
EFFORT = ("-c", "1", "--object-counts", str(OBJECTS), "-s", "250", "-p", "1", "-n", "1", "-l", "1")
TRIPS = {"zeo": 2, "postgresql": 12, "chatty": 13}
"""Round trips of an update."""
shares_run = pytest.mark.xdist_group("round trips")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with open_directory() as place:
        (place / "x.conf").write_text(CONF)
        done = run(place, "x.conf", "update", "cold", *EFFORT, "-o", "a.json")
        assert done.status == 0, done.out + done.err
        yield place


@pytest.fixture
def other_place() -> Iterator[Path]:
    with open_directory() as place:
        (place / "x.conf").write_text(CONF)
        yield place


def facts(place: Path, contender: str, benchmark: str) -> Any:
    (metadata,) = (
        result.metadata
        for result in read_results(place / "a.json")
        if (result.cell.contender, result.cell.benchmark) == (contender, benchmark)
    )
    return metadata


@shares_run
def test_round_trips_are_counted_exactly(place: Path) -> None:
    for contender, trips in TRIPS.items():
        counted = facts(place, contender, "update")["trips"]
        assert set(counted.split()) == {str(trips)}, contender
    # One for each object, and some for the mapping and the root.
    assert {int(trips) - OBJECTS for trips in facts(place, "zeo", "cold")["trips"].split()} == {1}
    assert "trips" not in facts(place, "fs", "update")
    sent = [int(size) for size in facts(place, "zeo", "update")["sent_bytes"].split()]
    assert min(sent) > OBJECTS * 250


@shares_run
def test_a_change_that_adds_a_round_trip_is_found(place: Path) -> None:
    gate = ("compare", "a.json", "--metric", "trips", "--fail-above", "0", "--contender")
    worse = run(place, *gate, "postgresql", "chatty")
    assert worse.status == 1, worse.out
    assert "chatty takes 1.08 times as much (exactly)" in worse.out
    assert run(place, *gate, "postgresql", "postgresql").status == 0


def test_a_distance_adds_its_time_to_each_round_trip(other_place: Path) -> None:
    words = ("update", "cold", *EFFORT, "--rtt", "0,5ms", "--only", "zeo,postgresql,fs")
    done = run(other_place, "x.conf", *words, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    names = {path.stem for path in (other_place / "a.d").iterdir()}
    assert len(names) == 5  # fs has no server, so it is measured once
    for result in read_results(other_place / "a.json"):
        if result.cell.parameters.rtt == 0.005:
            # However slow the machine is, it takes at least that long.
            trips = min(int(trips) for trips in result.metadata["trips"].split())
            assert time_of(result).value > trips * 0.005 * 0.95
            assert result.metadata["rtt_s"] == 0.005
            assert result.metadata["rtt_delivered_s"] > 0.0045
    assert left_behind(other_place) == []


def test_servers_keep_the_distances_of_their_sections(other_place: Path) -> None:
    text = CONF.replace("<postgresqlserver pg>", "<postgresqlserver pg>\nrtt 5ms")
    text = text.replace("<zeoserver main>", "<zeoserver main>\nrtt 0")
    (other_place / "x.conf").write_text(text)
    words = ("update", *EFFORT, "--rtt", "1ms", "--only", "zeo,postgresql")
    done = run(other_place, "x.conf", *words, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    (near, far) = read_results(other_place / "a.json")
    assert not any(key.startswith(("rtt", "server_rtts")) for key in near.metadata)
    assert far.metadata["rtt_s"] == 0.005
    assert far.metadata["rtt_delivered_s"] > 0.0045
    assert time_of(far).value > TRIPS["postgresql"] * 0.005 * 0.95
