from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from zodbshootout.servers import ServerFailed
from zodbshootout.servers.installation import Installation

Install = Callable[..., Path]


@pytest.fixture(autouse=True)
def _an_empty_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Return a function that makes a program in a directory."""

    def make(directory: str, name: str = "served", mode: int = 0o755) -> Path:
        path = tmp_path / directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=mode)
        return path

    return make


@pytest.fixture
def product(tmp_path: Path) -> Installation:
    return Installation((f"{tmp_path}/lib/*/bin", f"{tmp_path}/sbin"), "a-server its-tools")


def test_the_highest_version_in_the_first_usual_place_is_chosen(
    install: Install, product: Installation
) -> None:
    install("lib/9/bin")
    install("lib/9.6/bin")
    newest = install("lib/10/bin")
    install("sbin")
    assert product.program("served", given=None) == str(newest)


def test_a_program_in_path_comes_first(
    install: Install, product: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("lib/10/bin")
    chosen = install("mine")
    monkeypatch.setenv("PATH", f"/nowhere:{chosen.parent}")
    assert product.program("served", given=None) == str(chosen)


def test_the_first_program_name_is_preferred_wherever_it_is(
    install: Install, product: Installation
) -> None:
    install("lib/1/bin", "served")
    wanted = install("sbin", "other-served")
    assert product.program("other-served", "served", given=None) == str(wanted)
    assert product.program("no-such", "other-served", given=None) == str(wanted)


def test_only_a_given_directory_and_its_siblings_are_searched(
    install: Install, product: Installation, tmp_path: Path
) -> None:
    install("lib/10/bin")
    given = str(tmp_path / "opt" / "bin")
    with pytest.raises(ServerFailed) as caught:
        product.program("served", "server", given=given)
    assert str(caught.value) == (
        f"has no program served or server in {given}; see the server's programs key"
    )
    sibling = install("opt/sbin")
    assert product.program("served", given=given) == str(sibling)
    within = install("opt/bin")
    assert product.program("served", given=given) == str(within)


def test_siblings_of_a_directory_not_meant_for_programs_are_not_searched(
    install: Install, product: Installation, tmp_path: Path
) -> None:
    install("opt/bin")
    with pytest.raises(ServerFailed):
        product.program("served", given=str(tmp_path / "opt" / "nowhere"))


def test_non_executable_files_and_directories_are_not_programs(
    install: Install, product: Installation
) -> None:
    install("lib/2/bin", mode=0o644)
    (install("lib/3/bin", "another").parent / "served").mkdir()
    runnable = install("lib/1/bin")
    assert product.program("served", given=None) == str(runnable)


def test_a_missing_program_is_reported_with_the_places_searched_and_a_command(
    product: Installation, tmp_path: Path
) -> None:
    with pytest.raises(ServerFailed) as caught:
        product.program("served", given=None)
    message = str(caught.value)
    assert message.startswith(
        f"has no program served in PATH or in {tmp_path}/lib/*/bin, {tmp_path}/sbin; install it"
    )
    assert "apt-get install a-server its-tools" in message
