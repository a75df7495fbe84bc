"""The distances of contenders: those of ``--rtt``, and those in the sections of servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import pytest

from zodbshootout.config.source import Source
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.selection import not_moved
from zodbshootout.contenders.variants import VariantOptions, read_variants
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian
from zodbshootout.model.masking import Mask


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
    """Return the seconds by contender and server; the server is empty for all others."""
    return {
        one.title: {distance.server: distance.rtt for distance in one.storage.distances}
        for one in contenders
    }


def test_a_server_with_a_key_keeps_its_distance_and_others_get_that_of_the_option(
    places: ExitStack,
) -> None:
    upon = UPON.format(client("$far", "base"), client("$near", "changes"))
    text = (
        zeoserver("far", "2ms") + zeoserver("near") + zodb("upon", upon)
        + zodb("kept", client("$far")) + zodb("plain", client("localhost:${near_port}"))
        + zodb("fs", FILE)
    )  # fmt: skip
    contenders = read(places, text, 0.0, 0.0005)
    assert distances(contenders) == {
        "upon [0]": {"far": 0.002, "": 0.0},
        "upon [0.5ms]": {"far": 0.002, "": 0.0005},
        "kept": {"far": 0.002},
        "plain [0]": {"": 0.0},
        "plain [0.5ms]": {"": 0.0005},
        "fs": {},
    }
    assert not_moved(contenders) == [
        "--rtt: fs has no server, and is measured once",
        "--rtt: kept has no server without a key rtt, and is measured once",
    ]


def test_the_key_holds_without_the_option(places: ExitStack) -> None:
    text = zeoserver("main", "200us") + zodb("zeo", client("$main"))
    (contender,) = read(places, text)
    (distance,) = contender.storage.distances
    assert distance.rtt == 0.0002
    assert distance.holds_for(("localhost", distance.port))
    assert not distance.holds_for(("localhost", distance.port + 1))
    assert not distance.holds_for("/var/run/socket")
    assert contender.settings["server", "main", "rtt"] == "0.0002"


def test_a_server_of_a_server_cannot_be_put_at_a_distance(places: ExitStack) -> None:
    text = (
        zeoserver("inner", "2ms")
        + zeoserver("outer", storage=client("$inner"))
        + zodb("zeo", client("$outer"))
    )
    with pytest.raises(
        UserError, match=r"x.conf:2: rtt: no contender connects directly to server inner"
    ):
        read(places, text)


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
