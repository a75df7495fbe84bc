"""The plan of a point: its environments, and the packages that it is installed with again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.histories import simulated

from zodbshootout.cli import point as point_module
from zodbshootout.cli.options import parse
from zodbshootout.cli.point import installed_packages, plan_point
from zodbshootout.errors import UserError
from zodbshootout.results.anchor import Anchor, read_anchor, write_anchor
from zodbshootout.results.history import (
    ANCHOR,
    CANDIDATE,
    FORMER,
    PREVIOUS,
    TWIN,
    Package,
    write_point,
)
from zodbshootout.versions import Origin

MACHINE = {"name": "machine"}
NOW = {"ZODB": Package("6.4"), "RelStorage": Package("4.3.0")}
BEFORE = {"ZODB": Package("6.4"), "RelStorage": Package("4.2.0")}
PINNED = ["ZODB==6.4", "RelStorage==4.0.0"]


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(point_module, "machine_facts", lambda: MACHINE)
    monkeypatch.setattr(point_module, "installed_packages", lambda _: NOW)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "history"


def with_a_point(directory: Path, candidate: Mapping[str, Package] = BEFORE) -> Path:
    point = simulated("one", points=1).points[0]
    packages = {CANDIDATE: candidate, ANCHOR: {"RelStorage": Package("4.0.0")}}
    write_point(replace(point, packages=packages), directory)
    write_anchor(Anchor("RelStorage==4.0.0", PINNED, point.name), directory)
    return directory


def test_the_first_point_takes_what_is_installed_as_the_anchor(directory: Path) -> None:
    planned = plan_point(directory, [])
    assert list(planned.environments) == [ANCHOR, TWIN]
    assert planned.environments[ANCHOR].requirements == ("ZODB==6.4", "RelStorage==4.3.0")
    assert planned.anchor == Anchor("", ["ZODB==6.4", "RelStorage==4.3.0"], "")


def test_against_names_the_anchor(directory: Path) -> None:
    planned = plan_point(directory, ["RelStorage==4.0.0"])
    assert planned.environments[ANCHOR].requirements == ("RelStorage==4.0.0",)
    assert planned.environments[TWIN].name == TWIN
    with pytest.raises(UserError, match="name one"):
        plan_point(directory, ["RelStorage==4.0.0", "RelStorage==4.1.0"])


def test_an_anchor_that_may_change_is_refused(directory: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "setup.py").touch()
    with pytest.raises(UserError, match="has to stay the same; name a release"):
        plan_point(directory, [str(checkout)])


def test_the_next_point_has_the_recorded_anchor_and_the_previous_candidate(directory: Path) -> None:
    with_a_point(directory)
    for words in ([], ["RelStorage==4.0.0"]):
        planned = plan_point(directory, words)
        assert list(planned.environments) == [ANCHOR, TWIN, PREVIOUS]
        assert list(planned.environments[ANCHOR].requirements) == PINNED
        assert planned.environments[PREVIOUS].requirements == ("ZODB==6.4", "RelStorage==4.2.0")
        assert planned.previous == "2026-01-01T0000"


def test_another_anchor_is_measured_beside_the_former_one(directory: Path) -> None:
    planned = plan_point(with_a_point(directory), ["RelStorage==4.1.0"])
    assert list(planned.environments) == [ANCHOR, TWIN, FORMER, PREVIOUS]
    assert list(planned.environments[FORMER].requirements) == PINNED
    assert planned.environments[FORMER].one_of_several
    assert not planned.environments[ANCHOR].one_of_several
    assert planned.anchor.point == ""


@pytest.mark.parametrize("previous", [NOW, {"RelStorage": Package("4.0.0")}])
def test_what_is_measured_already_is_not_measured_twice(
    directory: Path, previous: Mapping[str, Package]
) -> None:
    planned = plan_point(with_a_point(directory, previous), [])
    assert list(planned.environments) == [ANCHOR, TWIN]
    assert planned.absent == {}


@pytest.mark.parametrize(
    ("package", "reason"),
    [(Package("4.3.1", "abc", "file:///x", modified=True), "had changes that are in no commit"),
     (Package("4.3.1", "", "file:///x"), "is in no commit")],
)  # fmt: skip
def test_a_previous_candidate_that_cannot_be_installed_has_a_reason(
    directory: Path, package: Package, reason: str
) -> None:
    planned = plan_point(with_a_point(directory, {"RelStorage": package}), [])
    assert list(planned.environments) == [ANCHOR, TWIN]
    assert planned.absent[PREVIOUS].endswith(reason)


def test_a_commit_is_built_from_the_checkout_that_is_here(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = {"RelStorage": Package("4.3.1", "abc", "https://example.org/r.git")}
    planned = plan_point(with_a_point(directory, commit), [])
    assert planned.environments[PREVIOUS].requirements == (
        "RelStorage @ git+https://example.org/r.git@abc",
    )
    here = Origin("file:///here", "def", editable=True)
    monkeypatch.setattr(point_module, "origin_of", lambda _: here)
    planned = plan_point(directory, [])
    assert planned.environments[PREVIOUS].requirements == ("RelStorage @ git+file:///here@abc",)
    assert planned.environments[PREVIOUS].one_of_several


def test_the_packages_that_matter_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert {"ZODB", "BTrees", "persistent", "ZEO", "RelStorage"} <= installed_packages().keys()


def test_an_anchor_is_read_as_it_was_written(directory: Path) -> None:
    directory.mkdir()
    assert read_anchor(directory) is None
    anchor = Anchor('it\'s "quoted"', ["a @ git+file:///x y@1", "b==1"], "p")
    write_anchor(anchor, directory)
    assert read_anchor(directory) == anchor
    (directory / "history.toml").write_text("[anchor]\n")
    with pytest.raises(UserError, match="needs word, requirements and point"):
        read_anchor(directory)


@pytest.mark.parametrize(
    ("words", "reason"),
    [(["--fail-above", "5%"], "--fail-above cannot be combined with --history"),
     (["--for", "5"], "--for cannot be combined with --history"),
     (["--append", "x.json"], "--append cannot be combined with --history"),
     (["--track-memory", "--threads"], "leave it out with --history"),
     (["--rtt", "0,2ms"], "--rtt with several times and --against or --history")],
)  # fmt: skip
def test_options_that_no_point_has_are_refused(
    words: list[str], reason: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=reason):
        parse(["add", "--history", str(directory), *words])


def test_confirm_needs_a_gate() -> None:
    with pytest.raises(UserError, match="--confirm needs --fail-above"):
        parse(["add", "--confirm"])
    given: Any = parse(["add", "--against", "ZODB==6.0", "--fail-above", "5%", "--no-confirm"])
    assert given.confirm is False
