from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest

from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.servers.address import given_names, servers_of

SERVERS = """
%import relstorage
<postgresqlserver pg>
  user we'ird
  <settings>
    shared_buffers 64MB
  </settings>
</postgresqlserver>
<memcachedserver cache/>
<zeoserver between>
  <relstorage>
    <postgresql>
      dsn dbname='a' user='we\\'ird' host='$pg_host' port='$pg_port' password='$pg_password'
    </postgresql>
  </relstorage>
</zeoserver>
<zodb with_cache>
  <relstorage>
    cache-servers $cache
    <postgresql>
      dsn dbname='a' user='we\\'ird' host='$pg_host' port='$pg_port' password='$pg_password'
    </postgresql>
  </relstorage>
</zodb>
<zodb through_zeo>
  <zeoclient>
    server $between
  </zeoclient>
</zodb>
<zodb alone>
  <filestorage>
    path $scratch/x.fs
  </filestorage>
</zodb>
"""


def read(text: str, scratch: Path) -> tuple[Sequence[Contender], dict[str, str]]:
    """Return the contenders of a run, and the values of names that the run assigns."""
    source = Source(Path("x.conf"), text)
    with given_names(source, scratch) as names:
        return contenders_of(parse(source, names)), names


@pytest.fixture
def contenders_by_name(tmp_path: Path) -> dict[str, Contender]:
    return {contender.name: contender for contender in read(SERVERS, tmp_path)[0]}


def test_settings_include_those_of_exactly_the_servers_a_contender_needs(
    contenders_by_name: dict[str, Contender],
) -> None:
    servers = {
        name: {path[1] for path in contender.settings if path[0] == "server" and path[1:]}
        for name, contender in contenders_by_name.items()
    }
    assert servers == {
        "with_cache": {"pg", "cache"}, "through_zeo": {"between", "pg"}, "alone": set()
    }  # fmt: skip
    for name in ("with_cache", "through_zeo"):
        settings = contenders_by_name[name].settings
        assert settings["server", "pg", "settings", "values", "shared_buffers"] == "64MB"
        assert settings["server", "pg", "user"] == "we'ird"
        assert settings["server", "pg", "section"] == "ServerSection"


def test_settings_have_names_in_place_of_the_values_that_a_run_assigns(
    contenders_by_name: dict[str, Contender],
) -> None:
    assert contenders_by_name["with_cache"].settings["storage", "cache_servers"] == "$cache"
    dsn = contenders_by_name["with_cache"].settings["storage", "adapter", "dsn"]
    assert "host='$pg_host' port='$pg_port'" in dsn
    assert "password='$pg_password'" in dsn
    assert contenders_by_name["through_zeo"].settings["storage", "server"] == "$between"
    assert contenders_by_name["alone"].settings["storage", "path"] == "$scratch/x.fs"


def test_settings_contain_no_password_and_no_port_of_the_run(tmp_path: Path) -> None:
    contenders, names = read(SERVERS, tmp_path)
    given = [value for name, value in names.items() if name.endswith(("_password", "_port"))]
    assert len(given) == 6
    text = repr([contender.settings for contender in contenders])
    assert not [value for value in given if value in text]


