"""Pack real storages while clients go on."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.integration.command import (
    cells,
    left_behind,
    metadata_of,
    processes_in,
    run,
    start,
    wait_until,
)
from tests.integration.sections import (
    MARIADB,
    MYSQL,
    MYSQL_SERVER,
    POSTGRESQL,
    POSTGRESQL_SERVER,
    RELSTORAGE,
    SQLITE,
    ZEO_SERVER,
    contender,
    filestorage,
    with_blobs,
    zeo,
)

pytestmark = pytest.mark.servers("PostgreSQL", "MariaDB")

CONF = (
    f"{RELSTORAGE}{ZEO_SERVER}{POSTGRESQL_SERVER}{contender('zeo', zeo())}"
    f"{contender('postgresql', POSTGRESQL)}{contender('fs', filestorage('$scratch/fs.fs'))}"
)
EFFORT = (
    "--rate", "50", "--during", "pack", "--object-counts", "5", "--min-objects", "600", "-p", "1",
    "-o", "a.json",
)  # fmt: skip
PHASES = ["before pack", "during pack", "after pack"]


def check_pack(place: Path, contender: str, benchmark: str, out: str) -> None:
    """Check what the phases of a contender tell about its pack."""
    file = place / "a.d" / f"{contender}.json"
    facts = {phase: metadata_of(file, f"{benchmark} {phase}") for phase in PHASES}
    assert facts["during pack"]["operation_s"] > 0
    assert facts["after pack"]["operation_freed_objects"] == round(600 * 0.3 / 0.7)
    assert {"recovered_s", "not_recovered_s"} & facts["after pack"].keys()
    assert f"{contender}: pack during {benchmark} at 50/s took " in out


def test_latencies_of_real_storages_are_measured_while_they_are_packed(place: Path) -> None:
    (place / "x.conf").write_text(CONF)
    words = ("add", "--threads", "-c", "2", "--only", "postgresql,fs")
    done = run(place, "x.conf", *words, *EFFORT)
    assert done.status == 0, done.out + done.err
    outcomes = cells(place / "a.cells.jsonl")
    assert {state for state, _ in outcomes.values()} == {"measured"}, outcomes
    for name in ("postgresql", "fs"):
        check_pack(place, name, "add", done.out)
    assert left_behind(place) == []


def test_a_process_of_its_own_packs_beside_clients_that_are_processes(place: Path) -> None:
    (place / "x.conf").write_text(CONF)
    done = run(place, "x.conf", "update", "-c", "2", "--only", "zeo,fs", *EFFORT)
    assert done.status == 0, done.out + done.err
    outcomes = cells(place / "a.cells.jsonl")
    assert outcomes["zeo", "update"] == ("measured", "")
    check_pack(place, "zeo", "update", done.out)
    state, reason = outcomes["fs", "update"]
    assert state == "not supported"
    assert "only the process that has it open can pack it; use --threads shared" in reason
    assert left_behind(place) == []


WITH_SQLITE = (
    f"{MYSQL}{CONF}{MYSQL_SERVER}{contender('mariadb', MARIADB)}{contender('sqlite', SQLITE)}"
)
SMALL = (
    "--rate", "50", "-c", "2", "--object-counts", "2", "--min-objects", "150", "-p", "1",
    "-o", "a.json",
)  # fmt: skip


def test_real_databases_are_copied_by_a_process_beside_their_clients(place: Path) -> None:
    (place / "x.conf").write_text(with_blobs(WITH_SQLITE))
    words = ("--during", "copy", "--only", "zeo,postgresql,sqlite", "--blobs")
    done = run(place, "x.conf", "hot", *SMALL, *words)
    assert done.status == 0, done.out + done.err
    for name in ("zeo", "postgresql", "sqlite"):
        facts = metadata_of(place / "a.d" / f"{name}.json", "hot after copy")
        assert facts["operation_records"] > 150
    assert left_behind(place) == []


def test_a_storage_that_stalls_others_while_it_packs_is_found_out(place: Path) -> None:
    storage = f"<stalling>\nmilliseconds 1000\n{filestorage('$scratch/a.fs')}</stalling>\n"
    (place / "x.conf").write_text(f"%import faulty\n{contender('a', storage)}")
    done = run(place, "x.conf", "update", "--threads", "-c", "2", *EFFORT)
    assert done.status == 0, done.out + done.err
    file = place / "a.d" / "a.json"
    before, during, _ = (metadata_of(file, f"update {phase}") for phase in PHASES)
    assert during["operation_s"] >= 1
    assert during["latency_max_s"] >= 0.9
    assert during["latency_max_s"] > 2 * before["latency_max_s"]


FAULTY = f"<faulty>\nfault FAULT\nduring pack\n{zeo()}</faulty>\n"
KILLED = f"%import faulty\n{ZEO_SERVER}{contender('zeo', FAULTY)}"


@pytest.mark.parametrize(
    ("fault", "reason"), [("kill", "the process of pack was killed"), ("raise", "on fire")]
)
def test_a_process_that_fails_while_it_packs_leaves_nothing_behind(
    fault: str, reason: str, place: Path
) -> None:
    (place / "x.conf").write_text(KILLED.replace("FAULT", fault))
    done = run(place, "x.conf", "update", "-c", "2", *EFFORT, "--retries", "0")
    assert done.status == 3, done.out + done.err
    state, cause = cells(place / "a.cells.jsonl")["zeo", "update"]
    assert state == "failed"
    assert reason in cause
    assert left_behind(place) == []


def test_ctrl_c_while_it_packs_leaves_nothing_behind(place: Path) -> None:
    (place / "x.conf").write_text(KILLED.replace("FAULT", "hang"))
    with start(place, "x.conf", "update", "-c", "2", *EFFORT, "--timeout", "60") as process:
        wait_until(lambda: _is_measuring(place))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert left_behind(place) == []


def _is_measuring(place: Path) -> bool:
    """Return whether the clients are there, and the process beside them that packs."""
    return sum("fork_server" in words for words in processes_in(place).values()) >= 4


RESTARTED = ("--rate", "30", "--object-counts", "5", "-p", "1", "-o", "a.json")


@pytest.mark.parametrize(
    ("name", "how"),
    [("zeo", "restart"), ("zeo", "restart:clean"), ("postgresql", "restart")],
)
def test_no_commit_is_lost_when_a_real_server_restarts(name: str, how: str, place: Path) -> None:
    (place / "x.conf").write_text(CONF)
    words = ("update", "-c", "2", "--during", how, "--only", f"{name},fs")
    done = run(place, "x.conf", *words, *RESTARTED)
    assert done.status == 0, done.out + done.err
    state, reason = cells(place / "a.cells.jsonl")["fs", "update"]
    assert (state, "did not start a server" in reason) == ("not supported", True)
    facts = metadata_of(place / "a.d" / f"{name}.json", f"update after {how}")
    assert facts["acknowledged_commits"] > 300
    assert facts["lost_commits"] == 0
    assert facts["reconnections"] == {"zeo": 2, "postgresql": 4}[name]
    assert facts["hundredth_transaction_s"] > facts["first_transaction_s"] > 0
    assert left_behind(place) == []


def test_cold_reads_go_on_after_real_servers_restart_with_empty_caches(place: Path) -> None:
    (place / "x.conf").write_text(WITH_SQLITE)
    names = ("postgresql", "mariadb")
    words = ("cold", "-c", "2", "--during", "restart:clean", "--only", ",".join(names))
    done = run(place, "x.conf", *words, *RESTARTED)
    assert done.status == 0, done.out + done.err
    for name in names:
        facts = metadata_of(place / "a.d" / f"{name}.json", "cold after restart:clean")
        assert (facts["acknowledged_commits"], facts["lost_commits"]) == (0, 0)
        assert facts["reconnections"] >= 2
        assert facts["hundredth_transaction_s"] > facts["first_transaction_s"] > 0
    assert left_behind(place) == []
