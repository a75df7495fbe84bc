"""The releases and the commits that one word of ``--against`` stands for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.repositories import git, wheel
from zodbshootout.config.pythons import environments_of_words
from zodbshootout.contenders import releases
from zodbshootout.contenders.releases import releases_and_commits
from zodbshootout.errors import UserError
from zodbshootout.versions import installed_versions


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))


def release(directory: Path, name: str, *versions: str) -> None:
    for version in versions:
        wheel(directory, name, version, "module", "")


def names(*words: str) -> list[str]:
    return [environment.name for environment in environments_of_words(words, releases_and_commits)]


@pytest.mark.slow
def test_a_requirement_stands_for_all_releases_that_satisfy_it(tmp_path: Path) -> None:
    release(tmp_path, "shot", "0.9", "1.0", "1.1", "1.10", "2.0b1", "2.0")
    assert names("Shot>=1") == ["shot==1.0", "shot==1.1", "shot==1.10", "shot==2.0"]
    assert names("shot==1.*", "shot==0.9") == ["shot==1.0", "shot==1.1", "shot==1.10", "shot==0.9"]
    (first, *_) = environments_of_words(["shot[x]>=1"], releases_and_commits)
    assert first.requirements == ("shot[x]==1.0",)
    assert (first.keeps_installed, first.one_of_several) == (True, True)


@pytest.mark.slow
def test_a_prerelease_counts_if_the_requirement_names_one(tmp_path: Path) -> None:
    release(tmp_path, "shot", "1.0b1", "1.0", "1.1a1")
    assert names("shot>=0.9,<2") == ["shot==1.0"]
    assert names("shot>=1.0a1") == ["shot==1.0b1", "shot==1.0", "shot==1.1a1"]


@pytest.mark.slow
def test_the_newest_of_each_minor_release_can_be_chosen(tmp_path: Path) -> None:
    release(tmp_path, "shot", "1.0.0", "1.0.1", "1.1.0", "1.1.0.post1", "2.0.7")
    assert names("shot>=1; newest of minor") == ["shot==1.0.1", "shot==1.1.0.post1", "shot==2.0.7"]


@pytest.mark.slow
def test_the_release_that_is_installed_is_not_measured_twice(tmp_path: Path) -> None:
    installed = installed_versions(["ZODB"])["ZODB"]
    release(tmp_path, "ZODB", "5.8.0", installed)
    assert names("ZODB>=5.8") == ["zodb==5.8.0"]
    assert names(f"ZODB=={installed}") == [f"zodb=={installed}"]
    with pytest.raises(UserError) as caught:
        names("ZODB>5.8")
    expected = f"--against: only {installed}, which is installed, satisfies 'ZODB>5.8'"
    assert str(caught.value) == expected


def test_a_release_without_a_wheel_for_this_platform_is_among_them(tmp_path: Path) -> None:
    release(tmp_path, "shot", "1.0", "1.1")
    other = tmp_path / "shot-1.1-cp27-cp27m-win32.whl"
    (tmp_path / "shot-1.1-py3-none-any.whl").rename(other)
    assert names("shot>=1") == ["shot==1.0", "shot==1.1"]


@pytest.mark.parametrize("word", ["shot", "shot==1.0", "shot>=1 ZODB", "shot>=1 ; os_name == ''"])
def test_other_words_stand_for_one_environment(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "_newest", lambda *_: pytest.fail("uv was asked"))
    assert len(names(word)) == 1


def test_no_release_satisfies_a_requirement(tmp_path: Path) -> None:
    release(tmp_path, "shot", "1.0")
    with pytest.raises(UserError, match=r"^--against: no release satisfies 'shot>=2'$"):
        names("shot>=2")


@pytest.mark.slow
def test_too_many_releases_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "MOST", 2)
    release(tmp_path, "shot", "1.0", "1.1", "1.2")
    with pytest.raises(UserError) as caught:
        names("shot>=1")
    assert str(caught.value) == (
        "--against: 'shot>=1' stands for more than 2 environments; narrow it, or take a selection: "
        "'...; newest of minor'"
    )


@pytest.fixture
def commits(tmp_path: Path) -> Sequence[str]:
    """Make a checkout ``./Shot`` with a tag ``v1``, a merge and six commits; return the hashes."""
    directory = tmp_path / "Shot"
    directory.mkdir()
    git(directory, "init", "-q", "-b", "main")
    for number in range(6):
        git(directory, "commit", "-q", "--allow-empty", "-m", str(number))
        if not number:
            git(directory, "tag", "v1")
            git(directory, "branch", "side")
    git(directory, "switch", "-q", "side")
    git(directory, "commit", "-q", "--allow-empty", "-m", "side")
    git(directory, "switch", "-q", "main")
    git(directory, "merge", "-q", "--no-edit", "side")
    return git(directory, "rev-list", "--first-parent", "--reverse", "HEAD").splitlines()


def requirements(word: str) -> list[str]:
    environments = environments_of_words([word], releases_and_commits)
    return [text.partition("@")[2] for one in environments for text in one.requirements]


def test_a_commit_is_built_from_the_repository(commits: Sequence[str], tmp_path: Path) -> None:
    (environment,) = environments_of_words(["./Shot@HEAD~2"], releases_and_commits)
    assert environment.name == f"shot@{git(tmp_path / 'Shot', 'rev-parse', '--short', 'HEAD~2')}"
    url = f"git+{(tmp_path / 'Shot').as_uri()}@{commits[-3]}"
    assert environment.requirements == (url,)
    assert not environment.one_of_several
    assert names("./Shot@v1") == ["shot@v1"]


def test_a_range_begins_with_its_first_commit_and_follows_first_parents(
    commits: Sequence[str],
) -> None:
    assert requirements("./Shot@v1..HEAD") == commits
    assert requirements("./Shot@v1..") == commits
    assert requirements("Shot@HEAD~3..HEAD~1") == commits[-4:-1]
    assert requirements("./Shot@v1..HEAD; every 4th") == [commits[0], commits[4], commits[6]]


def test_a_project_may_be_in_a_directory_of_a_repository(
    commits: Sequence[str], tmp_path: Path
) -> None:
    (tmp_path / "Shot" / "a b").mkdir()
    (environment,) = environments_of_words(["./Shot/a b@HEAD"], releases_and_commits)
    assert environment.requirements[0].endswith(f"@{commits[-1]}#subdirectory=a%20b")


def test_a_checkout_stays_as_it_is(commits: Sequence[str], tmp_path: Path) -> None:
    before = git(tmp_path / "Shot", "status", "--porcelain=2", "--branch")
    requirements("./Shot@v1..HEAD")
    assert git(tmp_path / "Shot", "status", "--porcelain=2", "--branch") == before
    assert git(tmp_path / "Shot", "worktree", "list").count("\n") == 0


def test_variables_of_a_hook_name_no_other_repository(
    commits: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert requirements("./Shot@HEAD") == commits[-1:]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("./Shot@gone", "Shot has no commit 'gone'"),
        ("./Shot@v1..gone", "Shot has no commit 'gone'"),
        ("./Shot@--help", "Shot has no commit '--help'"),
        ("./Shot@HEAD..v1", "there is no commit in HEAD..v1 of Shot"),
        ("./uv@HEAD", "uv is not a git checkout"),
        ("./gone@HEAD", "no such file or directory: ./gone@HEAD"),
    ],
)
@pytest.mark.usefixtures("commits")
def test_a_wrong_commit_is_an_error_of_one_line(word: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "uv").mkdir(exist_ok=True)
    with pytest.raises(UserError) as caught:
        names(word)
    assert str(caught.value) == f"--against: {message}"
