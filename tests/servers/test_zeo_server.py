from __future__ import annotations

import os
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.servers.clients import USE
from tests.servers.conftest import MakeServer
from zodbshootout.errors import UserError
from zodbshootout.model.specification import Interpreter

STORAGE = "<zlibstorage>\n<mappingstorage>\nname $size\n</mappingstorage>\n</zlibstorage>\n"
PLAIN = (
    "%import ZEO\n%import relstorage\n%import zc.zlibstorage\n%define size 5\n"
    "<zeoserver it>\n<settings>\ninvalidation-queue-size $size\ninvalidation-age $$x\n"
    f"</settings>\n{STORAGE}</zeoserver>\n"
)


def written(make_server: MakeServer, text: str) -> tuple[str, list[str], list[str]]:
    """Return the configuration without its definitions, the definitions, and the names."""
    server = make_server(text)
    server.directory.path.mkdir()
    server.prepare()
    path = server.directory.path / "zeo.conf"
    assert path.stat().st_mode & 0o077 == 0
    assert server.command() == [sys.executable, "-m", "ZEO.runzeo", "-C", str(path)]
    lines = path.read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith("%define"))
    placeholders = {
        f"{server.host}:{server.port}": "ADDRESS",
        str(server.directory.path): "DIRECTORY",
    }
    for value, name in placeholders.items():
        text = text.replace(value, name)
    return text, [line for line in lines if line.startswith("%define")], list(server.context.names)


def test_the_configuration_has_the_settings_and_the_storage_of_the_section(
    make_server: MakeServer,
) -> None:
    text, definitions, names = written(make_server, PLAIN)
    assert text == (
        "<zeo>\n  address ADDRESS\n  pid-filename DIRECTORY/zeo.pid\n"
        "  invalidation-queue-size 5\n  invalidation-age $$x\n</zeo>\n"
        f"%import zc.zlibstorage\n{STORAGE.replace('$size', '5')}"
    )
    assert [line.split()[1] for line in definitions] == names


def test_a_server_with_ssl_accepts_only_the_certificate_of_the_run(
    make_server: MakeServer,
) -> None:
    secured = PLAIN.replace("<zeoserver it>\n", "<zeoserver it>\nssl true\n") + USE
    text, _, _ = written(make_server, secured)
    assert (
        "  <ssl>\n    certificate $it_certificate\n    key $it_key\n"
        "    authenticate $it_authority\n  </ssl>\n</zeo>\n"
    ) in text
    assert "ssl true" not in text


def test_ssl_is_refused_if_no_contender_uses_it(make_server: MakeServer) -> None:
    with pytest.raises(UserError) as caught:
        make_server("<zeoserver it>\nssl true\n<mappingstorage>\n</mappingstorage>\n</zeoserver>\n")
    assert str(caught.value).endswith(
        "x.conf:2: server it: it has ssl, but no contender has an <ssl> with $it_certificate, "
        "$it_key and $it_authority"
    )


@pytest.mark.slow
def test_a_server_runs_in_the_python_of_its_environment(
    make_server: MakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    packages = tmp_path / "packages"
    (packages / "ZEO-5.4.1.dist-info").mkdir(parents=True)
    (packages / "ZEO-5.4.1.dist-info" / "METADATA").write_text("Name: ZEO\nVersion: 5.4.1\n")
    python = Interpreter("old", sys.executable, f"{packages}", sees_ours=True)
    server = make_server(PLAIN, pythons={"it": python, "other": Interpreter("x", "y", "z")})
    assert server.environment()["PYTHONPATH"] == f"{packages}{os.pathsep}/mine"
    versions = server.versions
    assert versions["ZEO_server"] == "5.4.1"
    assert versions["ZODB_server"] == version("ZODB")
    foreign = make_server(
        PLAIN, pythons={"it": replace(python, executable="/gone", sees_ours=False)}
    )
    assert foreign.environment()["PYTHONPATH"] == str(packages)
    assert foreign.command()[0] == "/gone"
    assert foreign.versions == {}


@pytest.mark.slow
def test_a_server_in_no_environment_has_the_installed_versions(make_server: MakeServer) -> None:
    versions = make_server(PLAIN).versions
    assert (versions["ZEO_server"], versions["ZODB_server"]) == (version("ZEO"), version("ZODB"))