def test_the_settings_of_a_contender_are_the_same_in_another_run(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    one, _ = read(SERVERS, tmp_path / "one")
    other, _ = read(SERVERS, tmp_path / "other")
    assert [contender.settings for contender in one] == [contender.settings for contender in other]


def test_the_settings_of_a_server_are_settings_of_contenders_that_need_the_server(
    tmp_path: Path,
) -> None:
    one, _ = read(SERVERS, tmp_path)
    other, _ = read(SERVERS.replace("64MB", "32MB"), tmp_path)
    changed = {
        before.name
        for before, after in zip(one, other, strict=True)
        if before.settings != after.settings
    }
    assert changed == {"with_cache", "through_zeo"}


def test_a_contender_knows_the_private_servers_that_it_needs(
    contenders_by_name: dict[str, Contender],
) -> None:
    kinds = {
        name: {server.name: server.kind for server in contender.servers.values()}
        for name, contender in contenders_by_name.items()
    }
    assert kinds == {
        "with_cache": {"pg": "postgresqlserver", "cache": "memcachedserver"},
        "through_zeo": {"pg": "postgresqlserver", "between": "zeoserver"},
        "alone": {},
    }


def test_a_client_gets_only_the_section_and_names_that_its_contender_needs(tmp_path: Path) -> None:
    contenders, names = read(SERVERS, tmp_path)
    with_cache, through_zeo, alone = (contender.storage for contender in contenders)
    assert set(with_cache.names) == {"cache", "pg_host", "pg_port", "pg_password"}
    assert "%import relstorage" in with_cache.section
    assert through_zeo.names == {"between": names["between"]}
    assert through_zeo.section == (
        "<zodb through_zeo>\n<zeoclient>\nserver ${between}\n</zeoclient>\n</zodb>\n"
    )
    assert set(alone.names) == {"scratch"}


NUMBERS = """
%define size $main_port
<zeoserver main>
  <mappingstorage/>
</zeoserver>
<zodb same_number>
  cache-size 4321
  <mappingstorage/>
</zodb>
<zodb by_name>
  cache-size $main_port
  <mappingstorage/>
</zodb>
<zodb by_definition>
  cache-size ${SIZE}
  <mappingstorage/>
</zodb>
<zodb in_a_comment>
  # cache-size $main_port
  <mappingstorage>
    name $$main_port
  </mappingstorage>
</zodb>
"""


def test_a_number_that_equals_a_port_does_not_refer_to_a_server(tmp_path: Path) -> None:
    names = {"scratch": str(tmp_path), "main": "127.0.0.1:4321", "main_port": "4321"}
    configuration = parse(Source(Path("x.conf"), NUMBERS), names)
    same, by_name, by_definition, in_a_comment = contenders_of(configuration)
    for user in (by_name, by_definition):
        assert user.settings[("cache_size",)] == "$main_port"
        assert set(user.servers) == {"main"}
        assert user.storage.names == {"main_port": "4321"}
    for other in (same, in_a_comment):
        assert other.servers == {}
        assert other.storage.names == {}
    assert same.settings[("cache_size",)] == "4321"
    assert in_a_comment.settings["storage", "name"] == "$main_port"


def test_names_of_servers_with_a_common_prefix_are_not_confused(tmp_path: Path) -> None:
    text = (
        "<zeoserver main>\n<mappingstorage/>\n</zeoserver>\n"
        "<zeoserver main2>\n<mappingstorage/>\n</zeoserver>\n"
        "<zodb a>\n<zeoclient>\nserver $main2\n</zeoclient>\n</zodb>\n"
        "<zodb b>\n<zeoclient>\nserver $main_host:1${main_port}\n</zeoclient>\n</zodb>\n"
    )
    names = {
        "main": "127.0.0.1:11", "main_host": "127.0.0.1", "main_port": "11", "main2": "127.0.0.1:12"
    }  # fmt: skip
    a, b = contenders_of(parse(Source(Path("x.conf"), text), names))
    assert set(a.servers) == {"main2"}
    assert set(b.servers) == {"main"}
    assert b.settings["storage", "server"] == "$main_host:1$main_port"
    assert b.requirements[0].addresses == (("127.0.0.1", 111),)


@pytest.mark.parametrize("part", ["host", "port", "password", "certificate", "key", "authority"])
def test_each_name_that_a_server_defines_refers_to_that_server(part: str) -> None:
    text = (
        "<zeoserver main>\n<mappingstorage/>\n</zeoserver>\n"
        f"<zodb a>\n<mappingstorage>\nname $main_{part}\n</mappingstorage>\n</zodb>\n"
    )
    (a,) = contenders_of(parse(Source(Path("x.conf"), text), {"main": "db:1", f"main_{part}": "x"}))
    assert set(a.servers) == {"main"}


def test_servers_may_need_each_other(tmp_path: Path) -> None:
    client = "<zeoclient>\nserver ${}\n</zeoclient>\n"
    text = (
        f"<zeoserver one>\n{client.format('two')}</zeoserver>\n"
        f"<zeoserver two>\n{client.format('one')}</zeoserver>\n"
        f"<zodb a>\n{client.format('one')}</zodb>\n"
    )
    names = {"one": "127.0.0.1:1", "two": "127.0.0.1:2"}
    configuration = parse(Source(Path("x.conf"), text), names)
    one, two = configuration.servers
    assert servers_of({"two"}, configuration) == [one, two]
    (a,) = contenders_of(configuration)
    assert list(a.servers.values()) == [one, two]


def test_the_storage_that_a_client_gets_can_be_pickled(
    contenders_by_name: dict[str, Contender],
) -> None:
    for contender in contenders_by_name.values():
        assert pickle.loads(pickle.dumps(contender.storage)) == contender.storage


def test_sql_is_part_of_a_contenders_configuration(tmp_path: Path) -> None:
    text = "%define half 50\n<zodb a>\n{}<mappingstorage/>\n</zodb>\n"
    with_sql = "sql ALTER TABLE x SET (fillfactor = $half)\nsql DROP INDEX y\n"
    (plain,), _ = read(text.format(""), tmp_path)
    (changed,), _ = read(text.format(with_sql), tmp_path)
    assert changed.storage.sql == ("ALTER TABLE x SET (fillfactor = 50)", "DROP INDEX y")
    assert changed.text.splitlines()[1].strip() == "sql ALTER TABLE x SET (fillfactor = 50)"
    assert plain.settings != changed.settings
    assert plain.description != changed.description
