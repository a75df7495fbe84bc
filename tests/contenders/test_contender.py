from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from zodbshootout.config.configuration import Source, parse
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.model import CrewShape, Effort, Parameters, Unit
from zodbshootout.plan import Sweep, make_plan
from zodbshootout.servers.naming import given_names

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
    """Return the contenders of a run, and what the run has given to its servers."""
    source = Source(Path("x.conf"), text)
    with given_names(source, scratch) as names:
        return contenders_of(parse(source, names)), names


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Contender]:
    return {each.name: each for each in read(SERVERS, tmp_path)[0]}


def test_settings_hold_those_of_the_servers_that_are_needed_and_of_no_others(
    found: dict[str, Contender],
) -> None:
    servers = {
        name: {key.split(".")[1] for key in contender.settings if key.startswith("server.")}
        for name, contender in found.items()
    }
    assert servers == {
        "with_cache": {"pg", "cache"}, "through_zeo": {"between", "pg"}, "alone": set()
    }  # fmt: skip
    for name in ("with_cache", "through_zeo"):
        settings = found[name].settings
        assert settings["server.pg.settings.values.shared_buffers"] == "64MB"
        assert settings["server.pg.user"] == "we'ird"
        assert settings["server.pg.section"] == "ServerSection"


def test_what_the_run_gave_to_a_server_is_in_the_settings_by_its_name(
    found: dict[str, Contender],
) -> None:
    assert found["with_cache"].settings["storage.cache_servers"] == "$cache"
    dsn = found["with_cache"].settings["storage.adapter.dsn"]
    assert "port='$pg_port'" in dsn
    assert "password=***" in dsn
    assert found["through_zeo"].settings["storage.server"] == "$between"
    assert found["alone"].settings["storage.path"] == "$scratch/x.fs"


def test_no_password_and_no_port_of_the_run_is_in_the_settings(tmp_path: Path) -> None:
    contenders, names = read(SERVERS, tmp_path)
    given = [value for name, value in names.items() if name.endswith(("_password", "_port"))]
    assert len(given) == 6
    text = repr([contender.settings for contender in contenders])
    assert not [value for value in given if value in text]


def test_the_hash_of_a_contender_is_that_of_the_same_one_in_another_run(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    one, _ = read(SERVERS, tmp_path / "one")
    other, _ = read(SERVERS, tmp_path / "other")
    assert [each.fingerprint() for each in one] == [each.fingerprint() for each in other]


def test_a_setting_of_a_server_changes_the_hash_of_those_that_need_it(tmp_path: Path) -> None:
    one, _ = read(SERVERS, tmp_path)
    other, _ = read(SERVERS.replace("64MB", "32MB"), tmp_path)
    changed = {
        before.name
        for before, after in zip(one, other, strict=True)
        if before.fingerprint() != after.fingerprint()
    }
    assert changed == {"with_cache", "through_zeo"}


@pytest.mark.parametrize(
    ("driver", "unit", "refused"),
    [
        ("psycopg2", Unit.GREENLET, "the driver psycopg2 refuses to run with greenlets"),
        ("psycopg2", Unit.THREAD, None),
        ("gevent psycopg2", Unit.PROCESS, "the driver gevent psycopg2 refuses to run without"),
        ("gevent psycopg2", Unit.GREENLET, None),
        ("auto", Unit.GREENLET, None),
        ("pg8000", Unit.GREENLET, None),
    ],
)
def test_psycopg2_is_for_greenlets_or_for_others(
    driver: str, unit: Unit, refused: str | None, tmp_path: Path
) -> None:
    text = (
        f"%import relstorage\n<zodb a>\n<relstorage>\n<postgresql>\ndriver {driver}\n"
        "</postgresql>\n</relstorage>\n</zodb>\n"
    )
    contenders, _ = read(text, tmp_path)
    plan = make_plan(contenders, ["add"], Sweep([2], [1], [1], Parameters(CrewShape(1, unit))),
                     Effort(1, 1, 0, 1, 0.0))  # fmt: skip
    (reason,) = map(plan.refusal, plan.cells)
    assert (reason or "").startswith(refused or "")
    assert bool(reason) == bool(refused)
    assert plan.measurable == ([] if refused else contenders)
