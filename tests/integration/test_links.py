"""Servers that close idle connections, or accept few."""

from __future__ import annotations

from pathlib import Path

from tests.integration.command import left_behind, metadata_of, run


def contender(name: str, setting: str = "") -> str:
    settings = f"<settings>\n{setting}\n</settings>\n" if setting else ""
    return f"""
<postgresqlserver pg_{name}>
{settings}</postgresqlserver>
<zodb {name}>
    <relstorage>
        keep-history false
        <postgresql>
            dsn host='$pg_{name}_host' port='$pg_{name}_port' dbname='zodbshootout' \
user='zodbshootout' password='$pg_{name}_password'
        </postgresql>
    </relstorage>
</zodb>
"""


def test_connections_that_a_server_closed_between_slices_are_counted_and_told(place: Path) -> None:
    text = contender("idle", "idle_session_timeout 60ms") + contender("steady")
    (place / "x.conf").write_text(f"%import relstorage\n{text}")
    words = ("readCurrent", "-c", "1", "--object-counts", "5", "-p", "2", "-n", "8")
    done = run(place, "x.conf", *words, "-o", "a.json")
    assert done.status == 0, done.out + done.err
    line = " ".join(done.out.split())
    assert "connections closed while waiting for a turn, so that figures include" in line
    assert "connecting again: readCurrent (idle_session_timeout 0.06 s); raise it" in line
    idle, steady = (
        metadata_of(place / "a.d" / f"{name}.json", "readCurrent") for name in ("idle", "steady")
    )
    assert idle["reconnections"] >= 1
    assert "reconnections" not in steady
    assert idle["connections"] == steady["connections"] == 2
    assert idle["encryption"] == "none"
    assert left_behind(place) == []


def test_a_server_that_accepts_too_few_connections_is_told_with_the_number(place: Path) -> None:
    text = contender("few", "max_connections 20")
    (place / "x.conf").write_text(f"%import relstorage\n{text}")
    words = ("update", "-c", "24", "--threads", "--object-counts", "5", "-p", "1", "-n", "2")
    done = run(place, "x.conf", *words)
    assert done.status == 3
    line = " ".join(done.out.split())
    assert "needs 48 connections at -c 24, the server allows 20 (max_connections): raise" in line
    assert left_behind(place) == []
