from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from zodbshootout.config.configuration import Configuration, parse
from zodbshootout.config.source import Source
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian
from zodbshootout.model.outcome import Failure
from zodbshootout.servers import ServerFailed, running
from zodbshootout.servers.address import given_names
from zodbshootout.servers.running import RunningServers
from zodbshootout.servers.server import ServerContext

# The base server is the last of the file, but is needed first.
NAMES = ("outer", "inner", "unused", "other", "base")
NEEDS: dict[str, set[str]] = {
    "outer": {"inner", "base"},
    "inner": {"base"},
    "unused": set(),
    "other": set(),
    "base": set(),
}
NEEDED_BY = {
    "through_both": {"outer", "inner", "base"},
    "through_one": {"inner", "base"},
    "elsewhere": {"other"},
    "alone": set(),
}


def users_of(configuration: Configuration, contenders: Sequence[str]) -> dict[Any, list[str]]:
    """Return the contenders, out of *contenders* or else of all, that need each server."""
    return {
        server: [
            contender
            for contender in contenders or NEEDED_BY
            if server.name in NEEDED_BY[contender]
        ]
        for server in configuration.servers
    }


def settings(server: str) -> str:
    """Return settings in which a server refers to the servers that it needs."""
    lines = "".join(f"{needed} ${needed}\n" for needed in NEEDS[server])
    return f"<settings>\n{lines}</settings>\n"


@dataclass
class FakeServers:
    """Servers that only record the calls that they get."""

    events: list[str] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)

    def make(self, section: Any, context: Any) -> Any:
        return FakeServer(section.name, self, section)


@dataclass(eq=False)
class FakeServer:
    name: str
    servers: FakeServers
    section: Any

    def how_ended(self) -> Failure | None:
        return Failure("was killed") if self.name in self.servers.failing else None

    @property
    def versions(self) -> dict[str, str]:
        return {self.name: "6"}

    def __getattr__(self, event: str) -> Callable[[], None]:
        def happen() -> None:
            self.servers.events.append(f"{event} {self.name}")
            if self.name in self.servers.failing and event in {"start", "resume"}:
                raise ServerFailed(f"server {self.name} is on fire")

        return happen


def names(servers: RunningServers) -> list[str]:
    return [server.name for server in servers.users]


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> FakeServers:
    fakes = FakeServers()
    monkeypatch.setattr(running, "server_of", fakes.make)
    return fakes


def configuration_of(source: Source, scratch: Path) -> Configuration:
    with given_names(source, scratch) as names:
        return parse(source, names)


@pytest.fixture
def start(servers: FakeServers, tmp_path: Path) -> Callable[..., RunningServers]:
    """Return a function that starts and stops the servers that contenders need."""

    def begin(*contenders: str) -> RunningServers:
        text = "".join(
            f"<memcachedserver {name}>\n{settings(name)}</memcachedserver>\n" for name in NAMES
        )
        source = Source(tmp_path / "x.conf", text)
        configuration = configuration_of(source, tmp_path)
        context = ServerContext(tmp_path, source, configuration.names, mock.Mock(spec=Guardian))
        servers = RunningServers()
        with ExitStack() as stack:
            servers.start(stack, configuration, users_of(configuration, contenders), context)
        return servers

    return begin


def test_servers_start_after_those_that_they_need_and_stop_before_them(
    start: Callable[..., RunningServers], servers: FakeServers
) -> None:
    order = names(start())
    assert order == ["other", "base", "inner", "outer"]
    assert servers.events == [
        *(f"start {name}" for name in order),
        *(f"stop {name}" for name in reversed(order)),
    ]


def test_only_servers_that_contenders_need_are_started(
    start: Callable[..., RunningServers],
) -> None:
    assert names(start("through_one")) == ["base", "inner"]
    assert names(start("alone")) == []


def test_contenders_that_need_a_server_are_served(start: Callable[..., RunningServers]) -> None:
    assert start().served == {"through_both", "through_one", "elsewhere"}
    assert start("alone").served == set()


@pytest.mark.parametrize(
    ("failing", "absent", "started"),
    [
        ("base", {"through_both", "through_one"}, ["other", "base"]),
        ("inner", {"through_both", "through_one"}, ["other", "base", "inner"]),
        ("outer", {"through_both"}, ["other", "base", "inner", "outer"]),
        ("other", {"elsewhere"}, ["other", "base", "inner", "outer"]),
    ],
)
def test_contenders_are_absent_exactly_if_they_need_a_server_that_fails(
    failing: str,
    absent: set[str],
    started: list[str],
    start: Callable[..., RunningServers],
    servers: FakeServers,
) -> None:
    servers.failing.add(failing)
    result = start()
    assert result.absent == dict.fromkeys(absent, f"server {failing} is on fire")
    assert [event.split()[1] for event in servers.events if "start" in event] == started
    assert names(result) == [name for name in started if name != failing]
    assert f"stop {failing}" in servers.events


def test_servers_are_restarted_in_the_order_in_which_they_need_each_other(
    start: Callable[..., RunningServers], servers: FakeServers
) -> None:
    result = start()
    servers.events.clear()
    result.halt_for("through_both", by_force=False)
    result.resume_for("through_both")
    assert servers.events == [
        "halt outer", "halt inner", "halt base", "resume base", "resume inner", "resume outer",
    ]  # fmt: skip
    servers.events.clear()
    result.halt_for("through_one", by_force=False)
    result.resume_for("through_one")
    assert servers.events == ["halt inner", "halt base", "resume base", "resume inner"]
    servers.events.clear()
    result.halt_for("alone", by_force=False)
    result.resume_for("alone")
    assert servers.events == []


def test_a_server_that_does_not_come_up_again_is_named(
    start: Callable[..., RunningServers], servers: FakeServers
) -> None:
    result = start()
    servers.failing.add("inner")
    with pytest.raises(ServerFailed, match=r"^server inner is on fire$"):
        result.resume_for("through_both")


def test_all_other_servers_come_up_again_even_if_one_does_not(
    start: Callable[..., RunningServers], servers: FakeServers
) -> None:
    result = start()
    servers.failing.add("base")
    result.halt_for("through_both", by_force=False)
    servers.events.clear()
    with pytest.raises(ServerFailed, match=r"^server base is on fire$"):
        result.resume_for("through_both")
    assert [event for event in servers.events if event.startswith("resume")] == [
        "resume base",
        "resume inner",
        "resume outer",
    ]


def test_the_end_of_a_server_is_reported_for_the_contenders_that_need_it(
    start: Callable[..., RunningServers], servers: FakeServers
) -> None:
    result = start()
    assert result.how_ended("through_one") is None
    servers.failing.add("base")
    assert result.how_ended("through_one") == Failure("server base was killed")
    assert result.how_ended("elsewhere") is None


def test_the_versions_of_all_servers_that_a_contender_needs_are_its_own(
    start: Callable[..., RunningServers],
) -> None:
    result = start()
    assert result.versions("through_one") == {"base": "6", "inner": "6"}
    assert result.versions("alone") == {}


def test_a_server_whose_class_no_package_registers_is_an_error_in_its_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs" / "examples"))
    source = Source(tmp_path / "x.conf", "%import webserver\n<webserver web/>\n")
    (section,) = configuration_of(source, tmp_path).servers
    message = (
        r"x\.conf:2: no installed package has an entry point webserver of zodbshootout\.servers; "
        r"reinstall the package that defines the section$"
    )
    with pytest.raises(UserError, match=message):
        running.server_of(section, mock.Mock(spec=ServerContext))
