"""Private servers: whether they have the storage, and whether a restart would lose data."""

from __future__ import annotations

from pathlib import Path

import pytest

from zodbshootout.client.storage_types.zeo import BEHIND_SERVER
from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.contenders.selection import shared_databases
from zodbshootout.errors import UserError
from zodbshootout.model.specification import RESTARTS, CrewShape, Parameters
from zodbshootout.model.storage_facts import Durability, Place, Promise, StorageInfo
from zodbshootout.scheduling.operations import operation_refusal
from zodbshootout.servers.address import given_names

TEXT = """
%import ZEO
%import relstorage
<zeoserver silent>
  <relstorage>
    <sqlite3>
      data-dir $scratch/silent
    </sqlite3>
  </relstorage>
</zeoserver>
<zodb guessed>
  <clientstorage>
    server $silent
  </clientstorage>
</zodb>
<zeoserver kept>
  <filestorage>
    path $scratch/kept.fs
  </filestorage>
</zeoserver>
<zeoserver lost>
  <mappingstorage>
  </mappingstorage>
</zeoserver>
<zodb lasting>
  <clientstorage>
    server $kept
  </clientstorage>
</zodb>
<zodb fleeting>
  <clientstorage>
    server $lost
  </clientstorage>
</zodb>
<zodb upon>
  <demostorage>
    <clientstorage base>
      server $kept
    </clientstorage>
  </demostorage>
</zodb>
<zodb alone>
  <mappingstorage>
  </mappingstorage>
</zodb>
"""


def read(text: str, place: Path) -> None:
    source = Source(place / "x.conf", text)
    with given_names(source, place) as names:
        contenders_of(parse(source, names))


SERVER = "<zeoserver main>\n{}</zeoserver>\n"
MAPPING = "<mappingstorage/>\n"
NAMED = "<mappingstorage Two>\n</mappingstorage>\n"
LACKING = "<zeoclient>\nserver $main\nstorage 2\n</zeoclient>\n"
CLIENT = "<zodb a>\n<zeoclient>\nserver {}\n{}</zeoclient>\n</zodb>\n"


@pytest.mark.parametrize(
    ("storage", "client", "message"),
    [
        (
            MAPPING,
            CLIENT.format("$main", "storage 2\n"),
            "7: server main has no storage '2'; write ",
        ),
        (MAPPING, CLIENT.format("$main", "storage  2\n"), "'2'; write 'storage 1'"),
        (
            MAPPING,
            CLIENT.format("localhost:1\nserver $main_host:$main_port", "storage 2\n"),
            "8: server main has no storage '2'; write 'storage 1'",
        ),
        (
            NAMED,
            CLIENT.format("$main", ""),
            "5: server main has no storage '1'; write 'storage two'",
        ),
        (NAMED, CLIENT.format("$main", "storage Two\n"), "'Two'; write 'storage two'"),
        (MAPPING, "<zodburi a>\nuri zeo://$main?storage=2\n</zodburi>\n", "'2'; write 'storage 1'"),
        (MAPPING, CLIENT.format("localhost:$main_port", "storage 2\n"), "'2'; write 'storage 1'"),
        (
            f"{MAPPING}</zeoserver>\n<zeoserver other>\n{LACKING}",
            CLIENT.format("$other", ""),
            "7: server main has no storage '2'; write 'storage 1'",
        ),
        (
            f"{MAPPING}{NAMED}",
            CLIENT.format("$main", "storage 3\n"),
            "9: server main has no storage '3'; write 'storage 1' or 'storage two'",
        ),
    ],
)
def test_a_storage_that_a_private_zeo_server_lacks_is_refused_when_the_file_is_read(
    storage: str, client: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        read(f"{SERVER.format(storage)}{client}", tmp_path)
    assert f"{tmp_path / 'x.conf'}:" in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("storage", "client"),
    [
        (MAPPING, CLIENT.format("$main", "")),
        (MAPPING, CLIENT.format("$main", "storage 1\n")),
        (NAMED, CLIENT.format("$main", "storage two\n")),
        (f"{MAPPING}{NAMED}", CLIENT.format("$main", "storage two\n")),
        (f"{MAPPING}{NAMED}", CLIENT.format("$main", "")),
        (MAPPING, CLIENT.format("localhost:1", "storage 2\n")),
        (MAPPING, "<zodburi a>\nuri zeo://$main?storage=1\n</zodburi>\n"),
    ],
)
def test_the_storage_that_a_private_zeo_server_has_is_accepted(
    storage: str, client: str, tmp_path: Path
) -> None:
    read(f"{SERVER.format(storage)}{client}", tmp_path)


def opened(place: Path, name: str, promise: Promise, server_place: Place | None) -> StorageInfo:
    source = Source(place / "x.conf", TEXT)
    with given_names(source, place) as defined:
        contenders = contenders_of(parse(source, defined))
    (contender,) = (contender for contender in contenders if contender.name == name)
    return contender.opened(StorageInfo(promise=promise, server_place=server_place)).info


@pytest.mark.parametrize(
    ("name", "promise"),
    [
        ("lasting", (Durability.SYNCED, "")),
        ("fleeting", (Durability.IN_MEMORY, "")),
        ("guessed", BEHIND_SERVER),
        ("alone", BEHIND_SERVER),
    ],
)
def test_a_private_zeo_server_keeps_the_promise_of_its_storage(
    name: str, promise: Promise, tmp_path: Path
) -> None:
    assert opened(tmp_path, name, BEHIND_SERVER, Place.HERE).promise == promise


def test_what_an_open_storage_says_of_its_commits_is_true_behind_a_private_server_too(
    tmp_path: Path,
) -> None:
    promise = (Durability.IN_MEMORY, "")
    assert opened(tmp_path, "upon", promise, Place.HERE).promise == promise


