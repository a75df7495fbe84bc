"""The commits among which git searches, in a clone of the checkout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.repositories import git
from zodbshootout.contenders.suspects import Suspects, good_commit
from zodbshootout.errors import UserError


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with nine commits after the tag ``v1``."""
    directory = tmp_path / "Shot"
    (directory / "part").mkdir(parents=True)
    git(directory, "init", "-q", "-b", "main")
    for number in range(10):
        git(directory, "commit", "-q", "--allow-empty", "-m", f"Change {number}")
    git(directory, "tag", "v1", "HEAD~9")
    return directory


def commits_of(checkout: Path) -> Sequence[str]:
    return git(checkout, "rev-list", "--reverse", "HEAD").splitlines()


def suspects_of(checkout: Path, tmp_path: Path) -> Suspects:
    good, *_, bad = commits_of(checkout)
    place = tmp_path / "place"
    place.mkdir()
    return Suspects.of(checkout, good, bad, place)


def search(suspects: Suspects, outcomes: Sequence[str]) -> list[int]:
    """Mark commits with the outcome of their number until no one is next; return the numbers."""
    tested = []
    while commit := suspects.next:
        number = int(suspects.subject(commit).split()[-1])
        tested.append(number)
        suspects.mark(outcomes[number], commit)
    return tested


@pytest.mark.slow
def test_git_halves_the_commits_until_one_is_left(checkout: Path, tmp_path: Path) -> None:
    suspects = suspects_of(checkout, tmp_path)
    assert suspects.left == [*reversed(commits_of(checkout)[1:])]
    tested = search(suspects, ["good"] * 7 + ["bad"] * 3)
    assert len(tested) <= 4
    (first_bad,) = suspects.left
    assert suspects.subject(first_bad) == f"{first_bad[:7]} Change 7"


@pytest.mark.slow
def test_skipped_commits_are_left_beside_the_first_bad_one(checkout: Path, tmp_path: Path) -> None:
    suspects = suspects_of(checkout, tmp_path)
    search(suspects, ["good"] * 5 + ["skip"] * 2 + ["bad"] * 3)
    assert [suspects.subject(commit)[-1] for commit in suspects.left] == ["7", "6", "5"]


@pytest.mark.slow
def test_the_checkout_stays_as_it_is(checkout: Path, tmp_path: Path) -> None:
    (checkout / "new").touch()

    def facts() -> list[str]:
        files = sorted(str(path) for path in checkout.rglob("*"))
        return [*files, git(checkout, "for-each-ref"), git(checkout, "status", "--branch")]

    before = facts()
    search(suspects_of(checkout, tmp_path), ["good"] * 7 + ["bad"] * 3)
    assert facts() == before


def test_a_package_may_be_in_a_directory_of_its_checkout(checkout: Path, tmp_path: Path) -> None:
    good, *_, bad = commits_of(checkout)
    assert len(Suspects.of(checkout / "part", good, bad, tmp_path).left) == 9


def test_a_commit_that_nothing_refers_to_can_be_bad(checkout: Path, tmp_path: Path) -> None:
    good, *_, bad = commits_of(checkout)
    git(checkout, "reset", "-q", "--hard", good)
    assert len(Suspects.of(checkout, good, bad, tmp_path).left) == 9


@pytest.mark.slow
def test_a_change_before_both_commits_is_named(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "switch", "-q", "-c", "side", "HEAD~4")
    git(checkout, "commit", "-q", "--allow-empty", "-m", "Change on the side")
    good, bad = git(checkout, "rev-parse", "side", "main").split()
    suspects = Suspects.of(checkout, good, bad, tmp_path)
    base = suspects.next
    assert base == git(checkout, "rev-parse", "side~1")
    with pytest.raises(UserError) as caught:
        suspects.mark("bad", base)
    assert str(caught.value) == (
        f"{base[:12]}, an ancestor of both {good[:12]} and {bad[:12]}, is already bad; name a "
        "good commit before it"
    )


def test_good_is_a_revision_or_a_release_with_a_tag(checkout: Path) -> None:
    first = commits_of(checkout)[0]
    assert [good_commit(checkout, name) for name in ("v1", "1", "HEAD~9")] == [first] * 3
    with pytest.raises(UserError, match=r"^--good: .*Shot has no commit '2'$"):
        good_commit(checkout, "2")


@pytest.mark.slow
@pytest.mark.parametrize(("good", "bad"), [(3, 3), (5, 3)])
def test_there_has_to_be_a_commit_after_the_good_one(
    good: int, bad: int, checkout: Path, tmp_path: Path
) -> None:
    commits = commits_of(checkout)
    with pytest.raises(UserError, match=r"^--good: there is no commit after \w{12} up to \w{12}$"):
        Suspects.of(checkout, commits[good], commits[bad], tmp_path)


def test_only_a_git_checkout_has_commits(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^--checkout: .* is not a git checkout$"):
        Suspects.of(tmp_path, "a", "b", tmp_path)
