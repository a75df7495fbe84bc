"""The inspection of every contender by fake fork servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

import pytest

from tests.runs import contender
from tests.scheduling.faked_shootout import Site
from zodbshootout.cli.launcher import _relay
from zodbshootout.cli.parser import parse
from zodbshootout.client.preparation import STEP_PREFIX
from zodbshootout.client.reachability import Requirement
from zodbshootout.config.pythons import Environment
from zodbshootout.contenders.contender import Contender
from zodbshootout.model.outcome import Failed, Failure, State
from zodbshootout.model.specification import Interpreter, Storage
from zodbshootout.model.storage_facts import Advice, Sharing, StorageInfo
from zodbshootout.scheduling.fork_servers import ForkServers
from zodbshootout.scheduling.opening import inspect_all
from zodbshootout.scheduling.result_store import Observer
from zodbshootout.workers.measuring import LEAKS_PREFIX

INFO = StorageInfo("SomeStorage", driver="some driver", modules=("some_driver",))


@dataclass
class Opening(Site):
    """Fork servers that open nothing; they return INFO or fail with one of *failures*."""

    failures: Mapping[str, Failure] = field(default_factory=dict)
    """The failures, by the text of the section, which is the name of the contender."""
    cannot_start: Failure | None = None
    inspected: list[str] = field(default_factory=list)
    roots: Iterator[str] = field(default_factory=lambda: repeat(""))
    """The serials of the roots that the storages have, one after the other."""

    @contextmanager
    def fork_server(self, interpreter: Interpreter | None = None) -> Iterator[Opening]:
        if self.cannot_start is not None:
            raise Failed(self.cannot_start)
        yield self

    def inspect(self, storage: Storage) -> StorageInfo:
        self.inspected.append(storage.section)
        if storage.section in self.failures:
            raise Failed(self.failures[storage.section])
        return replace(INFO, new_root=next(self.roots))


def opened(
    site: Any, *contenders: Contender, unavailable: Mapping[str, Failure] | None = None
) -> tuple[Mapping[str, Failure], Mapping[str, Contender]]:
    """Return the failures of contenders that cannot be opened, and the others."""
    with ForkServers(site) as fork_servers:
        return inspect_all(contenders, unavailable or {}, fork_servers, Observer())


def inspect_with(
    site: Any, *contenders: Contender, unavailable: Mapping[str, Failure] | None = None
) -> tuple[dict[str, str], dict[str, StorageInfo]]:
    """Return the reasons of contenders that cannot be opened, and the infos of the others."""
    failures, others = opened(site, *contenders, unavailable=unavailable)
    infos = {name: contender.info for name, contender in others.items()}
    return {name: failure.cause for name, failure in failures.items()}, infos


def test_every_contender_is_opened_once_and_a_failure_stops_no_other() -> None:
    site = Opening(failures={"b": Failure("OSError: no", "Traceback")})
    failures, info = inspect_with(site, *map(contender, "abc"))
    assert site.inspected == ["a", "b", "c"]
    assert failures == {"b": "cannot be opened: OSError: no"}
    assert info == {"a": INFO, "c": INFO}
    # Those that are opened later need not import them again.
    assert site.imported == {(), ("some_driver",)}


@pytest.mark.parametrize(
    ("roots", "in_memory"),
    [([""], False), (["1", "1"], False), (["1", ""], False), (["1", "2"], True)],
)
def test_a_storage_that_has_a_new_root_in_each_process_is_in_memory(
    roots: Sequence[str], in_memory: bool
) -> None:
    site = Opening(roots=iter(roots))
    _, others = opened(site, contender("a"))
    assert site.inspected == ["a"] * len(roots)
    assert others["a"].info.sharing is (Sharing.VOLATILE if in_memory else Sharing.CONCURRENT)
    assert others["a"].storage.in_memory is in_memory


def test_a_contender_without_its_server_is_not_opened() -> None:
    site = Opening()
    failures, info = inspect_with(
        site, *map(contender, "ab"), unavailable={"a": Failure("server x ended")}
    )
    assert site.inspected == ["b"]
    assert failures == {"a": "server x ended"}
    assert set(info) == {"b"}


def test_a_missing_server_is_reported_with_the_command_to_type() -> None:
    site = Opening()
    needy = replace(contender("a"), requirements=(Requirement((("localhost", 1),), "start it"),))
    assert inspect_with(site, needy) == ({"a": "start it"}, {})
    assert site.inspected == []


def test_a_missing_driver_is_reported_with_the_command_to_type() -> None:
    site = Opening(
        failures={
            "a": Failure("no driver", exception="DriverNotAvailableError"),
            "b": Failure("OSError: no"),
        }
    )
    needy = [replace(contender(name), installation="install it: pip") for name in "ab"]
    failures, _ = inspect_with(site, *needy)
    assert failures == {"a": "install it: pip", "b": "cannot be opened: OSError: no"}


def test_the_drivers_that_are_available_are_named_in_brief() -> None:
    options = " ".join(f"{name!r} (Module: 'a'; Available: {{}})" for name in ("A", "B C", "D"))
    unknown = "UnknownDriverError: UnknownDriverError: Driver 'x' is not available"
    missing = "DriverNotAvailableError: DriverNotAvailableError: Driver 'D' is not available."
    site = Opening(
        failures={
            "a": Failure(f"{unknown} (reason={{}}). Options: {options.format(True, True, True)}"),
            "b": Failure(f"{missing} Options: {options.format(True, True, False)}"),
            "c": Failure(unknown),
        }
    )
    failures, _ = inspect_with(site, *map(contender, "abc"))
    assert failures == {
        "a": "cannot be opened: the driver 'x' is not available; these are: 'A', 'B C', 'D'",
        "b": "cannot be opened: the driver 'D' is not available; these are: 'A', 'B C'",
        "c": "cannot be opened: the driver 'x' is not available",
    }


def test_a_failure_ends_with_the_advice_for_it() -> None:
    site = Opening(failures={"a": Failure("(3780, 'constraint')")})
    advised = replace(contender("a"), advice=(Advice("3780", "write something else"),))
    failures, _ = inspect_with(site, advised)
    assert failures == {"a": "cannot be opened: (3780, 'constraint'); write something else"}


def test_a_storage_that_cannot_be_opened_for_these_clients_is_not_supported() -> None:
    refused = Failure("the driver refuses", "Traceback", State.UNSUPPORTED)
    site = Opening(failures={"a": refused})
    assert opened(site, contender("a")) == ({"a": refused}, {})


def test_a_release_that_cannot_be_opened_is_not_supported() -> None:
    site = Opening(failures={"a": Failure("ImportError: no module six")})
    release = Environment("x==1", requirements=("x==1",), one_of_several=True)
    old = replace(contender("a"), environment=release)
    failures, _ = opened(site, old)
    assert failures["a"].state is State.UNSUPPORTED
    pinned = replace(old, environment=replace(release, one_of_several=False))
    failures, _ = opened(site, pinned)
    assert failures["a"].state is State.FAILED


def test_no_contender_can_be_opened_if_no_fork_server_starts() -> None:
    site = Opening(cannot_start=Failure("cannot start a worker: no memory"))
    failures, info = inspect_with(
        site, *map(contender, "ab"), unavailable={"a": Failure("server x ended")}
    )
    assert failures == {"a": "server x ended", "b": "cannot start a worker: no memory"}
    assert info == {}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["leak: 5 more"]),
        (["-v"], ["leak: 5 more", "a storage's own words"]),
        (["--log"], ["leak: 5 more", "a storage's own words"]),
    ],
)
def test_no_option_relays_the_lines_that_pyperf_prints_in_each_worker(
    words: list[str], expected: list[str]
) -> None:
    shown: list[str] = []
    steps: list[str] = []

    class Recording(Observer):
        def relay(self, line: str) -> None:
            shown.append(line)

        def note(self, step: str) -> None:
            steps.append(step)

    relay = _relay(parse(words), Recording())
    for line in (
        f"{LEAKS_PREFIX}5 more", "", "add: Mean +- std dev: 738 us +- 16 us",
        "a storage's own words", f"{STEP_PREFIX}filling a",
    ):  # fmt: skip
        relay(line)
    assert shown == [line.replace("leak: ", LEAKS_PREFIX) for line in expected]
    assert steps == ["filling a"]
