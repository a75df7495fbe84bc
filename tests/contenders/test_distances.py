"""The distances of contenders: those of ``--rtt``, and those in the sections of servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import pytest

from zodbshootout.config.source import Source
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.selection import not_moved, shared_databases
from zodbshootout.contenders.variants import VariantOptions, read_variants
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian
from zodbshootout.model.masking import Mask
from zodbshootout.model.specification import CrewShape, Parameters
from zodbshootout.model.storage_facts import Place, StorageInfo


@pytest.fixture
def places() -> Iterator[ExitStack]:
    with ExitStack() as places:
        yield places


def zeoserver(name: str, rtt: str = "", storage: str = "") -> str:
    key = f"rtt {rtt}\n" if rtt else ""
    storage = storage or f"<filestorage>\npath $scratch/{name}.fs\n</filestorage>"
    return f"<zeoserver {name}>\n{key}{storage}\n</zeoserver>\n"


def client(server: str, within: str = "") -> str:
    return f"<zeoclient {within}>\nserver {server}\n</zeoclient>\n"


def zodb(name: str, storage: str) -> str:
    return f"<zodb {name}>\n{storage}</zodb>\n"


UPON = "<demostorage>\n{}{}</demostorage>\n"
FILE = "<filestorage>\npath a.fs\n</filestorage>\n"


def read(places: ExitStack, text: str, *rtts: float) -> Sequence[Contender]:
    options = VariantOptions(rtts=rtts)
    guardian = mock.Mock(spec=Guardian)
    source = Source(Path("x.conf"), text)
    return read_variants([source], options, places, guardian, Mask()).contenders()


def distances(contenders: Sequence[Contender]) -> dict[str, dict[str, float]]:
    """Return the seconds by contender and server."""
    return {
        one.title: {server.name: server.rtt for server in one.storage.servers} for one in contenders
    }


def test_the_option_sets_the_key_of_all_servers_that_do_not_have_it(places: ExitStack) -> None:
    upon = UPON.format(client("$far", "base"), client("$near", "changes"))
    text = (
        zeoserver("far", "2ms") + zeoserver("near") + zodb("upon", upon)
        + zodb("kept", client("$far")) + zodb("plain", client("localhost:${near_port}"))
        + zodb("fs", FILE)
    )  # fmt: skip
    contenders = read(places, text, 0.0, 0.0005)
    assert distances(contenders) == {
        "upon [0]": {"far": 0.002, "near": 0.0},
        "upon [0.5ms]": {"far": 0.002, "near": 0.0005},
        "kept": {"far": 0.002},
        "plain [0]": {"near": 0.0},
        "plain [0.5ms]": {"near": 0.0005},
        "fs": {},
    }
    assert not_moved(contenders) == ["--rtt: fs has no server, and is measured once"]


def test_a_contender_at_a_single_distance_has_it_in_its_title(places: ExitStack) -> None:
    text = zeoserver("main") + zodb("zeo", client("$main")) + zodb("fs", FILE)
    assert [one.title for one in read(places, text, 0.002)] == ["zeo [2ms]", "fs"]


def test_the_key_holds_without_the_option(places: ExitStack) -> None:
    text = zeoserver("main", "200us") + zodb("zeo", client("$main"))
    (contender,) = read(places, text)
    (server,) = contender.storage.servers
    assert server.rtt == 0.0002
    assert contender.settings["server", "main", "rtt"] == "0.0002"


@pytest.mark.parametrize(
    "key", ["<zeoserver inner>\nrtt 2ms\n", "<externalserver inner>\nrtt 2ms\n"]
)
def test_a_server_of_a_server_cannot_be_put_at_a_distance(key: str, places: ExitStack) -> None:
    data = "address db:1" if "external" in key else "<mappingstorage/>"
    text = (
        f"{key}{data}\n</{key[1:].partition(' ')[0]}>\n"
        + zeoserver("outer", storage=client("$inner"))
        + zodb("zeo", client("$outer"))
    )
    with pytest.raises(
        UserError, match=r"x.conf:2: rtt: no contender connects directly to server inner"
    ):
        read(places, text)


def external(address: str, key: str = "") -> str:
    return f"<externalserver db>\naddress {address}\n{key}</externalserver>\n"


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("db.example.com:5432", ["db.example.com:5432", "db.example.com", "5432"]),
        ("[::1]:8100", ["[::1]:8100", "::1", "8100"]),
        ("/run/postgresql/.s.PGSQL.5433", [
            "/run/postgresql/.s.PGSQL.5433", "/run/postgresql", "5433"
        ]),
    ],
)  # fmt: skip
def test_a_server_that_runs_already_has_the_names_of_a_private_one(
    address: str, names: Sequence[str], places: ExitStack
) -> None:
    text = external(address) + zodb("zeo", client("$db") + "pool-size ${db_port}\n")
    contenders = read(places, text, 0.0, 0.002)
    assert [one.title for one in contenders] == ["zeo [0]", "zeo [2ms]"]
    for one in contenders:
        (server,) = one.storage.servers
        assert list(server.names.values()) == names
        assert one.servers == {}
        assert one.settings["server", "db", "address"] == address
    assert shared_databases(contenders)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (external("db"), "x.conf:2: <externalserver db>: no address; write address HOST:PORT, or"),
        (external("db:0"), "x.conf:2: <externalserver db>: no address"),
        ("<externalserver db>\n</externalserver>\n", "x.conf:1: <externalserver db>: no address"),
        (external("$scratch/x"), "x.conf:2: address: only names that the file itself defines"),
        (
            external("db:1") + zodb("zeo", client("db:$db_port")),
            r"x.conf:\d+: refer to server db by \$db, or by \$db_host and \$db_port",
        ),
    ],
)
def test_a_wrong_address_is_reported_with_its_place(
    text: str, message: str, places: ExitStack
) -> None:
    with pytest.raises(UserError, match=message):
        read(places, text + zodb("fs", FILE))


RELSTORAGE = "%import relstorage\n"


def relstorage(database: str, keys: str = "") -> str:
    return f"<relstorage>\n{keys}\n{database}</relstorage>\n"


POSTGRESQL = "<postgresql>\ndsn {}\n</postgresql>\n"
SQLITE = "<sqlite3>\ndata-dir x\n</sqlite3>\n"
MYSQL = "<mysql>\ndb zodb\n{}\n</mysql>\n"


@pytest.mark.parametrize(
    ("storage", "line"),
    [
        (relstorage(POSTGRESQL.format("dbname=one user=u")), "dsn host=$db_host port=$db_port"),
        (relstorage(POSTGRESQL.format("service=zodb")), "dsn host=$db_host port=$db_port"),
        (
            relstorage(POSTGRESQL.format("postgresql://u@[::1]:5432/one?application_name=x")),
            "dsn host=$db_host port=$db_port",
        ),
        (relstorage(MYSQL.format("")), "host $db_host, port $db_port"),
        (relstorage(MYSQL.format("host db")), "host $db_host, port $db_port"),
        (
            relstorage(MYSQL.format("read_default_file /etc/my.cnf")),
            "host $db_host, port $db_port",
        ),
        (relstorage(SQLITE, "cache-servers localhost:11211"), "cache-servers $db"),
        ("<zeoclient>\nserver a:1\nserver b:2\n</zeoclient>\n", "server $db"),
        (f"<demostorage>\n<mappingstorage changes/>\n{client('a:1', 'base')}</demostorage>\n",
         "server $db"),
    ],
)  # fmt: skip
def test_a_section_that_names_its_server_itself_is_not_supported_at_a_distance(
    storage: str, line: str, places: ExitStack
) -> None:
    contenders = read(places, RELSTORAGE + zodb("own", storage) + zodb("fs", FILE), 0.0, 0.002)
    near, far, _ = contenders
    assert [near.title, far.title] == ["own [0]", "own [2ms]"]
    parameters = Parameters(CrewShape(1))
    assert near.refusal(parameters) is None
    refusal = far.refusal(parameters)
    assert refusal is not None
    assert refusal.startswith("it cannot be put at a distance: its section refers to no section of")
    assert refusal.endswith(f"with 'address HOST:PORT', and refer to it by {line}")
    assert not_moved(contenders) == ["--rtt: fs has no server, and is measured once"]


@pytest.mark.parametrize("storage", [relstorage(SQLITE), "<mappingstorage/>\n", FILE])
def test_a_storage_without_a_server_is_measured_once(storage: str, places: ExitStack) -> None:
    (only,) = read(places, RELSTORAGE + zodb("own", storage), 0.0, 0.002)
    assert only.title == "own"
    assert only.refusal(Parameters(CrewShape(1))) is None


def test_a_storage_of_an_unknown_type_is_judged_by_its_connections(places: ExitStack) -> None:
    unknown = "%import tests.talking\n" + zodb("own", f"<talking>\nserver a:1\n{FILE}</talking>\n")
    near, far = read(places, unknown, 0.0, 0.002)
    parameters = Parameters(CrewShape(1))
    assert far.opened(StorageInfo()).refusal(parameters) is None
    connected = StorageInfo(server_place=Place.HERE)
    assert near.opened(connected).refusal(parameters) is None
    refusal = far.opened(connected).refusal(parameters)
    assert refusal is not None
    assert refusal.endswith("refer to it by $db_host and $db_port")


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        ("-1", "'-1' is not a round-trip time up to 1s, such as 0.5ms"),
        ("nan", "'nan' is not a round-trip time up to 1s, such as 0.5ms"),
        ("10s", "'10s' is not a round-trip time up to 1s, such as 0.5ms"),
        ("0,1ms", "'0,1ms' is not a round-trip time up to 1s, such as 0.5ms"),
        ("1", "'1' has no unit; write 1ms or 1us"),
    ],
)
@pytest.mark.parametrize("kind", ["zeo", "postgresql", "mysql", "memcached"])
def test_a_wrong_value_is_reported_with_its_place(
    kind: str, value: str, flaw: str, places: ExitStack
) -> None:
    text = f"<{kind}server main>\nrtt {value}\n</{kind}server>\n"
    with pytest.raises(UserError) as raised:
        read(places, text + zodb("fs", FILE))
    assert str(raised.value) == f"x.conf:2: rtt: {flaw}"
