"""The plan of a point: its environments, and the packages that it is installed with again."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks.histories import simulated

from tests.runs import in_rounds, noisy
from zodbshootout.cli import point as point_module
from zodbshootout.cli.options import parse
from zodbshootout.cli.output import Streams, console_on
from zodbshootout.cli.point import PlannedPoint, add_point, installed_packages, plan_point
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
from zodbshootout.versions import Origin, git

MACHINE = {"name": "machine"}
NOW = {"ZODB": Package("6.4"), "RelStorage": Package("4.3.0")}
BEFORE = {"ZODB": Package("6.4"), "RelStorage": Package("4.2.0")}
PINNED = ["ZODB==6.4", "RelStorage==4.0.0"]
REPOSITORY = "git+https://example.org/r.git"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(point_module, "machine_facts", lambda: MACHINE)
    monkeypatch.setattr(point_module, "installed_packages", lambda _: NOW)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "history"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    directory = tmp_path / "checkout"
    directory.mkdir()
    (directory / "setup.py").touch()
    author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "first"]):
        assert git(directory, *words) is not None
    return directory


def with_candidate(monkeypatch: pytest.MonkeyPatch, **packages: Package) -> None:
    """Let other packages be installed."""
    monkeypatch.setattr(point_module, "installed_packages", lambda _: {**NOW, **packages})


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
    with pytest.raises(UserError, match="give only one"):
        plan_point(directory, ["RelStorage==4.0.0", "RelStorage==4.1.0"])


@pytest.mark.parametrize(
    "word",
    ["{checkout}", REPOSITORY, f"{REPOSITORY}@main", f"RelStorage @ {REPOSITORY}@v4.2.0",
     f"ZEO==6.0 RelStorage @ {REPOSITORY}#subdirectory=x", f"{REPOSITORY}@{COMMIT[:12]}"],
)  # fmt: skip
def test_an_anchor_that_may_change_is_refused(word: str, directory: Path, checkout: Path) -> None:
    with pytest.raises(UserError, match="has to stay the same; name a release"):
        plan_point(directory, [word.format(checkout=checkout)])


@pytest.mark.parametrize("end", ["", "#subdirectory=x"])
def test_a_commit_of_a_repository_can_be_the_anchor(end: str, directory: Path) -> None:
    word = f"RelStorage @ {REPOSITORY}@{COMMIT}{end}"
    planned = plan_point(directory, [word])
    assert planned.environments[ANCHOR].requirements == (word,)


def test_a_commit_of_a_checkout_can_be_the_anchor(directory: Path, checkout: Path) -> None:
    planned = plan_point(directory, [f"{checkout}@HEAD"])
    commit = git(checkout, "rev-parse", "HEAD")
    assert planned.environments[ANCHOR].requirements == (f"git+{checkout.as_uri()}@{commit}",)
    assert planned.anchor.word == f"{checkout}@HEAD"


def test_changes_of_a_checkout_do_not_keep_one_of_its_commits_from_being_the_anchor(
    directory: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = Package("4.3.1", COMMIT, checkout.as_uri(), modified=True)
    with_candidate(monkeypatch, RelStorage=changed)
    planned = plan_point(directory, [f"{checkout}@HEAD"])
    assert planned.packages[CANDIDATE]["RelStorage"] == changed
    assert plan_point(directory, ["RelStorage==4.2.0"]).anchor.word == "RelStorage==4.2.0"


def test_the_installed_commit_of_a_checkout_can_be_the_anchor(
    directory: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = git(checkout, "rev-parse", "HEAD") or ""
    with_candidate(monkeypatch, RelStorage=Package("4.3.1", commit, checkout.as_uri()))
    anchor = measured(plan_point(directory, [f"{checkout}@HEAD"]))
    assert anchor.requirements == [f"git+{checkout.as_uri()}@{commit}", "ZODB==6.4"]


def test_the_installed_commit_of_a_subdirectory_can_be_the_anchor(
    directory: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "part").mkdir()
    commit, subdirectory = git(checkout, "rev-parse", "HEAD") or "", "#subdirectory=part"
    url = f"{checkout.as_uri()}{subdirectory}"
    with_candidate(monkeypatch, RelStorage=Package("4.3.1", commit, url))
    installed = f"git+{checkout.as_uri()}@{commit}{subdirectory}"
    unnamed = plan_point(directory, [])
    assert unnamed.anchor.requirements == ["ZODB==6.4", f"RelStorage @ {installed}"]
    named = measured(plan_point(directory, [f"{checkout / 'part'}@HEAD"]))
    assert named.requirements == [installed, "ZODB==6.4"]


@pytest.mark.parametrize("words", [[], ["RelStorage==4.0.0"]])
def test_an_anchor_is_refused_before_the_run_if_a_package_cannot_be_installed_again(
    words: list[str], directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_candidate(monkeypatch, ZODB=Package("6.4", COMMIT, "file:///zodb", modified=True))
    with pytest.raises(UserError, match="from file:///zodb cannot be installed again: it had"):
        plan_point(directory, words)


def test_a_mistake_in_accepted_toml_is_found_before_the_run(directory: Path) -> None:
    directory.mkdir()
    (directory / "accepted.toml").write_text("[change]\n")
    with pytest.raises(UserError, match=r"accepted.toml: write \[\[change\]\]"):
        plan_point(directory, [])


def measured(planned: PlannedPoint, **metadata: str) -> Anchor:
    """Add a planned point with the results of all its roles; return the anchor as written."""
    contenders: list[Any] = [SimpleNamespace(name="zeo", variant_of="", environment=None)]
    contenders += [
        SimpleNamespace(name=f"zeo@{role}", variant_of="zeo", environment=environment)
        for role, environment in planned.environments.items()
    ]
    results = [
        in_rounds(contender.name, noisy(seed), benchmark_code="abc", durability="synced",
                  python_version="3.13.1", **metadata)
        for seed, contender in enumerate(contenders)
    ]  # fmt: skip
    streams = Streams(console_on(io.StringIO()), console_on(io.StringIO()), None)
    add_point(planned, contenders, results, streams)
    anchor = read_anchor(planned.directory)
    assert anchor is not None
    return anchor


def test_the_name_of_a_package_can_be_spelled_in_small_letters(directory: Path) -> None:
    anchor = measured(plan_point(directory, ["relstorage==4.0.0"]))
    assert anchor.requirements == ["ZODB==6.4", "RelStorage==4.0.0"]


def test_packages_that_an_anchor_does_not_name_are_pinned(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_candidate(monkeypatch, ZODB=Package("6.4", COMMIT, "file:///zodb"))
    anchor = measured(plan_point(directory, ["RelStorage==4.0.0"]))
    assert anchor.requirements == [f"ZODB @ git+file:///zodb@{COMMIT}", "RelStorage==4.0.0"]
    assert anchor.word == "RelStorage==4.0.0"


def test_a_commit_that_an_anchor_names_is_not_pinned_twice(directory: Path) -> None:
    word = f"{REPOSITORY}@{COMMIT}"
    anchor = measured(plan_point(directory, [word]), version_RelStorage="4.1 (git 0123456789ab)")
    assert anchor.requirements == [word, "ZODB==6.4"]


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
    anchor = Anchor('it\'s "quoted" ü 🦆', ["a @ git+file:///x y@1", "b==1"], "p")
    write_anchor(anchor, directory)
    assert read_anchor(directory) == anchor
    (directory / "history.toml").write_text("[anchor]\n")
    with pytest.raises(UserError, match="needs word, requirements and point"):
        read_anchor(directory)


@pytest.mark.parametrize(
    ("words", "reason"),
    [(["--fail-above", "5%"], "--fail-above cannot be combined with --history; run zod"),
     (["--for", "5"], "--for cannot be combined with --history: each point is one"),
     (["--append", "x.json"], "--append cannot be combined with --history: each point is one"),
     (["--track-memory", "--threads"], "leave it out with --history"),
     (["--rtt", "0,2ms"], "with --against or --history, give only one")],
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
