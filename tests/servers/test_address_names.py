from __future__ import annotations

from pathlib import Path

import pytest

from zodbshootout.config.source import Source
from zodbshootout.errors import UserError
from zodbshootout.servers.address import HOST, given_names

ONE = "<zeoserver one>\n<mappingstorage/>\n</zeoserver>\n"
TWO = "<PostgreSQLServer Two/>\n"


def names_of(text: str, scratch: Path) -> dict[str, str]:
    with given_names(Source(Path("x.conf"), text), scratch) as names:
        return names


def test_every_server_has_an_address_and_a_password_of_its_own(tmp_path: Path) -> None:
    names = names_of(ONE + TWO, tmp_path)
    assert set(names) == {
        "scratch",
        *(f"{server}{part}" for server in ("one", "two")
          for part in ("", "_host", "_port", "_password")),
    }  # fmt: skip
    for server in ("one", "two"):
        assert names[f"{server}_host"] == HOST
        assert names[server] == f"{HOST}:{names[f'{server}_port']}"
        assert len(names[f"{server}_password"]) >= 32
    assert names["one_port"] != names["two_port"]
    assert names["one_password"] != names["two_password"]
    assert names_of(ONE, tmp_path)["one_password"] != names["one_password"]


@pytest.mark.parametrize(
    "use", ["certificate $one_certificate", "  key ${one_key}", "authenticate $ONE_authority"]
)
def test_certificates_are_made_if_the_configuration_uses_one(use: str, tmp_path: Path) -> None:
    names = names_of(f"{ONE}{TWO}{use}\n", tmp_path)
    for part in ("certificate", "key", "authority"):
        assert Path(names[f"one_{part}"]).read_text().startswith("-----BEGIN ")
        assert f"two_{part}" not in names
    assert Path(names["one_key"]).parent.stat().st_mode & 0o077 == 0


def test_certificates_are_not_made_for_a_comment_or_another_name(tmp_path: Path) -> None:
    assert "one_key" not in names_of(f"{ONE}# $one_key\nx $one_keyhole\n", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


@pytest.mark.parametrize("name", ["my-srv", "1st", "_one", "müller", "scratch"])
def test_a_server_name_that_cannot_be_defined_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        names_of(f"<zeoserver {name}>\n</zeoserver>\n", tmp_path)
    assert str(caught.value) == (
        f"x.conf: a server cannot be called {name!r}; use letters, digits and _, begin with a "
        "letter, and leave 'scratch' to the run"
    )


def test_two_servers_cannot_share_a_name(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        names_of("<zeoserver one>\n</zeoserver>\n<postgresqlserver one_port/>\n", tmp_path)
    assert str(caught.value) == (
        "x.conf: $one_port would belong to two servers; give server 'one_port' another name"
    )
