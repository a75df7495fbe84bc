"""A configuration is read once for each variant of ``--against``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from zodbshootout.client.masking import Mask
from zodbshootout.config.configuration import Source
from zodbshootout.contenders.environment import Environment
from zodbshootout.contenders.variants import Variants, read_variants
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian

SERVER = "<zeoserver main>\n<filestorage>\npath $scratch/main.fs\n</filestorage>\n</zeoserver>\n"
ZEO = "<zodb zeo>\n<zeoclient>\nserver $main\n</zeoclient>\n</zodb>\n"
FILE = "<zodb file>\n<filestorage>\npath $scratch/x.fs\n</filestorage>\n</zodb>\n"
ELSEWHERE = (
    "<environment old>\nrequirements ZODB<6\n</environment>\n"
    "<zodb there>\nenvironment old\n<mappingstorage/>\n</zodb>\n"
)
NEW = Environment("new", requirements=("ZODB==6.4",), upon_ours=True)

Read = Callable[..., Variants]


@pytest.fixture
def read(tmp_path: Path) -> Iterator[Read]:
    with ExitStack() as places, Guardian() as guardian:

        def read(text: str, *against: Environment) -> Variants:
            source = Source(tmp_path / "x.conf", text)
            return read_variants(source, against, places, guardian, Mask())

        yield read


def test_a_variant_has_its_own_names_servers_and_scratch(read: Read) -> None:
    variants = read(SERVER + ZEO + FILE, NEW)
    assert variants.names == ["zeo", "zeo@new", "file", "file@new"]
    contenders = variants.contenders()
    assert [contender.name for contender in contenders] == variants.names
    assert [contender.variant_of for contender in contenders] == ["", "zeo", "", "file"]
    assert [contender.made_of for contender in contenders[:2]] == [
        "as installed", "ZODB==6.4, all else as installed"
    ]  # fmt: skip
    assert len({contender.place for contender in contenders}) == 4
    addresses = [contender.storage.names["main"] for contender in contenders[:2]]
    assert addresses[0] != addresses[1]
    assert list(variants.environments().values()) == [Environment("installed")] * 2 + [NEW] * 2


def test_without_against_there_is_one_variant(read: Read) -> None:
    variants = read(FILE + ELSEWHERE)
    assert variants.names == ["file", "there"]
    assert {name: each.name for name, each in variants.environments().items()} == {"there": "old"}
    file, there = variants.contenders()
    assert (file.environment, there.environment) == ("", "old")
    assert file.place == ("$scratch/x.fs",)


def test_only_selects_contenders_of_every_variant(read: Read) -> None:
    variants = read(SERVER + ZEO + FILE + ELSEWHERE, NEW).selected(["file"])
    assert variants.names == ["file", "file@new"]


def test_only_keeps_the_order_of_the_file(read: Read) -> None:
    text = "".join(f"<zodb {name}>\n<mappingstorage/>\n</zodb>\n" for name in "abc")
    assert read(text).selected(["c,a"]).names == ["a", "c"]
    assert read(text).selected(["c", "b"]).names == ["b", "c"]
    assert [each.name for each in read(text).selected(["b"]).contenders()] == ["b"]


@pytest.mark.parametrize(
    ("text", "against", "only", "message"),
    [
        ("", [], [], "no contender; each is a section <zodb NAME> with a storage in it"),
        (FILE, [], ["x"], "--only: no contender 'x'; there are file"),
        (
            FILE + ELSEWHERE, [NEW], [],
            "--against: there is in environment old already; choose others with --only",
        ),
        (
            SERVER.replace("main>", "main>\nlisten 192.0.2.9") + ZEO, [], [],
            "server main: listen 192.0.2.9 is no address of this host",
        ),
    ],
)  # fmt: skip
def test_contenders_that_cannot_be_had(
    text: str, against: list[Environment], only: list[str], message: str, read: Read
) -> None:
    with pytest.raises(UserError) as caught:
        read(text, *against).selected(only)
    assert message in str(caught.value)


def test_a_server_that_keeps_its_data_has_no_variants(read: Read, tmp_path: Path) -> None:
    server = f"<postgresqlserver main>\ndirectory {tmp_path}/data\n</postgresqlserver>\n"
    assert read(server + FILE).names == ["file"]
    with pytest.raises(UserError, match="server main keeps its data in a directory"):
        read(server + FILE, NEW)
