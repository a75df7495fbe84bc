from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from zodbshootout import preparation
from zodbshootout.arguments import UsageError
from zodbshootout.config.configuration import Source, parse
from zodbshootout.contenders.contender import contenders_of
from zodbshootout.perf.task import Subject
from zodbshootout.preparation import Fleet, Workplace, check_restartable, start_servers
from zodbshootout.servers.failure import ServerFailed
from zodbshootout.servers.naming import given_names

# The database is the last of the file, and everything else needs it; the cache, nobody.
CHAIN = (
    "%import relstorage\n"
    "<zeoserver outer>\n<zeoclient>\nserver $inner\n</zeoclient>\n</zeoserver>\n"
    "<zeoserver inner>\n<relstorage>\n<postgresql>\n"
    "dsn host='$base_host' port='$base_port' password='$base_password'\n"
    "</postgresql>\n</relstorage>\n</zeoserver>\n"
    "<memcachedserver unused/>\n"
    "<zeoserver other>\n<mappingstorage>\n</mappingstorage>\n</zeoserver>\n"
    "<postgresqlserver base/>\n"
    "<zodb through_both>\n<zeoclient>\nserver $outer\n</zeoclient>\n</zodb>\n"
    "<zodb through_one>\n<zeoclient>\nserver $inner\n</zeoclient>\n</zodb>\n"
    "<zodb elsewhere>\n<zeoclient>\nserver $other\n</zeoclient>\n</zodb>\n"
    "<zodb alone>\n<mappingstorage>\n</mappingstorage>\n</zodb>\n"
)


@dataclass
class FakeServers:
    """Servers that only say what becomes of them."""

    events: list[str] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)

    def make(self, section: Any, site: Any) -> Any:
        return FakeServer(section.name, self)


@dataclass
class FakeServer:
    name: str
    servers: FakeServers

    def obituary(self) -> str | None:
        return "was killed" if self.name in self.servers.failing else None

    def __getattr__(self, event: str) -> Callable[[], None]:
        def happen() -> None:
            self.servers.events.append(f"{event} {self.name}")
            if self.name in self.servers.failing and event in {"start", "resume"}:
                raise ServerFailed("is on fire")

        return happen


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> FakeServers:
    fakes = FakeServers()
    monkeypatch.setattr(preparation, "server_of", fakes.make)
    return fakes


@pytest.fixture
def start(servers: FakeServers, tmp_path: Path) -> Iterator[Callable[..., Fleet]]:
    """Return how to start the servers that contenders need, and stop them."""
    with ExitStack() as stack:

        def begin(*only: str) -> Fleet:
            source = Source(tmp_path / "x.conf", CHAIN)
            names = stack.enter_context(given_names(source, tmp_path))
            configuration = parse(source, names)
            contenders = [
                each for each in contenders_of(configuration) if each.name in only or not only
            ]
            workplace: Any = Workplace(tmp_path, None)  # type: ignore[arg-type]
            subject = Subject(source, names)
            with ExitStack() as running:
                return start_servers(running, configuration, contenders, subject, workplace)

        yield begin


def test_servers_start_after_those_that_they_need_and_stop_before_them(
    start: Callable[..., Fleet], servers: FakeServers
) -> None:
    order = list(start().running)
    assert order == ["other", "base", "inner", "outer"]
    assert servers.events == [
        *(f"start {name}" for name in order),
        *(f"stop {name}" for name in reversed(order)),
    ]


def test_only_servers_that_contenders_need_are_started(start: Callable[..., Fleet]) -> None:
    assert list(start("through_one").running) == ["base", "inner"]
    assert list(start("alone").running) == []


def test_the_users_of_a_server_need_it_themselves_or_through_another(
    start: Callable[..., Fleet],
) -> None:
    assert start().users == {
        "outer": ["through_both"],
        "inner": ["through_both", "through_one"],
        "unused": [],
        "other": ["elsewhere"],
        "base": ["through_both", "through_one"],
    }


@pytest.mark.parametrize(
    ("failing", "absent", "started"),
    [
        ("base", {"through_both", "through_one"}, ["other", "base"]),
        ("inner", {"through_both", "through_one"}, ["other", "base", "inner"]),
        ("outer", {"through_both"}, ["other", "base", "inner", "outer"]),
        ("other", {"elsewhere"}, ["other", "base", "inner", "outer"]),
    ],
)
def test_a_server_that_fails_costs_those_that_need_it_and_no_others(
    failing: str,
    absent: set[str],
    started: list[str],
    start: Callable[..., Fleet],
    servers: FakeServers,
) -> None:
    servers.failing.add(failing)
    fleet = start()
    assert fleet.absent == dict.fromkeys(absent, f"server {failing} is on fire")
    assert [event.split()[1] for event in servers.events if "start" in event] == started
    assert list(fleet.running) == [name for name in started if name != failing]
    assert f"stop {failing}" in servers.events


def test_servers_are_restarted_in_the_order_in_which_they_need_each_other(
    start: Callable[..., Fleet], servers: FakeServers
) -> None:
    fleet = start()
    servers.events.clear()
    fleet.restart_for("through_both")
    assert servers.events == [
        "halt outer", "halt inner", "halt base", "resume base", "resume inner", "resume outer",
    ]  # fmt: skip
    servers.events.clear()
    fleet.restart_for("through_one")
    assert servers.events == ["halt inner", "halt base", "resume base", "resume inner"]
    servers.events.clear()
    fleet.restart_for("alone")
    assert servers.events == []


def test_a_server_that_does_not_come_up_again_is_named(
    start: Callable[..., Fleet], servers: FakeServers
) -> None:
    fleet = start()
    servers.failing.add("inner")
    with pytest.raises(ServerFailed, match=r"^server inner is on fire$"):
        fleet.restart_for("through_both")


def test_all_other_servers_come_up_again_though_one_does_not(
    start: Callable[..., Fleet], servers: FakeServers
) -> None:
    fleet = start()
    servers.failing.add("base")
    servers.events.clear()
    with pytest.raises(ServerFailed, match=r"^server base is on fire$"):
        fleet.restart_for("through_both")
    assert [event for event in servers.events if event.startswith("resume")] == [
        "resume base",
        "resume inner",
        "resume outer",
    ]


def test_what_a_contender_lost_is_told(start: Callable[..., Fleet], servers: FakeServers) -> None:
    fleet = start()
    assert fleet.obituary("through_one") is None
    servers.failing.add("base")
    assert fleet.obituary("through_one") == "server base was killed"
    assert fleet.obituary("elsewhere") is None


@pytest.mark.parametrize(
    ("only", "message"),
    [
        (["through_one"], None),
        (["alone"], "no contender has a server that the run starts"),
        (["elsewhere"], "server other would lose its data, which it keeps in memory"),
        (["through_one", "over_one"], "over_one would lose its data, which it keeps in memory"),
    ],
)
def test_servers_are_not_restarted_where_that_would_lose_data(
    only: list[str], message: str | None, tmp_path: Path
) -> None:
    text = (
        f"{CHAIN}<zodb over_one>\n<demostorage>\n<zeoclient>\nserver $inner\n</zeoclient>\n"
        "</demostorage>\n</zodb>\n"
    )
    source = Source(tmp_path / "x.conf", text)
    with given_names(source, tmp_path) as names:
        configuration = parse(source, names)
        contenders = [each for each in contenders_of(configuration) if each.name in only]
        if message is None:
            check_restartable(configuration, contenders)
            return
        with pytest.raises(UsageError, match=re.escape(message)):
            check_restartable(configuration, contenders)
