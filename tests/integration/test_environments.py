"""Measure contenders in other Pythons, with wheels from ``tools/fetch_wheels.py``."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from itertools import product
from pathlib import Path

import pyperf
import pytest
from tools.fetch_wheels import NEWT, OLD, PYPY, RELSTORAGE, WheelSet, pgjsonb

from tests.integration.command import (
    QUICK,
    Done,
    cells,
    left_behind,
    metadata_of,
    run,
    shown_table,
)
from tests.missing import skip
from tests.repositories import git, repository
from zodbshootout.client.benchmarks import benchmarks

SQLITE = """
%import relstorage
<zodb sqlite>
    <relstorage>
        keep-history false
        <sqlite3>
            data-dir $scratch/sqlite
            driver sqlite3
        </sqlite3>
    </relstorage>
</zodb>
"""
OURS = """
<zodb fs>
    <filestorage>
        path $scratch/fs
    </filestorage>
</zodb>
"""
ELSEWHERE = """
<zodb there>
    environment other
    <filestorage>
        path $scratch/there
    </filestorage>
</zodb>
"""
OFFLINE = {"UV_OFFLINE": "1", "UV_NO_INDEX": "1"}
ONE_CLIENT = ("-c", "1", *QUICK)


def wheels(wheel_set: WheelSet) -> dict[str, str]:
    """Return the variables with which uv finds only these wheels.

    Skip the test if they cannot be fetched.
    """
    if not wheel_set.is_there():
        try:
            wheel_set.fetch()
        except (OSError, subprocess.CalledProcessError) as error:
            skip(f"the wheels of {wheel_set.name} cannot be fetched: {error}")
    return {
        **OFFLINE,
        "UV_FIND_LINKS": str(wheel_set.directory),
        "UV_CACHE_DIR": str(wheel_set.directory.parent / "cache"),
    }


def slices_of(path: Path) -> list[object]:
    """Return the slice numbers of each run of ``add``."""
    added = pyperf.BenchmarkSuite.load(str(path)).get_benchmark("add")
    return [pyperf_run.get_metadata()["slices"] for pyperf_run in added.get_runs()]


@pytest.mark.network
def test_two_releases_of_a_storage_are_measured_in_turn(place: Path) -> None:
    (place / "x.conf").write_text(SQLITE)
    words = ("x.conf", "add", "--against", "RelStorage==4.2.0", *QUICK, "-p", "2")
    listed = run(place, *words, "--list", **wheels(RELSTORAGE))
    assert listed.status == 0, listed.err
    assert "making environment relstorage==4.2.0: RelStorage==4.2.0, all else" in listed.err
    assert "2 cells, 2 runs of each" in listed.out
    assert left_behind(place) == []

    done = run(place, *words, "-o", "a.json", **wheels(RELSTORAGE))
    assert done.status == 0, done.err
    assert "making environment relstorage==4.2.0" in done.err
    installed = metadata_of(place / "a.d" / "sqlite.json", "add")
    other = metadata_of(place / "a.d" / "sqlite@relstorage==4.2.0.json", "add")
    assert other["version_RelStorage"] == "4.2.0" != installed["version_RelStorage"]
    assert other["version_ZODB"] == installed["version_ZODB"]
    slices = [slices_of(place / "a.d" / f"sqlite{end}.json") for end in ("", "@relstorage==4.2.0")]
    assert slices[0] == slices[1]
    assert f"version_RelStorage: {installed['version_RelStorage']} against 4.2.0" in done.out
    assert "the ratios are those of values that were taken in turn" in done.out

    assert done.out.startswith(shown_table(place, "a.json"))
    assert left_behind(place) == []


def test_the_commits_of_a_range_are_measured_in_turn_except_one_that_cannot_be_built(
    place: Path,
) -> None:
    (place / "x.conf").write_text(OURS)
    repository(place / "shot", "number = 1", "broken", "number = 3", "number = 4")
    words = ("x.conf", "add", "-c", "1", *QUICK, "-p", "2")
    done = run(place, *words, "--against", "./shot@v1..HEAD", "-o", "a.json", **OFFLINE)
    assert done.status == 0, done.err
    rows = done.out.partition("fs, shot")[2].splitlines()[1:5]
    _, *commits = [row.split()[0] for row in rows]
    assert rows[0].split()[0] == "v1"
    assert ["n/a" in row for row in rows] == [False, True, False, False]
    assert f"fs@shot@{commits[0]}: not supported: environment shot@{commits[0]} cannot" in done.out
    ends = ("", "@shot@v1", f"@shot@{commits[1]}", f"@shot@{commits[2]}")
    slices = [slices_of(place / "a.d" / f"fs{end}.json") for end in ends]
    assert slices == [slices[0]] * 4
    assert git(place / "shot", "status", "--porcelain") == ""
    assert left_behind(place) == []


CLIENT = """
<zodb zeo>
    <zeoclient>
        server $main
    </zeoclient>
