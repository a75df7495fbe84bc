"""Whatever goes wrong: one line that says so, everything else measured, nothing left behind."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.integration.command import QUICK, left_behind, names_in, run, start, wait_until

GOOD = "<zodb good>\n<filestorage>\npath $scratch/good.fs\n</filestorage>\n</zodb>\n"


DUE = 14
"""The commit of an opened storage that goes wrong: by then what is read is written, and ``add`` of
as many iterations as ``BUSY`` says is in the middle of its values."""
BUSY = (*QUICK, "-l", "8")


def faulty(name: str, fault: str, commit: int = DUE) -> str:
    return (
        f"<zodb {name}>\n<faulty>\nfault {fault}\nbenchmark-commit {commit}\n"
        f"<filestorage>\npath $scratch/{name}.fs\n</filestorage>\n</faulty>\n</zodb>\n"
    )


@pytest.mark.parametrize("crew", [("-c", "1"), ("-c", "2", "--threads")])
def test_trap_15_cells_that_fail_leave_all_others_measured(
    crew: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "x.conf").write_text(
        "%import faulty\n" + GOOD + faulty("raises", "raise") + faulty("killed", "kill")
        + faulty("hangs", "hang")
    )  # fmt: skip
    done = run(tmp_path, "x.conf", "add", "cold", *crew, *BUSY, "--timeout", "5", "-o", "a.json")
    assert done.status == 3
    assert names_in(tmp_path / "a.json") == {
        f"{name} 20x300B {'processes-1' if crew == ('-c', '1') else 'threads-shared-2'}"
        for name in ("good: add", "good: cold", "raises: cold", "killed: cold", "hangs: cold")
    }
    reasons = {
        (each["contender"], each["benchmark"]): each["reason"]
        for each in map(json.loads, (tmp_path / "a.cells.jsonl").read_text().splitlines())
        if each["state"] == "failed"
    }
    assert reasons.pop(("raises", "add")) == "StorageError: the disk is on fire"
    assert "was killed by SIGKILL" in reasons.pop(("killed", "add"))
    assert reasons.pop(("hangs", "add")) == "not done within its time limit of 5 s (--timeout)"
    assert reasons == {}
    assert "raises, add: failed: StorageError: the disk is on fire" in done.out
    assert "Traceback" not in done.out + done.err
    assert left_behind(tmp_path) == []


def test_trap_15_a_time_limit_ends_the_clients_of_the_worker_too(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text("%import faulty\n" + faulty("hangs", "hang"))
    done = run(tmp_path, "x.conf", "add", "-c", "1", *BUSY, "--timeout", "5", "-o", "a.json")
    assert done.status == 3
    assert left_behind(tmp_path) == []


def test_trap_12_fail_fast_stops_at_the_first_failure(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text("%import faulty\n" + faulty("raises", "raise") + GOOD)
    done = run(tmp_path, "x.conf", "add", "-c", "1", *BUSY, "--fail-fast", "-o", "a.json")
    assert done.status == 3
    assert "not run" in done.out


def test_a_traceback_is_shown_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text("%import faulty\n" + faulty("raises", "raise"))
    done = run(tmp_path, "x.conf", "add", "-c1", *BUSY, "--log", "DEBUG", "-o", "a.json")
    assert done.status == 3
    assert "Traceback (most recent call last)" in done.err


def test_a_server_that_is_not_there_costs_only_its_contender(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(
        GOOD + "<zodb zeo>\n<zeoclient>\nserver localhost:1\n</zeoclient>\n</zodb>\n"
    )
    done = run(tmp_path, "x.conf", "add", "-c", "1", *QUICK, "-o", "a.json")
    assert done.status == 3
    assert "no ZEO server at localhost:1; start one there: runzeo -a localhost:1 -f" in done.out
    assert names_in(tmp_path / "a.d" / "good.json") == {"add"}


def test_a_driver_that_is_missing_costs_only_its_contender(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text(
        "%import relstorage\n" + GOOD + "<zodb ora>\n<relstorage>\n<oracle>\nuser x\npassword y\n"
        "dsn z\n</oracle>\n</relstorage>\n</zodb>\n"
    )
    done = run(tmp_path, "x.conf", "add", "-c", "1", *QUICK, "-o", "a.json")
    assert done.status == 3
    assert "ora: failed: <oracle>: no driver for it is installed; install it: pip" in done.out
    assert names_in(tmp_path / "a.d" / "good.json") == {"add"}
    assert left_behind(tmp_path) == []


def test_a_private_server_that_does_not_come_up_gives_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "x.conf").write_text(
        GOOD + "<zeoserver main>\n<filestorage>\npath taken\n</filestorage>\n</zeoserver>\n"
        "<zodb zeo>\n<zeoclient>\nserver $main\n</zeoclient>\n</zodb>\n"
    )
    done = run(tmp_path, "x.conf", "add", "-c", "1", *QUICK, "-o", "a.json")
    assert done.status == 3
    assert "zeo: failed: server main ended at once:" in done.out
    assert "Is a directory" in done.out
    assert names_in(tmp_path / "a.d" / "good.json") == {"add"}
    assert left_behind(tmp_path) == []


BAD = {
    "no such file": (["nowhere.conf"], "zodbshootout: no such file: nowhere.conf"),
    "no contender": (["empty.conf"], "zodbshootout: empty.conf: no contender; each is a section"),
    "a key that is none": (["key.conf"], "key.conf:5: 'cache-sise' is not a known key name"),
    "two of one name": (["twice.conf"], "twice.conf:10: a second section is called 'good'"),
    "no such package": (["package.conf"], "package no.such.package is not installed"),
    "no such benchmark": (
        ["good.conf", "clod"],
        "unknown benchmark 'clod'; did you mean load or cold?",
    ),
    "no such contender": (
        ["good.conf", "--only", "goof"],
        "--only: no contender 'goof'; did you mean good?",
    ),
    "a size that is none": (["good.conf", "-s", "many"], "'many' is not a positive number"),
    "a count of zero": (["good.conf", "--object-counts", "0"], "'0' is not a positive number"),
    "a concurrency below one": (["good.conf", "-c", "-1"], "'-1' is not a positive number"),
    "nothing to restart": (
        ["good.conf", "cold", "--restart-servers", "--list"],
        "--restart-servers: no contender has a server that the run starts",
    ),
    "an output file that exists": (
        ["good.conf", "-o", "there.json"],
        "-o: there.json exists; name another file, or use --append to add to it",
    ),
    "an output directory that is none": (
        ["good.conf", "-o", "nowhere/out.json"],
        "there is no directory nowhere to write results to",
    ),
    "something else to append to": (
        ["good.conf", "--append", "there.json"],
        "--append: there.json is not a file of pyperf's",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_status_2_before_anything_is_measured(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "good.conf").write_text(GOOD)
    (tmp_path / "empty.conf").write_text("# nothing\n")
    (tmp_path / "key.conf").write_text(GOOD.replace("</zodb>", "cache-sise 5\n</zodb>"))
    (tmp_path / "twice.conf").write_text(GOOD + GOOD)
    (tmp_path / "package.conf").write_text("%import no.such.package\n" + GOOD)
    (tmp_path / "there.json").write_text("{}")
    words, message = BAD[name]
    done = run(tmp_path, *words)
    assert done.status == 2
    assert message in done.complaint
    assert done.out == ""
    assert left_behind(tmp_path) == []


def test_ctrl_c_keeps_what_was_measured_and_leaves_nothing(tmp_path: Path) -> None:
    process = start(tmp_path, "add", "steamin", *QUICK[:2], "-c", "2", "--only", "zeo",
                    "-o", "a.json", "-p", "50")  # fmt: skip
    wait_until((tmp_path / "a.json").exists)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted; what was measured until then is kept" in err
    assert "Traceback" not in err
    assert "not run" in out
    assert names_in(tmp_path / "a.d" / "zeo.json") == {"add"}
    assert left_behind(tmp_path) == []


def test_a_killed_run_leaves_whole_files_and_nothing_running(tmp_path: Path) -> None:
    process = start(tmp_path, "add", "steamin", *QUICK[:2], "-c", "2", "--only", "zeo",
                    "-o", "a.json", "-p", "50")  # fmt: skip
    wait_until((tmp_path / "a.json").exists)
    process.kill()
    process.communicate()
    assert names_in(tmp_path / "a.d" / "zeo.json") == {"add"}
    wait_until(lambda: left_behind(tmp_path) == [])


def test_a_database_that_cannot_be_opened_is_a_failure_of_its_contender(tmp_path: Path) -> None:
    (tmp_path / "not.fs").write_bytes(b"this is not a FileStorage, and long enough to see that")
    (tmp_path / "x.conf").write_text(
        GOOD + "<zodb bad>\n<filestorage>\npath not.fs\n</filestorage>\n</zodb>\n"
    )
    done = run(tmp_path, "x.conf", "add", "-c1", *QUICK, "-o", "a.json")
    assert done.status == 3
    assert "bad: failed: cannot be opened: FileStorageFormatError" in done.out
