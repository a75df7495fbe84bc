"""The variants of contenders that ``--against`` and ``--define`` make."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from zodbshootout.config.pythons import Environment
from zodbshootout.config.source import Source
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.selection import only_clients_in_environments
from zodbshootout.contenders.variants import (
    Environments,
    VariantOptions,
    Variants,
    environments_of,
    read_variants,
)
from zodbshootout.errors import UserError
from zodbshootout.guardian import Guardian
from zodbshootout.model.masking import Mask
from zodbshootout.model.outcome import Failure, State
from zodbshootout.model.specification import ClientKind, CrewShape, Interpreter

SERVER = "<zeoserver main>\n<filestorage>\npath $scratch/main.fs\n</filestorage>\n</zeoserver>\n"
ZEO = "<zodb zeo>\n<zeoclient>\nserver $main\n</zeoclient>\n</zodb>\n"
FILE = "<zodb file>\n<filestorage>\npath $scratch/x.fs\n</filestorage>\n</zodb>\n"
ELSEWHERE = (
    "<environment old>\nrequirements ZODB<6\n</environment>\n"
    "<zodb there>\nenvironment old\n<mappingstorage/>\n</zodb>\n"
)
NEW = Environment("new", requirements=("ZODB==6.4",), keeps_installed=True)

Read = Callable[..., Variants]


@pytest.fixture
def read(tmp_path: Path) -> Iterator[Read]:
    guardian = mock.Mock(spec=Guardian)
    with ExitStack() as places:

        def read(
            text: str | Sequence[str], *against: Environment, **definitions: list[str]
        ) -> Variants:
            texts = [text] if isinstance(text, str) else text
            sources = [
                Source(tmp_path / f"{name}.conf", t) for name, t in zip("xyz", texts, strict=False)
            ]
            options = VariantOptions(against, definitions)
            return read_variants(sources, options, places, guardian, Mask())

        yield read


def names(contenders: list[Contender]) -> list[str]:
    return [contender.title for contender in contenders]


def test_a_variant_has_its_own_names_servers_and_scratch(read: Read) -> None:
    variants = read(SERVER + ZEO + FILE, NEW)
    contenders = variants.contenders()
    assert names(contenders) == ["zeo", "zeo@new", "file", "file@new"]
    assert [contender.name for contender in contenders] == ["zeo", "zeo", "file", "file"]
    assert [contender.variant for contender in contenders] == [{}, NEW.variant, {}, NEW.variant]
    installed = Environment("installed")
    assert [contender.environment for contender in contenders] == [installed, NEW, installed, NEW]
    assert len({contender.place for contender in contenders}) == 4
    addresses = [contender.storage.names["main"] for contender in contenders[:2]]
    assert addresses[0] != addresses[1]


def test_scratch_is_absolute_even_if_tmpdir_is_not(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", ".")
    (contender,) = read(FILE).contenders()
    scratch = Path(contender.storage.names["scratch"])
    assert scratch.is_absolute()
    assert scratch.is_relative_to(tmp_path)


def test_a_private_zeo_server_is_in_the_environment_of_its_variant(read: Read) -> None:
    contenders = read(SERVER + ZEO + FILE, NEW).contenders()
    assert [contender.server_environments for contender in contenders] == [
        {"main": Environment("installed")}, {"main": NEW}, {}, {},
    ]  # fmt: skip
    assert environments_of(contenders) == [Environment("installed"), NEW]
    assert only_clients_in_environments(contenders) == []


def test_a_server_of_another_program_is_in_no_environment(read: Read) -> None:
    memcached = "<memcachedserver cache/>\n"
    served = FILE.replace("$scratch/x.fs", "$scratch/$cache_port")
    (_, contender) = read(memcached + served, NEW).contenders()
    assert (list(contender.servers), contender.server_environments) == (["cache"], {})


OLD = "<environment old>\nrequirements ZEO<6\n</environment>\n"
OLD_SERVER = SERVER.replace("main>\n", "main>\nenvironment Old\n", 1)


def test_a_server_stays_in_the_environment_that_its_section_names(read: Read) -> None:
    old = Environment("old", "", ("ZEO<6",))
    (zeo,) = read(OLD + OLD_SERVER + ZEO).contenders()
    assert (zeo.environment, zeo.server_environments) == (None, {"main": old})
    assert zeo.settings["server", "main", "environment"] == "Old"
    contenders = read(OLD + OLD_SERVER + ZEO, NEW).contenders()
    assert [contender.server_environments["main"] for contender in contenders] == [old, old]
    assert only_clients_in_environments(contenders) == [
        "only the clients of zeo@new are in environment new; server main is in environment old"
    ]


def test_an_unknown_environment_of_a_server_is_an_error_with_its_line(read: Read) -> None:
    with pytest.raises(UserError) as caught:
        read(OLD.replace("old", "odd") + OLD_SERVER + ZEO).contenders()
    assert str(caught.value).endswith("x.conf:5: no environment 'Old'; did you mean odd?")


def test_a_line_says_that_only_the_clients_of_a_server_are_in_an_environment(read: Read) -> None:
    text = OLD + SERVER + "".join(
        ZEO.replace("zeo>\n", f"{name}>\nenvironment old\n", 1) for name in ("one", "two")
    )  # fmt: skip
    assert only_clients_in_environments(read(text + ZEO).contenders()) == [
        "only the clients of one and two are in environment old; server main runs what is installed"
    ]


@dataclass
class FakeMaker:
    """A maker whose environments are names, and which cannot make some."""

    failing: tuple[str, ...] = ()
    made: list[str] = field(default_factory=list)

    def interpreter(self, environment: Environment, modules: Path) -> Interpreter:
        if environment.name in self.failing:
            raise UserError(f"environment {environment.name} is too heavy")
        self.made.append(environment.name)
        return Interpreter(environment.name, f"/{environment.name}/python", str(modules))


@pytest.mark.slow
def test_an_environment_that_several_need_is_made_once(read: Read) -> None:
    variants = read(SERVER + ZEO + FILE, NEW)
    maker: Any = FakeMaker()
    environments = variants.make_environments(variants.contenders(), maker)
    assert maker.made == ["installed", "new"]
    assert environments.flaws == {}


@pytest.mark.slow
def test_a_contender_fails_with_the_environment_of_its_server(read: Read) -> None:
    variants = read(OLD + OLD_SERVER + ZEO + FILE)
    zeo, file = variants.contenders()
    maker: Any = FakeMaker(failing=("old",))
    environments = variants.make_environments([zeo, file], maker)
    assert environments.flaw_for(zeo) == Failure("environment old is too heavy")
    assert environments.flaw_for(file) is None


@pytest.mark.slow
def test_a_release_that_cannot_be_installed_is_not_supported(read: Read) -> None:
    old = replace(NEW, name="old", one_of_several=True)
    variants = read(FILE, NEW, old)
    contenders = variants.contenders()
    maker: Any = FakeMaker(failing=("new", "old"))
    environments = variants.make_environments(contenders, maker)
    flaws = [environments.flaw_for(contender) for contender in contenders]
    assert [flaw and flaw.state for flaw in flaws] == [None, State.FAILED, State.UNSUPPORTED]


@pytest.mark.slow
def test_gevent_patches_the_pythons_of_greenlets(read: Read) -> None:
    variants = read(FILE, NEW)
    first, second = variants.contenders()
    maker: Any = FakeMaker()
    environments = variants.make_environments([first, second], maker)
    here, there = CrewShape(2, ClientKind.GREENLET), CrewShape(2, ClientKind.GREENLET, hosts=1)
    interpreter = environments.interpreter_for(second, here)
    assert interpreter is not None
    assert (interpreter.name, interpreter.gevent) == ("new", True)
    (alone,) = read(FILE).contenders()
    assert Environments().interpreter_for(alone, here) is None
    elsewhere = Environments().interpreter_for(alone, there)
    assert elsewhere is not None
    assert (elsewhere.executable, elsewhere.gevent) == (sys.executable, True)


def test_a_name_in_several_files_is_preceded_by_that_of_the_file(read: Read) -> None:
    variants = read([SERVER + ZEO + FILE, FILE, SERVER + ZEO.replace("zodb zeo", "zodb other")])
    contenders = variants.contenders()
    assert names(contenders) == ["zeo", "x.conf:file", "y.conf:file", "other"]
    assert len({contender.place for contender in contenders}) == 4
    assert contenders[0].storage.names["main"] != contenders[3].storage.names["main"]
    assert names(variants.contenders(["y.conf:file,zeo"])) == ["zeo", "y.conf:file"]
    with pytest.raises(
        UserError, match=r"--only: no contender 'file'; there are zeo, x\.conf:file"
    ):
        variants.contenders(["file"])


def test_each_file_has_its_variants(read: Read) -> None:
    contenders = read([FILE, FILE], NEW).contenders()
    assert [(contender.name, contender.title) for contender in contenders] == [
        ("x.conf:file", "x.conf:file"),
        ("x.conf:file", "x.conf:file@new"),
        ("y.conf:file", "y.conf:file"),
        ("y.conf:file", "y.conf:file@new"),
    ]


def test_a_definition_is_for_the_files_that_use_its_name(read: Read) -> None:
    sized = "%define mb 1\n<zodb sized>\ncache-size $mb\n<mappingstorage/>\n</zodb>\n"
    contenders = read([sized, FILE], mb=["1", "2"]).contenders()
    assert names(contenders) == ["sized [mb=1]", "sized [mb=2]", "file"]
    with pytest.raises(UserError, match=r"--define: nothing in .*x\.conf uses \$gb"):
        read([sized, FILE], gb=["1"])


def test_files_of_one_name_are_told_apart_by_their_directories(tmp_path: Path) -> None:
    sources = [Source(tmp_path / name / "zope.conf", FILE) for name in ("a", "b")]
    guardian = mock.Mock(spec=Guardian)
    with ExitStack() as places:
        variants = read_variants(sources, VariantOptions(), places, guardian, Mask())
        assert names(variants.contenders()) == ["a/zope.conf:file", "b/zope.conf:file"]


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
        ("", [], [], "no contender; write a section <zodb NAME> that contains a storage"),
        (FILE, [], ["x"], "--only: no contender 'x'; there are file"),
        (
            FILE + ELSEWHERE, [NEW], [],
            "--against: there is already in environment old; choose others with --only",
        ),
        (
            SERVER.replace("main>", "main>\nlisten 192.0.2.9") + ZEO, [], [],
            "server main: listen 192.0.2.9 is not an address of this host",
        ),
    ],
)  # fmt: skip
def test_an_error_says_why_contenders_are_unavailable(
    text: str, against: list[Environment], only: list[str], message: str, read: Read
) -> None:
    with pytest.raises(UserError) as caught:
        read(text, *against).contenders(only)
    assert message in str(caught.value)


def test_a_server_that_keeps_its_data_cannot_have_variants(read: Read, tmp_path: Path) -> None:
    server = f"<postgresqlserver main>\ndirectory {tmp_path}/data\n</postgresqlserver>\n"
    assert names(read(server + FILE).contenders()) == ["file"]
    with pytest.raises(UserError, match=f"server main keeps its data in {tmp_path}/data, but"):
        read(server + FILE, NEW)


def test_a_file_serves_one_variant_unless_it_is_read_only(read: Read, tmp_path: Path) -> None:
    fixed = SERVER.replace("$scratch", str(tmp_path))
    assert names(read(fixed + ZEO).contenders()) == ["zeo"]
    with pytest.raises(UserError, match=f"server main keeps its data in {tmp_path}/main.fs, but"):
        read(fixed + ZEO, NEW)
    with pytest.raises(UserError, match="--define: server main keeps its data"):
        read(fixed + CACHED, cache=["1MB", "2MB"])
    read(fixed.replace("main.fs", "main.fs\nread-only true") + ZEO, NEW)


def test_each_variant_needs_places_that_no_other_variant_has(read: Read, tmp_path: Path) -> None:
    text = "%define x 0\n%define y 0\n" + SERVER.replace("$scratch/main", f"{tmp_path}/$x$y")
    assert len(read(text + ZEO, x=["1", "2"], y=["1", "2"]).contenders()) == 4
    with pytest.raises(UserError, match=f"{tmp_path}/111.fs, but each variant needs its own"):
        read(text + ZEO, x=["1", "11"], y=["1", "11"])


CACHED = """
%define cache 1MB
%define twice $cache
<zodb zeo>
cache-size 100
<zeoclient>
server $main
cache-size $twice
</zeoclient>
</zodb>
"""
OTHER = """
%define objects 100
<zodb other>
cache-size $objects
<filestorage>
path $scratch/other.fs
</filestorage>
</zodb>
"""


def test_a_contender_that_uses_a_name_is_measured_with_each_of_its_values(read: Read) -> None:
    variants = read(SERVER + CACHED + FILE, cache=["1MB", "10MB", "20MB"])
    contenders = variants.contenders()
    assert names(contenders) == [
        "zeo [cache=1MB]", "zeo [cache=10MB]", "zeo [cache=20MB]", "file",
    ]  # fmt: skip
    first, second, third, file = contenders
    assert (first.name, second.name, file.name) == ("zeo", "zeo", "file")
    assert [contender.variant for contender in contenders] == [
        {"cache": "1MB"}, {"cache": "10MB"}, {"cache": "20MB"}, {},
    ]  # fmt: skip
    assert [one.settings["storage", "cache_size"] for one in (first, second, third)] == [
        str(2**20), str(10 * 2**20), str(20 * 2**20),
    ]  # fmt: skip
    assert len({contender.storage.names["main"] for contender in (first, second, third)}) == 3


def test_a_name_that_a_server_uses_makes_variants_of_its_contenders(read: Read) -> None:
    server = "%define drop 1000\n" + SERVER.replace(
        "</zeoserver>", "<settings>\ntransaction-timeout $drop\n</settings>\n</zeoserver>"
    )
    contenders = read(server + ZEO + FILE, drop=["5", "6"]).contenders()
    assert names(contenders) == ["zeo [drop=5]", "zeo [drop=6]", "file"]


def test_a_contender_that_uses_two_names_has_a_variant_per_combination(read: Read) -> None:
    both = CACHED.replace("cache-size 100\n", "cache-size $objects\n")
    text = SERVER + "%define objects 100\n" + both + OTHER.replace("%define objects 100\n", "")
    contenders = read(text, cache=["1MB", "2MB"], objects=["5", "6"]).contenders()
    assert names(contenders) == [
        "zeo [cache=1MB, objects=5]", "zeo [cache=1MB, objects=6]",
        "zeo [cache=2MB, objects=5]", "zeo [cache=2MB, objects=6]",
        "other [objects=5]", "other [objects=6]",
    ]  # fmt: skip
    assert [contender.reading for contender in contenders[4:]] == [
        "[cache=1MB, objects=5]", "[cache=1MB, objects=6]",
    ]  # fmt: skip


def test_an_included_file_may_need_a_server_and_variables(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("one", "two"):
        monkeypatch.setenv(f"USER_{place}", place)
        (tmp_path / place).mkdir()
        (tmp_path / place / "server.conf").write_text(SERVER)
        (tmp_path / place / "client.conf").write_text(f"server $main\nusername $(USER_{place})\n")
    variants = read(
        "%include $place/server.conf\n"
        "<zodb zeo>\n<zeoclient>\n%include $place/client.conf\n</zeoclient>\n</zodb>\n",
        place=["one", "two"],
    )
    assert variants.environment_names == {"USER_one", "USER_two"}
    assert [list(contender.servers) for contender in variants.contenders()] == [["main"]] * 2


def test_only_the_names_with_a_secret_value_are_numbered(read: Read) -> None:
    text = SERVER + CACHED.replace("server $main", "server $main\npassword a$mine")
    contenders = read(text, cache=["1MB", "2MB"], mine=["one", "two"]).contenders()
    assert names(contenders) == [
        "zeo [cache=1MB, mine=#1]", "zeo [cache=1MB, mine=#2]",
        "zeo [cache=2MB, mine=#1]", "zeo [cache=2MB, mine=#2]",
    ]  # fmt: skip
    assert contenders[2].reading == "[cache=2MB, mine=#1]"


def test_values_of_a_name_like_a_password_are_numbered_even_in_another_place(read: Read) -> None:
    text = SERVER + CACHED.replace("cache", "cache_secret").replace("cache_secret-", "cache-")
    contenders = read(text, cache_secret=["1MB", "2MB"]).contenders()
    assert names(contenders) == ["zeo [cache_secret=#1]", "zeo [cache_secret=#2]"]
    assert (
        contenders[0].settings["storage", "cache_size"]
        != contenders[1].settings["storage", "cache_size"]
    )


def test_a_single_value_replaces_that_of_the_file_and_makes_no_variant(read: Read) -> None:
    (zeo,) = read(SERVER + CACHED, cache=["3MB"]).contenders()
    assert (zeo.name, zeo.settings["storage", "cache_size"]) == ("zeo", str(3 * 2**20))


def test_a_value_may_be_given_to_a_name_that_the_file_does_not_define(read: Read) -> None:
    undefined = OTHER.replace("%define objects 100\n", "")
    (other,) = read(undefined, objects=["7"]).contenders()
    assert other.settings[("cache_size",)] == "7"


def test_a_definition_in_an_included_file_is_replaced(read: Read, tmp_path: Path) -> None:
    (tmp_path / "names.conf").write_text("%define objects 100\n")
    included = OTHER.replace("%define objects 100", "%include names.conf")
    (other,) = read(included, objects=["7"]).contenders()
    assert other.settings[("cache_size",)] == "7"


@pytest.mark.parametrize(
    ("definitions", "message"),
    [
        ({"cach": ["1"]}, "--define: nothing in .*x.conf uses .cach; did you mean cache?"),
        ({"scratch": ["1"]}, "--define: .scratch belongs to the run"),
        ({"main": ["1"]}, "--define: .main belongs to the run"),
        ({"cache": ["1MB", "much"]}, "cache-size: .*much"),
        (
            {"cache": ["1$MB"]},
            r"--define: the value of cache is invalid; write a literal \$ as",
        ),
        ({"cache": ["1${"]}, "--define: the value of cache is invalid"),
    ],
)
def test_an_unused_reserved_or_invalid_definition_is_refused(
    read: Read, definitions: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read(SERVER + CACHED, **definitions)


def test_a_definition_of_an_environment_variable_is_refused_with_what_to_write(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_OBJECTS", "5")
    text = OTHER.replace("%define objects 100\n", "").replace("$objects", "$(MY_OBJECTS)")
    with pytest.raises(UserError) as caught:
        read(text, my_objects=["7"])
    assert str(caught.value).endswith(
        "x.conf takes MY_OBJECTS from the environment; begin the file with "
        "'%define my_objects $(MY_OBJECTS)', and replace the other $(MY_OBJECTS) by $my_objects"
    )
    monkeypatch.delenv("MY_OBJECTS")  # as written there
    text = "%define my_objects $(MY_OBJECTS)\n" + text.replace("$(MY_OBJECTS)", "$my_objects")
    (other,) = read(text, my_objects=["7"]).contenders()
    assert other.settings[("cache_size",)] == "7"
