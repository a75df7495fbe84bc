"""Words of ``--list`` on the configurations that people have, without opening them."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from tests import instances
from tests.commands import outcome
from tests.instances import AROUND_SECRETS, SECRET, VARIABLES, placed
from tests.watching import watched
from zodbshootout.errors import ALL_MEASURED, BAD_USAGE

CONTENDERS = {
    "bluebream/zope.conf": ["zodb"],
    "cookiecutter/convert-export.conf": ["source", "destination"],
    "cookiecutter/sqlite.conf": ["main"],
    "cookiecutter/zeo.conf": ["main"],
    "plone-backend/relstorage.conf": ["main"],
    "plone-backend/relstorage_pack.conf": ["relstorage"],
    "plone-backend/zeo.conf": ["main"],
    "plone-backend/zope.conf": ["main"],
    "pyramid/unnamed.conf": ["zodb"],
    "pyramid/zodb.conf": ["main", "catalog", "sessions"],
    "zenoss/zope.conf": ["main", "temporary"],
    "zodbtools/zodbconvert.conf": ["source", "destination"],
    "zodbtools/zodbpack.conf": ["relstorage"],
    "zope2instance/filestorage.conf": ["main"],
    "zope2instance/mysql.conf": ["main", "temporary"],
    "zope2instance/postgresql.conf": ["main"],
    "zope2instance/temporary.conf": ["main", "temporary", "catalog"],
    "zope2instance/wrapped.conf": ["main"],
    "zope2instance/zeo.conf": ["main"],
}
"""The contenders of each configuration."""
A_SERVER = "this is the configuration of a ZEO server"
REFUSALS = {
    "cookiecutter/pgjsonb.conf": (7, "package zodb_s3blobs is not installed"),
    "plone-zeo/zeo.conf": (3, A_SERVER),
    "pyramid/zeo.conf": (2, A_SERVER),
    "zeoserver/zeo.conf": (2, A_SERVER),
    "zope2instance/staging.conf": (17, "package zc.beforestorage is not installed"),
}
"""The line that is to blame in each other configuration, and what is wrong with it."""


@pytest.fixture(autouse=True)
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unopened: None) -> None:
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.chdir(site)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("zodbshootout.cli.run.Guardian", mock.MagicMock())  # a process for each
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)


def listed(name: str) -> tuple[int, str, str]:
    """Return the outcome of ``--list``, after a check that it touches nothing of the instance."""
    site = Path.cwd()
    path = placed(name, site)
    files = sorted(site.rglob("*"))
    with watched(site) as done:
        status, out, err = outcome(path, "add", "--list", "-c", "1")
    assert done == []
    assert sorted(site.rglob("*")) == files
    assert SECRET not in out + err
    return status, out, err


def test_every_configuration_is_expected_to_be_listed_or_refused() -> None:
    assert instances.names() == sorted([*CONTENDERS, *REFUSALS])


@pytest.mark.parametrize("name", CONTENDERS)
def test_a_configuration_that_people_have_is_listed(name: str) -> None:
    status, out, err = listed(name)
    assert (status, err) == (ALL_MEASURED, "")
    (heading,) = (line for line in out.splitlines() if line.startswith("Benchmark"))
    assert heading.split() == ["Benchmark", *CONTENDERS[name]]


@pytest.mark.parametrize("name", REFUSALS)
def test_another_file_is_refused_with_the_line_that_tells(name: str) -> None:
    status, out, err = listed(name)
    assert (status, out) == (BAD_USAGE, "")
    (complaint,) = err.splitlines()
    line, reason = REFUSALS[name]
    assert f"{name}:{line}: {reason}" in complaint


@pytest.mark.parametrize("form", [*AROUND_SECRETS, "postgresql://u:{}@[h/x", "{}=x"])
@pytest.mark.parametrize("password", [f"{SECRET}-env", f"host=h password={SECRET}-env"])
def test_a_variable_with_a_damaged_dsn_is_not_shown(
    form: str, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELSTORAGE_DSN", form.format(password, password))
    status, _, err = listed("plone-backend/relstorage.conf")
    assert status in {ALL_MEASURED, BAD_USAGE}, err
