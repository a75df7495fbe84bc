from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zodburi

from zodbshootout.client.database import Database, open_db
from zodbshootout.client.storage_types.zodburi import schemes
from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.config.uri import is_uri, source_of
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.errors import UserError
from zodbshootout.model.specification import CrewShape, Parameters, Storage
from zodbshootout.model.storage_facts import Sharing

OTHER = """
import ZODB.MappingStorage

def resolve(uri):
    if "bad" in uri:
        raise RuntimeError("that\\nis no good: " + uri)
    return ZODB.MappingStorage.MappingStorage, {}
"""


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with resolvers of its own."""
    installed = tmp_path / "installed"
    described = installed / "other-1.dist-info"
    described.mkdir(parents=True)
    (installed / "resolver_of_other.py").write_text(OTHER)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (described / "entry_points.txt").write_text(
        "[zodburi.resolvers]\nother = resolver_of_other:resolve\nbroken = nowhere_at_all:resolve\n"
    )
    monkeypatch.syspath_prepend(installed)


def contender(uri: str) -> Contender:
    (only_contender,) = contenders_of(parse(source_of(uri), {}))
    return only_contender


def in_a_file(text: str, **names: str) -> list[Contender]:
    return contenders_of(parse(Source(Path("x.conf"), text), names))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("file:///tmp/x.fs", True),
        ("demo:(memory://)/(memory://)", True),
        ("zeo:localhost", True),
        ("unknown://x", True),
        ("x.conf", False),
        ("localhost:8100", False),
        ("/tmp/a:b", False),
        ("cold", False),
        ("", False),
    ],
)
def test_a_uri_is_recognized_by_its_scheme(word: str, expected: bool) -> None:
    assert is_uri(word) is expected


@pytest.mark.parametrize(
    ("uri", "storage", "sharing"),
    [
        ("file://{}/x.fs", "FileStorage", Sharing.EXCLUSIVE),
        (
            "file://{}/x.fs?blobstorage_dir={}/blobs",
            "BlobStorage over FileStorage",
            Sharing.EXCLUSIVE,
        ),
        ("memory://", "MappingStorage", Sharing.VOLATILE),
        ("demo:(file://{}/x.fs)/(memory://)", "DemoStorage", Sharing.VOLATILE),
        ("demo:(memory://)/(file://{}/x.fs)", "DemoStorage", Sharing.EXCLUSIVE),
        ("sqlite://?data_dir={}/sqlite&keep_history=false", "RelStorage", Sharing.CONCURRENT),
        ("sqlite://?data_dir={}/sqlite&demostorage=1", "DemoStorage", Sharing.VOLATILE),
        ("zconfig://{}/zodb.conf", "FileStorage", Sharing.EXCLUSIVE),
        ("zconfig://{}/zodb.conf#another", "MappingStorage", Sharing.VOLATILE),
    ],
)
def test_a_uri_opens_the_storage_that_it_describes(
    uri: str, storage: str, sharing: Sharing, tmp_path: Path
) -> None:
    (tmp_path / "zodb.conf").write_text(
        f"<zodb one>\n<filestorage>\npath {tmp_path}/z.fs\n</filestorage>\n</zodb>\n"
        "<zodb another>\n<mappingstorage/>\n</zodb>\n"
    )
    described = contender(uri.format(tmp_path, tmp_path))
    assert described.name == uri.partition(":")[0]
    with Database(described.storage) as database:
        assert (database.facts.storage_name, database.facts.sharing) == (storage, sharing)


def test_servers_are_known_before_a_uri_is_opened() -> None:
    zeo = contender("zeo://localhost:1?client=c")
    assert zeo.missing_server() == "no server at localhost:1; start one there"
    assert contender("zeo://[::1]").requirements[0].addresses == (("::1", 9991),)
    with_cache = contender("postgres://u:p@h:1/x?cache_servers=localhost:1")
    assert "no server at localhost:1" in str(with_cache.missing_server())
    assert "no server at /no/socket" in str(contender("zeo:///no/socket").missing_server())
    assert contender("mysql://u:p@h/x").requirements == ()


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("file:///var/x.fs?read_only=1", "/var/x.fs"),
        ("file://x y.fs", f"{Path.cwd()}/x y.fs"),
        ("zeo://h:1?wait=1", "zeo://h:1?wait=1"),
        ("mysql://u:geheim@h/x", "mysql://u:geheim@h/x"),
    ],
)
def test_the_database_of_a_uri_is_recognized_by_its_file_or_the_uri(uri: str, place: str) -> None:
    assert contender(uri).place == (place,)


def test_a_uri_with_a_name_of_the_run_is_another_database_in_each_variant() -> None:
    uris = ["zeo://$main", "file://$scratch/x.fs"]
    places = {
        Contender("x", Storage(), {("uri",): uri}, reading=variant).place
        for uri in uris
        for variant in "ab"
    }
    assert len(places) == 4


def test_trap_9_the_database_parameters_of_a_uri_are_honoured() -> None:
    memory = contender("memory://?connection_cache_size=77&connection_pool_size=3&database_name=d")
    db = open_db(memory.storage)
    assert (db.getCacheSize(), db.getPoolSize(), db.database_name) == (77, 3, "d")
    db.close()
    assert memory.settings[("cache_size",)] == "77"


def test_a_path_in_a_uri_is_taken_literally(tmp_path: Path) -> None:
    open_db(contender(f"file://{tmp_path}/a $b $$(c) #d.fs").storage).close()
    assert (tmp_path / "a $b $$(c) #d.fs").is_file()


@pytest.mark.parametrize(
    ("uri", "line"),
    [
        ("zeo://localhost:8100?wait=1", "uri zeo://$db in a <zodburi NAME>"),
        ("zeo:///run/zeo.sock", "uri zeo://$db in a <zodburi NAME>"),
        ("postgres://u@localhost/x", "uri postgres://$db in a <zodburi NAME>"),
        (
            "mysql://u@localhost/x?unix_socket=/run/my.sock",
            "uri mysql://$db in a <zodburi NAME>",
        ),
        (
            "sqlite://?data_dir={}/sqlite&cache_servers=localhost:11211",
            "cache_servers=$db in the uri",
        ),
        ("zconfig://{}/zodb.conf", "server $db"),
        ("sqlite://?data_dir={}/sqlite", ""),
        ("file://{}/x.fs", ""),
        ("memory://", ""),
        ("demo:(memory://)/(zeo://localhost:8100)", None),
    ],
)
def test_a_uri_that_names_a_server_is_not_supported_at_a_distance(
    uri: str, line: str | None, tmp_path: Path
) -> None:
    (tmp_path / "zodb.conf").write_text("<zodb>\n<zeoclient>\nserver db:1\n</zeoclient>\n</zodb>")
    described = contender(uri.format(tmp_path))
    assert described.server_line == line
    refusal = replace(described, rtt=0.002).refusal(Parameters(CrewShape(1)))
    assert (refusal is not None and f"refer to it by {line}" in refusal) == bool(line)


def test_a_uri_in_a_section_uses_the_names_that_the_run_defines(tmp_path: Path) -> None:
    fs, zeo = in_a_file(
        "<zodburi fs>\nuri file://$scratch/x.fs\n</zodburi>\n"
        "<zodburi zeo>\nuri zeo://$main?wait=1\n</zodburi>\n"
        "<zeoserver main>\n<mappingstorage/>\n</zeoserver>\n",
        scratch=str(tmp_path), main="127.0.0.1:1234",
    )  # fmt: skip
    assert fs.settings[("uri",)] == "file://$scratch/x.fs"
    assert not [path for path in fs.settings if path[0] == "storage"]
    assert fs.storage.names == {"scratch": str(tmp_path)}
    assert set(zeo.servers) == {"main"}
    assert zeo.settings[("uri",)] == "zeo://$main?wait=1"
    assert fs.servers == {}


def test_the_settings_in_the_file_of_a_zconfig_uri_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "zodb.conf"
    path.write_text(f"<zodb>\n<filestorage>\npath {tmp_path}/z.fs\n</filestorage>\n</zodb>\n")
    described = contender(f"zconfig://{path}")
    assert described.settings["storage", "path"] == f"{tmp_path}/z.fs"
    assert described.place == (f"{tmp_path}/z.fs",)


def test_trap_10_different_uris_are_different_configurations() -> None:
    uris = ["zeo://h:1", "zeo://h:2", "zeo://h:1?password=a&wait=1", "zeo://h:1?password=a&wait=0"]
    assert len({repr(contender(uri).settings) for uri in uris}) == len(uris)


@pytest.mark.parametrize(
    ("uri", "resolved"),
    [
        ("sqlite://?data_dir=x", "sqlite://?data_dir=x&driver=sqlite3"),
        ("sqlite://?data_dir=x#y", "sqlite://?data_dir=x&driver=sqlite3#y"),
        ("sqlite://?data_dir=x&driver=sqlite3", "sqlite://?data_dir=x&driver=sqlite3"),
    ],
)
def test_a_sqlite_uri_is_always_opened_with_a_driver(
    uri: str, resolved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sqlite = contender(uri)
    asked = [uri]
    resolve: Callable[[str], Any] = zodburi.resolve_uri

    def record(uri: str) -> Any:
        asked.append(uri)
        return resolve(uri)

    monkeypatch.setattr("zodburi.resolve_uri", record)
    with Database(sqlite.storage) as database:
        assert database.facts.driver == "sqlite3"
    assert asked[-1] == resolved


KNOWN = ", ".join(schemes())
BAD = [
    ("foo://x", f"foo://x: no resolver knows the scheme 'foo'; there are {KNOWN}"),
    ("demo:(foo://x)/(memory://)", "demo:(foo://x)/(memory://): No resolver found for uri: foo"),
    ("demo:memory://", "demo:memory://: demo: invalid uri demo:memory://"),
    ("file:/tmp/x.fs", "file:/tmp/x.fs: it has to begin with file://"),
    ("zeo:h:1", "zeo:h:1: it has to begin with zeo://"),
    ("file://x.fs?a=1", "file://x.fs?a=1: Unrecognized database keyword(s): a"),
    ("memory://\n</zodburi>", "memory: a URI is one line of printable characters"),
    ("zeo://h:x", "zeo://h:x: Port could not be cast to integer value as 'x'"),
    ("zconfig:///no.conf", "zconfig:///no.conf: error opening file "),
    (
        "postgresql://u:geheim@h:1/x",
        "postgresql://u:geheim@h:1/x: no resolver knows the scheme 'postgresql'; did you mean post",
    ),
    (
        "mysql+pymysql://h",
        "mysql+pymysql://h: no resolver knows the scheme 'mysql+pymysql'; did you mean mysql?",
    ),
    (
        "mysql://u:p@h/x?a=b&compress=true",
        "mysql://u:p@h/x?a=b&compress=true: 'true' is not a whole number",
    ),
    (
        "sqlite://?data_dir=x&keep_history=maybe",
        "sqlite://?data_dir=x&keep_history=maybe: not a valid boolean value: 'maybe'",
    ),
    (
        "memory://?connection_cache_size=many",
        "memory://?connection_cache_size=many: 'many' is not a whole number",
    ),
    ("other:bad:x", "other:bad:x: that is no good: other:bad:x"),
    ("broken://x", "broken://x: No module named 'nowhere_at_all'"),
]  # fmt: skip


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize(("uri", "message"), BAD)
def test_a_bad_uri_is_reported_in_one_line(
    uri: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        source_of(uri)
    assert str(caught.value).replace("broken, ", "").replace("other, ", "").startswith(message)
    assert "\n" not in str(caught.value)


def test_a_mistake_in_the_file_of_a_zconfig_uri_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "zodb.conf"
    path.write_text("<zodb main>\n<pgjsonb>\n</pgjsonb>\n</zodb>\n")
    uri = f"zconfig://{path}#main"
    with pytest.raises(UserError) as caught:
        source_of(uri)
    assert str(caught.value) == f"{uri}: line 2: unknown type name: 'pgjsonb'"


def test_a_bad_uri_in_a_file_is_reported_with_its_line() -> None:
    with pytest.raises(UserError, match=r"x\.conf:3: uri: it has to begin with zeo://"):
        in_a_file("<zodburi a>\n# a comment\nuri zeo:h\n</zodburi>")


@pytest.mark.usefixtures("other")
def test_a_uri_of_an_unknown_scheme_is_opened_too() -> None:
    unknown = contender("other:anything")
    assert unknown.settings[("uri",)] == "other:anything"
    with Database(unknown.storage) as database:
        assert database.facts.sharing is Sharing.VOLATILE


def test_a_uri_is_refused_with_advice_if_zodburi_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "zodburi", None)
    with pytest.raises(UserError, match=r"pip install 'zodbshootout\[uri\]'"):
        source_of("memory://")