def test_only_a_server_here_that_the_run_has_started_is_private(tmp_path: Path) -> None:
    def place_of(name: str, place: Place | None) -> Place | None:
        return opened(tmp_path, name, BEHIND_SERVER, place).server_place

    assert place_of("lasting", Place.HERE) is Place.PRIVATE
    assert place_of("lasting", Place.ELSEWHERE) is Place.ELSEWHERE
    assert place_of("alone", Place.HERE) is Place.HERE
    assert place_of("alone", None) is None


ELSEWHERE = "<environment old>\nrequirements ZEO<6\n</environment>\n" + CLIENT.replace(
    "<zodb a>\n", "<zodb a>\nenvironment old\n"
)


def test_the_storage_that_a_client_in_another_python_names_is_known_too(tmp_path: Path) -> None:
    served = "<filestorage>\npath $scratch/x.fs\n</filestorage>\n<mappingstorage 2/>\n"
    text = SERVER.format(served) + ELSEWHERE.format("localhost:$main_port", "storage {}\n")
    source = Source(tmp_path / "x.conf", text.format("2"))
    with given_names(source, tmp_path) as names:
        (contender,) = contenders_of(parse(source, names))
    behind = StorageInfo(promise=BEHIND_SERVER)
    assert contender.opened(behind).info.promise == (Durability.IN_MEMORY, "")
    with pytest.raises(UserError, match="server main has no storage '3'; write 'storage 1' or"):
        read(text.format("3"), tmp_path)


SEVERAL = """
<zeoserver main>
  <filestorage>
    path {0}/kept.fs
  </filestorage>
  <mappingstorage 2/>
  <filestorage 3>
    path {0}/fixed.fs
    read-only true
  </filestorage>
</zeoserver>
<zodb kept>
  <zeoclient>
    server localhost:$main_port
  </zeoclient>
</zodb>
<zodb lost>
  <zeoclient>
    server $main
    storage 2
  </zeoclient>
</zodb>
<zodb fixed>
  <zeoclient>
    server $main
    storage 3
  </zeoclient>
</zodb>
<zodb base_fixed>
  <demostorage>
    <zeoclient base>
      server $main
      storage 3
    </zeoclient>
    <zeoclient changes>
      server $main
    </zeoclient>
  </demostorage>
</zodb>
<zeoserver before>
  <zeoclient>
    server $main
    storage 3
  </zeoclient>
</zeoserver>
<zodb through_another>
  <zeoclient>
    server $before
  </zeoclient>
</zodb>
"""


@pytest.fixture
def several(tmp_path: Path) -> dict[str, Contender]:
    """Return contenders, by name, of servers with several storages."""
    source = Source(tmp_path / "x.conf", SEVERAL.format(tmp_path))
    with given_names(source, tmp_path) as names:
        return {contender.name: contender for contender in contenders_of(parse(source, names))}


def test_a_contender_has_the_facts_of_the_storage_that_it_names(
    several: dict[str, Contender],
) -> None:
    behind = StorageInfo(promise=BEHIND_SERVER, server_place=Place.HERE)
    durability = {
        name: contender.opened(behind).info.promise[0] for name, contender in several.items()
    }
    assert durability == {
        "kept": Durability.SYNCED,
        "lost": Durability.IN_MEMORY,
        "fixed": Durability.SYNCED,
        "base_fixed": Durability.SYNCED,
        "through_another": Durability.UNKNOWN,
    }


@pytest.mark.parametrize("how", RESTARTS)
def test_a_server_is_not_restarted_for_a_storage_that_would_lose_its_data(
    how: str, several: dict[str, Contender]
) -> None:
    parameters = Parameters(CrewShape(2), rate=9.0, during=how, phase="before")
    refusals = {name: operation_refusal(one, parameters) for name, one in several.items()}
    assert refusals == {
        **dict.fromkeys(several),
        "lost": "this storage: server main would lose its data, which is in memory",
    }


def test_contenders_with_storages_of_one_server_are_two_databases(
    several: dict[str, Contender], tmp_path: Path
) -> None:
    kept, fixed = several["kept"], several["fixed"]
    assert (
        kept.settings["server", "main", "storage", "path"],
        fixed.settings["server", "main", "storage", "path"],
    ) == (str(tmp_path / "kept.fs"), str(tmp_path / "fixed.fs"))
    assert shared_databases([kept, fixed]) == []


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "$main_host"])
def test_contenders_with_one_storage_are_one_database_by_any_name_of_its_host(
    host: str, tmp_path: Path
) -> None:
    clients = CLIENT.format("$main", "") + CLIENT.format(f"{host}:$main_port", "storage 1\n")
    text = SERVER.format(MAPPING) + clients.replace("<zodb a>", "<zodb b>", 1)
    source = Source(tmp_path / "x.conf", text)
    with given_names(source, tmp_path) as names:
        contenders = contenders_of(parse(source, names))
    assert shared_databases(contenders) == ["b and a use the same database: $main, 1"]


@pytest.mark.parametrize(
    ("storages", "message"),
    [
        ("", "1: <zeoserver main> contains no storage, such as <filestorage>"),
        (
            f"{MAPPING}<mappingstorage 1/>\n",
            "3: two storages of server main are called '1', the default name; ",
        ),
        (
            f"{NAMED}{NAMED}",
            "5: two sections are called 'two'; give each a different name",
        ),
    ],
)
def test_a_zeo_server_needs_storages_with_names_of_their_own(
    storages: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        read(SERVER.format(storages) + CLIENT.format("$main", ""), tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'x.conf'}:{message}")
