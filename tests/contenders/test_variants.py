"""A configuration is read once for each variant of ``--against``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from zodbshootout.client.masking import Mask
from zodbshootout.config.configuration import Source
from zodbshootout.config.environment import Environment
from zodbshootout.contenders.contender import Contender
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


def names(contenders: list[Contender]) -> list[str]:
    return [contender.name for contender in contenders]


def test_a_variant_has_its_own_names_servers_and_scratch(read: Read) -> None:
    variants = read(SERVER + ZEO + FILE, NEW)
    contenders = variants.contenders()
    assert names(contenders) == ["zeo", "zeo@new", "file", "file@new"]
    assert [contender.variant_of for contender in contenders] == ["", "zeo", "", "file"]
    installed = Environment("installed")
    assert [contender.environment for contender in contenders] == [installed, NEW, installed, NEW]
    assert len({contender.place for contender in contenders}) == 4
    addresses = [contender.storage.names["main"] for contender in contenders[:2]]
    assert addresses[0] != addresses[1]


def test_without_against_there_is_one_variant(read: Read) -> None:
    file, there = read(FILE + ELSEWHERE).contenders()
    assert (file.name, file.environment) == ("file", None)
    assert (there.name, there.environment) == ("there", Environment("old", "", ("ZODB<6",)))
    assert file.place == ("$scratch/x.fs",)


def test_only_selects_contenders_of_every_variant(read: Read) -> None:
    variants = read(SERVER + ZEO + FILE + ELSEWHERE, NEW)
    assert names(variants.contenders(["file"])) == ["file", "file@new"]


def test_only_keeps_the_order_of_the_file(read: Read) -> None:
    text = "".join(f"<zodb {name}>\n<mappingstorage/>\n</zodb>\n" for name in "abc")
    assert names(read(text).contenders(["c,a"])) == ["a", "c"]
    assert names(read(text).contenders(["c", "b"])) == ["b", "c"]


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
        read(text, *against).contenders(only)
    assert message in str(caught.value)


def test_a_server_that_keeps_its_data_has_no_variants(read: Read, tmp_path: Path) -> None:
    server = f"<postgresqlserver main>\ndirectory {tmp_path}/data\n</postgresqlserver>\n"
    assert names(read(server + FILE).contenders()) == ["file"]
    with pytest.raises(UserError, match="server main keeps its data in a directory"):
        read(server + FILE, NEW)