</zodb>
"""


def server(environment: str = "") -> str:
    return f"""
<zeoserver main>
    {environment}
    <filestorage>
        path $scratch/zeo.fs
    </filestorage>
</zeoserver>
"""


def versions_of(place: Path, name: str) -> dict[str, object]:
    """Return the versions of ZEO and ZODB in a contender, and in its server."""
    metadata = metadata_of(place / "a.d" / f"{name}.json", "add")
    return {
        key.removeprefix("version_"): version
        for key, version in metadata.items()
        if key.startswith(("version_ZEO", "version_ZODB"))
    }


OLD_ZEO = {"ZEO": "5.4.1", "ZODB": "5.8.1"}
OLD_SERVER = {"ZEO_server": "5.4.1", "ZODB_server": "5.8.1"}
NEW_ZEO = {name: version(name) for name in ("ZEO", "ZODB")}
NEW_SERVER = {f"{name}_server": version for name, version in NEW_ZEO.items()}


@pytest.mark.network
def test_releases_of_zeo_are_compared_on_both_sides(place: Path) -> None:
    (place / "x.conf").write_text(server() + CLIENT)
    words = ("x.conf", "add", "cold", "--against", "ZEO==5.4.1 ZODB<6")
    done = run(place, *words, *ONE_CLIENT, "-o", "a.json", **wheels(OLD))
    assert done.status == 0, done.err
    assert "only the clients" not in done.err
    assert versions_of(place, "zeo") == NEW_ZEO | NEW_SERVER
    assert versions_of(place, "zeo@zeo==5.4.1+zodb%3C6") == OLD_ZEO | OLD_SERVER
    trips = metadata_of(place / "a.d" / "zeo@zeo==5.4.1+zodb%3C6.json", "add")["trips"]
    assert set(trips.split()) == {"2"}
    assert f"version_ZEO_server: {NEW_ZEO['ZEO']} against 5.4.1" in done.out
    assert left_behind(place) == []


@pytest.mark.network
def test_a_server_may_be_in_another_environment_than_its_clients(place: Path) -> None:
    old = "<environment old>\nrequirements ZEO==5.4.1\nrequirements ZODB<6\n</environment>\n"
    (place / "x.conf").write_text(old + server("environment old") + CLIENT)
    done = run(place, "x.conf", "add", *ONE_CLIENT, "-o", "a.json", **wheels(OLD))
    assert done.status == 0, done.err
    assert versions_of(place, "zeo") == NEW_ZEO | OLD_SERVER


def test_append_and_resume_work_with_environments_but_leaks_does_not(place: Path) -> None:
    environment = f"<environment other>\npython {sys.executable}\n</environment>\n"
    (place / "x.conf").write_text(f"%import relstorage\n{environment}{OURS}{ELSEWHERE}")
    for option in ("-o", "--append", "--resume"):
        done = run(place, "x.conf", "add", *ONE_CLIENT, option, "a.json")
        assert done.status == 0, done.err
    other = pyperf.BenchmarkSuite.load(str(place / "a.d" / "there.json")).get_benchmark("add")
    assert len(other.get_runs()) == 2
    refused = run(place, "x.conf", "add", "--threads", "--leaks", *QUICK)
    assert refused.status == 2
    assert "--leaks applies to this Python only, but there uses another one" in refused.err


@pytest.mark.network
def test_an_environment_needs_only_zodb_5_8(place: Path) -> None:
    environment = "<environment other>\nrequirements ZODB==5.8.1\n</environment>\n"
    (place / "x.conf").write_text(f"{environment}{ELSEWHERE}")
    words = ("x.conf", "all", *ONE_CLIENT, "-o", "a.json")
    done = run(place, *words, **wheels(OLD))
    assert done.status == 0, done.err
    states = {name: state for (_, name), (state, _) in cells(place / "a.cells.jsonl").items()}
    # Neither this release nor the newest one can prefetch from a FileStorage.
    assert states.pop("prefetch_cold") == "not supported"
    every = {name for name, benchmark in benchmarks().items() if not benchmark.traits.alone}
    assert states == dict.fromkeys(every - {"prefetch_cold", "replay"}, "measured")
    metadata = metadata_of(place / "a.d" / "there.json", "add")
    assert metadata["version_ZODB"] == "5.8.1"
    assert metadata["environment"] == "ZODB==5.8.1"

    assert metadata["python_executable"] == sys.executable
    again = run(place, "x.conf", "add", *ONE_CLIENT, "--append", "a.json", **wheels(OLD))
    assert again.status == 0, again.err
    assert left_behind(place) == []


def test_an_unusable_environment_fails_only_its_own_contenders(place: Path) -> None:
    old = place / "old"
    old.write_text(
        '#!/bin/sh\necho \'{"version": [3, 8, 0], "implementation": "x", "flaw": ""}\'\n'
    )
    old.chmod(0o755)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "bare"], check=True)
    kinds = {
        "unmade": "requirements no-such-package==1",
        "gone": f"python {place}/gone",
        "old": f"python {old}",
        "bare": f"python {place}/bare/bin/python",
    }
    text = OURS
    for name, lines in kinds.items():
        text += f"<environment {name}>\n{lines}\n</environment>\n"
        text += ELSEWHERE.replace("there", f"in_{name}").replace("other", name)
    (place / "x.conf").write_text(text)
    done = run(
        place, "x.conf", "add", *ONE_CLIENT, "-o", "a.json",
        **OFFLINE,
    )  # fmt: skip
    assert done.status == 3
    states = {name: outcome for (name, _), outcome in cells(place / "a.cells.jsonl").items()}
    assert states.pop("fs")[0] == "measured"
    assert {state for state, _ in states.values()} == {"failed"}
    assert states["in_unmade"][1].startswith("environment unmade cannot be made: error: ")
    assert states["in_gone"][1] == f"environment gone: there is no Python {place}/gone"
    assert "is Python 3.8.0; clients need 3.9 or later" in states["in_old"][1]
    assert "environment bare has no working ZODB: ModuleNotFoundError" in states["in_bare"][1]
    assert left_behind(place) == []


def test_a_run_that_needs_uv_ends_at_once_without_it(place: Path) -> None:
    (place / "uv.py").touch()  # has no find_uv_bin
    (place / "x.conf").write_text(OURS)
    words = ("x.conf", "add", "--against", "ZODB<6", *ONE_CLIENT)
    done = run(place, *words, PYTHONPATH=str(place), PATH="/usr/sbin")
    assert done.status == 2
    assert done.err.strip().endswith("install it: pip install 'zodbshootout[against]'")
    assert not (place / "a.json").exists()


def test_a_section_error_in_another_environment_is_reported_with_file_and_line(place: Path) -> None:
    environment = f"<environment other>\npython {sys.executable}\n</environment>\n"
    (place / "x.conf").write_text(f"{environment}{ELSEWHERE.replace('path', 'paht')}")
    done = run(place, "x.conf", "add", *ONE_CLIENT)
    assert done.status == 2
    assert "x.conf:8: 'paht' is not a known key name (environment other)" in done.err


def test_a_cell_fails_if_the_python_of_its_environment_exits_when_serving(place: Path) -> None:
    python = place / "python"
    ends = f"exec {sys.executable} -c 'raise SystemExit(\"no\")'"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *fork_server*) {ends};; *) exec {sys.executable} "$@";; esac\n'
    )
    python.chmod(0o755)
    environment = f"<environment other>\npython {python}\n</environment>\n"
    (place / "x.conf").write_text(f"{environment}{OURS}{ELSEWHERE}")
    done = run(place, "x.conf", "add", *ONE_CLIENT, "-o", "a.json")
    assert done.status == 3
    states = cells(place / "a.cells.jsonl")
    assert states["fs", "add"][0] == "measured"
    assert (
        "the Python of environment other ended with exit status 1: no" in states["there", "add"][1]
    )
    assert left_behind(place) == []


@pytest.mark.network
@pytest.mark.servers("PyPy")
def test_pypy_is_measured_next_to_this_python(place: Path) -> None:
    environment = "<environment other>\npython pypy3\nrequirements ZODB\n</environment>\n"
    (place / "x.conf").write_text(f"{environment}{OURS}{ELSEWHERE}")
    words = ("x.conf", "cold", "--threads", *QUICK)
    done = run(place, *words, "-n", "3", "-o", "a.json", **wheels(PYPY))
    assert done.status == 0, done.err
    metadata = metadata_of(place / "a.d" / "there.json", "cold")
    assert metadata["python_implementation"] == "pypy"
    assert "PyPy" in str(metadata["python_version"])
    assert metadata_of(place / "a.d" / "fs.json", "cold")["python_implementation"] == "cpython"


@pytest.mark.network
def test_greenlets_are_not_supported_if_the_environment_lacks_gevent(place: Path) -> None:
    environment = "<environment other>\nrequirements ZODB==5.8.1\n</environment>\n"
    (place / "x.conf").write_text(f"{environment}{OURS}{ELSEWHERE}")
    words = ("x.conf", "add", "--gevent", *QUICK, "-o", "a.json")
    done = run(place, *words, **wheels(OLD))
    assert done.status == 0, done.err
    states = cells(place / "a.cells.jsonl")
    assert states["fs", "add"][0] == "measured"
    reason = "gevent is not installed in the contender's environment"
    assert states["there", "add"] == ("not supported", reason)


@pytest.mark.network
def test_newt_db_is_measured_next_to_the_relstorage_it_needs(place: Path) -> None:
    words = ("newt-sample", "update", "cold", *QUICK, "-o", "a.json")
    done = run(place, *words, **wheels(NEWT))
    assert done.status == 0, done.err
    states = cells(place / "a.cells.jsonl")
    assert {name for name, _ in states} == {"relstorage", "newt", "newt_text"}
    assert {state for state, _ in states.values()} == {"measured"}
    metadata = metadata_of(place / "a.d" / "newt_text.json", "update")
    assert (metadata["version_RelStorage"], metadata["driver"]) == ("2.1.1", "psycopg2")
    # Newt DB stores a second record for each object, by requests of its own.
    assert set(metadata["trips"].split()) == {"26"}
    assert left_behind(place) == []


def pgjsonb_run(place: Path, *words: str) -> Done:
    """Run the sample of zodb-pgjsonb with some benchmarks and options."""
    packages = pgjsonb()
    if packages is None:
        pytest.skip("there is no Python 3.12 or later")
    python = f"python={packages.python}"
    words = ("pgjsonb-sample", *words, *QUICK, "--define", python, "-o", "a.json")
    return run(place, *words, **wheels(packages))


@pytest.mark.network
def test_zodb_pgjsonb_is_measured_next_to_relstorage(place: Path) -> None:
    chosen = ("add", "cold", "store")
    done = pgjsonb_run(place, *chosen, "--zap", "force")
    assert done.status == 0, done.err
    states = {cell: state for cell, (state, _) in cells(place / "a.cells.jsonl").items()}
    names = ("relstorage", "pgjsonb", "pgjsonb_history")
    assert states == dict.fromkeys(product(names, chosen), "measured")
    for name in names[1:]:
        metadata = metadata_of(place / "a.d" / f"{name}.json", "cold")
        assert metadata["driver"] == "psycopg"
        # psycopg prepares a statement after some executions, which takes fewer round trips then.
        assert all(int(trips) > 5 for trips in str(metadata["trips"]).split())
        assert metadata["durability"] == "synced"
        assert metadata["cleared_caches"] == "pickle cache, zodb-pgjsonb cache"
        assert metadata["uncleared_caches"] == '["PostgreSQL server", "operating system"]'
        assert metadata["storage_cache_hits"] == 0
        assert {"version_zodb-pgjsonb", "version_PostgreSQL"} <= metadata.keys()
    assert left_behind(place) == []


@pytest.mark.network
def test_a_pool_of_zodb_pgjsonb_has_to_have_two_connections_for_each_thread(place: Path) -> None:
    words = ("add", "--only", "pgjsonb", "--threads", "shared", "-c", "2,3")
    done = pgjsonb_run(place, *words, "--define", "connections=4")
    assert done.status == 0, done.err
    records = map(json.loads, (place / "a.cells.jsonl").read_text().splitlines())
    states = {record["clients"]: record["state"] for record in records}
    assert states == {2: "measured", 3: "not supported"}
