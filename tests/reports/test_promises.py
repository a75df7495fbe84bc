"""The lines about durability, sharing and servers below a table and at the top of a page."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from tests.runs import cell, failed, measured
from zodbshootout.model.storage_facts import Durability, Place, Sharing
from zodbshootout.reports import format_named
from zodbshootout.reports.cells import Columned, ResultSet
from zodbshootout.reports.promises import promises
from zodbshootout.reports.sections import whole_report
from zodbshootout.reports.tables import make_report

SYNCED, MAY_LOSE = Durability.SYNCED.value, Durability.MAY_LOSE.value
IN_MEMORY, UNKNOWN = Durability.IN_MEMORY.value, Durability.UNKNOWN.value
NORMAL = {"durability": MAY_LOSE, "durability_detail": "synchronous NORMAL"}
BEHIND_SERVER = {"durability": UNKNOWN, "durability_detail": "behind a ZEO server"}


def columned(name: str, **metadata: Any) -> Columned:
    return name, measured(cell("add", name), [1.0], **metadata)


def durable(name: str, **metadata: Any) -> Columned:
    return columned(name, durability=SYNCED, **metadata)


def test_a_storage_that_may_lose_commits_is_named_beside_those_that_do_not() -> None:
    postgresql = durable("pg", durability_detail="synchronous_commit on")
    cells = [durable("fs"), columned("sqlite", **NORMAL), postgresql]
    sentence = (
        "sqlite does not sync each commit (synchronous NORMAL): a power cut may take the last ones"
    )
    assert promises(cells) == [f"{sentence}; the others sync each commit, and lose none"]
    assert promises(cells[:2]) == [f"{sentence}; fs syncs each commit, and loses none"]


def test_every_durability_has_a_clause_that_names_its_contenders() -> None:
    cells = [
        columned("one", **NORMAL),
        columned("two", **NORMAL),
        columned("three", durability=MAY_LOSE, durability_detail="fsync off"),
        columned("memory", durability=IN_MEMORY),
        columned("a", **BEHIND_SERVER),
        columned("b", **BEHIND_SERVER),
    ]
    assert promises(cells) == [
        (
            "one and two do not sync each commit (synchronous NORMAL): a power cut may take the "
            "last ones; "
            "three does not sync each commit (fsync off): a power cut may take the last ones; "
            "memory keeps all data in memory: a power cut takes all of it; "
            "whether a and b sync each commit is unknown (behind a ZEO server)"
        )
    ]


@pytest.mark.parametrize("kind", [SYNCED, MAY_LOSE, IN_MEMORY, UNKNOWN, "something later"])
def test_contenders_of_one_durability_have_no_line(kind: str) -> None:
    assert promises([columned(name, durability=kind) for name in "ab"]) == []


def test_results_without_metadata_are_left_out_and_are_not_among_the_others() -> None:
    old = columned("old", sharing=Sharing.VOLATILE.value)
    cells = [old, columned("sqlite", **NORMAL), durable("a"), durable("b")]
    assert promises(cells)[0].endswith("; a and b sync each commit, and lose none")
    assert promises([old, columned("new", sharing=Sharing.EXCLUSIVE.value)]) == []
    assert promises([("x", failed(cell("add", "x"), "gone")), durable("a")]) == []
    assert promises([]) == []


def test_the_processes_that_can_use_the_data_are_named_if_they_differ() -> None:
    cells = [
        columned("fs", durability=SYNCED, sharing=Sharing.EXCLUSIVE.value),
        columned("zeo", durability=SYNCED, sharing=Sharing.CONCURRENT.value),
        columned("sqlite", durability=SYNCED, sharing=Sharing.CONCURRENT.value),
        columned("memory", durability=SYNCED, sharing=Sharing.VOLATILE.value),
    ]
    assert promises(cells) == [
        (
            "data can be used by any number of processes at once with zeo and sqlite; by one "
            "process at a time with fs; by one process, until it ends, with memory"
        )
    ]
    assert promises(cells[1:3]) == []


def test_the_places_of_servers_are_named_if_there_is_one() -> None:
    places = {"zeo": Place.PRIVATE, "pg": Place.HERE, "my": Place.ELSEWHERE}
    served = [
        columned(name, durability=SYNCED, server_place=place.value)
        for name, place in places.items()
    ]
    assert promises([*served, durable("fs"), durable("sqlite")]) == [
        (
            "servers: zeo on this machine, started by the run; pg on this machine; my elsewhere; "
            "none for fs and sqlite"
        )
    ]
    assert promises(served[:1]) == ["servers: zeo on this machine, started by the run"]


def test_contenders_whose_connections_are_encrypted_are_named_if_others_are_not() -> None:
    plain, tls = durable("plain", encryption="none"), durable("tls", encryption="TLSv1.3")
    assert promises([plain, tls, durable("fs")]) == [
        "connections that are encrypted: those of tls (TLSv1.3); not those of plain"
    ]
    assert promises([plain, durable("fs")]) == promises([tls, durable("fs")]) == []


@pytest.mark.slow
def test_a_table_has_the_lines_after_its_verdicts_and_a_page_at_its_top() -> None:
    fast, slow = [[0.1, 0.1]] * 5, [[0.2, 0.2]] * 5
    results = [
        measured(cell("add", "fs"), *fast, durability=SYNCED),
        measured(cell("add", "sqlite"), *slow, **NORMAL),
    ]
    line = (
        "sqlite does not sync each commit (synchronous NORMAL): a power cut may take the last "
        "ones; fs syncs each commit, and loses none"
    )
    notes = [str(note) for note in make_report([ResultSet(results)]).notes]
    assert notes[0].startswith("fs is 2")
    assert line in notes[2:4]
    page = io.StringIO()
    format_named("html")(whole_report([ResultSet(results)]), Console(file=page))
    header, _, _ = page.getvalue().partition("</header>")
    assert f'<p class="promise">{line}</p>' in header
