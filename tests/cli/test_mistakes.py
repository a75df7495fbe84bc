"""A mistake in a configuration is reported in one line that names its place and what to type.

``mistakes.txt`` has pairs of lines: a configuration, with ``|`` between its lines, and what is
printed after the name of the file.  The rest of a line that ends with ``…`` is left out.
"""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from tests.commands import outcome
from zodbshootout.errors import BAD_USAGE


def mistakes() -> list[tuple[str, str]]:
    """Return each configuration with its message."""
    text = Path(__file__).with_name("mistakes.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("# ")]
    return list(zip(lines[::2], map(str.strip, lines[1::2]), strict=True))


@pytest.mark.parametrize(("configuration", "message"), mistakes())
def test_a_mistake_is_reported_in_one_line(
    configuration: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    unopened: None,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("zodbshootout.cli.run.Guardian", mock.MagicMock())  # a process for each
    Path("x.conf").write_text(configuration.replace(" | ", "\n") + "\n", encoding="utf-8")
    status, out, err = outcome("x.conf", "add", "--list")
    assert (status, out) == (BAD_USAGE, "")
    (printed,) = err.splitlines()
    start, is_cut, _ = message.replace("{here}", str(tmp_path)).partition("…")
    expected = f"zodbshootout: x.conf:{start}"
    assert printed.startswith(expected) if is_cut else printed == expected


@pytest.mark.parametrize("section", ["zodb", "zodb_db"])
def test_a_package_matters_only_to_a_contender_that_is_chosen(
    section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unopened: None
) -> None:
    monkeypatch.chdir(tmp_path)
    main = f"<{section} main>\n<mappingstorage/>\n</{section}>\n"
    other = f"<{section} other>\n<absentstorage/>\n</{section}>\n"
    Path("x.conf").write_text(f"%import not_installed\n{main}{other}", encoding="utf-8")
    status, out, err = outcome("x.conf", "add", "--list", "--only", "main")
    assert (status, err) == (0, "")
    assert "main" in out
    assert "other" not in out
    for chosen in ([], ["--only", "other,main"]):
        status, out, err = outcome("x.conf", "add", "--list", *chosen)
        assert (status, out) == (BAD_USAGE, "")
        assert err == "zodbshootout: x.conf:1: package not_installed is not installed\n"
    assert outcome("x.conf", "--list", "--only", "mian")[2].endswith("did you mean main?\n")
