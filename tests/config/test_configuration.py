from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from zodbshootout.client.database import Database, open_db
from zodbshootout.config.configuration import EMBEDDED, Configuration, parse
from zodbshootout.config.sample_files import samples
from zodbshootout.config.source import Source, read_source
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.errors import UserError
from zodbshootout.model.storage_facts import Durability
from zodbshootout.servers.address import given_names

DOCUMENTED = Path(__file__).parents[2] / "docs" / "examples"
FILESTORAGE = "<filestorage>\npath $scratch/a.fs\n</filestorage>\n"


def parsed(text: str, tmp_path: Path, **names: str) -> Configuration:
    return parse(Source(tmp_path / "x.conf", text), {"scratch": str(tmp_path), **names})


def contenders(text: str, tmp_path: Path, **names: str) -> list[Contender]:
    return contenders_of(parsed(text, tmp_path, **names))


def test_the_embedded_default_has_four_contenders_and_a_server(tmp_path: Path) -> None:
    source = read_source(EMBEDDED)
    assert [section.name for section in source.servers] == ["main"]
    configuration = parsed(source.text, tmp_path, main="127.0.0.1:1")
    names = [contender.name for contender in contenders_of(configuration)]
    assert names == ["filestorage", "zeo", "sqlite", "memory"]
    assert [server.name for server in configuration.servers] == ["main"]
    users = [
        contender.name for contender in contenders_of(configuration) if "main" in contender.servers
    ]
    assert users == ["zeo"]


# runzeo.conf is a configuration of runzeo.
SAMPLES = [path for name, path in samples().items() if name != "runzeo"]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_every_sample_can_be_read(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOOTOUT_PASSWORD", "sesame")
    source = read_source(path)
    with given_names(source, tmp_path) as names:
        all_contenders = contenders_of(parse(source, names))
    assert len(all_contenders) >= 2
    for server in (section.name for section in source.servers):
        assert any(server in {**one.servers, **one.external} for one in all_contenders)


EXAMPLES = [*SAMPLES, *sorted(DOCUMENTED.glob("*.conf"))]


@pytest.mark.parametrize(
    "path",
    [path for path in EXAMPLES if "<sqlite3>" in path.read_text()],
    ids=lambda path: path.name,
)
def test_sqlite_syncs_each_commit_in_every_sample_as_the_others_do(
    path: Path, tmp_path: Path
) -> None:
    source = read_source(path)
    with given_names(source, tmp_path) as names:
        contenders = contenders_of(parse(source, names))
    promises = []
    for contender in contenders:
        if "<sqlite3>" in contender.storage.section:
            with Database(contender.storage) as database:
                promises.append(database.info().promise)
    assert promises
    assert set(promises) == {(Durability.SYNCED, "synchronous FULL")}


ZOPE = """\
%define INSTANCE /site
instancehome $INSTANCE
%import collective.not_installed
effective-user $(NOWHERE_SET)
<environment>
  CHAMELEON_CACHE $(NOWHERE_SET)
</environment>
<eventlog>
  <logfile>
    path $INSTANCE/var/log/instance.log
  </logfile>
</eventlog>
<zodb_db main>
  cache-size 30000
  %import zc.zlibstorage
  <zlibstorage>
    <filestorage>
      path $scratch/Data.fs
    </filestorage>
  </zlibstorage>
  mount-point /
</zodb_db>
<zodb_db temporary>
  <mappingstorage>
  </mappingstorage>
  mount-point /temp_folder
  container-class Products.TemporaryFolder.TemporaryContainer
</zodb_db>
python-check-interval 1000
"""


@pytest.mark.parametrize("included", [False, True])
def test_the_databases_of_a_zope_configuration_are_contenders(
    included: bool, tmp_path: Path
) -> None:
    text = ZOPE
    if included:
        (tmp_path / "databases.conf").write_text(ZOPE)
        text = f"%define parts {tmp_path}\nhttp-port 80\n%include $parts/databases.conf\n"
    main, temporary = contenders_of(parsed(text, tmp_path))
    assert (main.name, main.settings[("cache_size",)]) == ("main", "30000")
    assert main.settings["storage", "base", "path"] == "$scratch/Data.fs"
    assert temporary.name == "temporary"
    assert temporary.settings["storage", "section"] == "MappingStorage"
    assert "mount" not in main.text


def test_the_storages_of_a_zodbconvert_configuration_are_contenders(tmp_path: Path) -> None:
    text = (
        "%import relstorage\n<filestorage source>\npath $scratch/a.fs\n</filestorage>\n"
        "<relstorage destination>\n<sqlite3>\ndata-dir $scratch/b\n</sqlite3>\n</relstorage>\n"
    )
    source, destination = contenders_of(parsed(text, tmp_path))
    assert [source.name, destination.name] == ["source", "destination"]
    assert source.settings["storage", "section"] == "FileStorage"
    assert destination.settings["storage", "adapter", "data_dir"] == "$scratch/b"
    assert destination.section.whole.startswith("%import relstorage\n<zodb destination>\n")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<zodb>\n<mappingstorage/>\n</zodb>\n", "zodb"),
        ("<mappingstorage/>\n", "mappingstorage"),
        ("<zodb_db>\n<mappingstorage/>\nmount-point /\n</zodb_db>\n", "zodb"),
    ],
)
def test_a_section_without_a_name_is_called_after_its_type(
    text: str, name: str, tmp_path: Path
) -> None:
    assert [contender.name for contender in contenders_of(parsed(text, tmp_path))] == [name]


def test_a_definition_that_nothing_uses_may_refer_to_nothing(tmp_path: Path) -> None:
    unused = "%define a $nothing\n%define b $a\n%define c $(NOWHERE_9)\n%define d 1\n%define e $d\n"
    (contender,) = contenders(f"{unused}<zodb a>\ncache-size $e\n{STORAGE}</zodb>", tmp_path)
    assert contender.settings[("cache_size",)] == "1"


def test_relstorage_outside_of_a_database_needs_no_import(tmp_path: Path) -> None:
    text = "<relstorage {}>\n<sqlite3>\ndata-dir $scratch/{}\n</sqlite3>\n</relstorage>\n"
    converted = contenders_of(parsed(f"{text.format('a', 'a')}{text.format('b', 'b')}", tmp_path))
    assert [contender.name for contender in converted] == ["a", "b"]
    assert converted[0].section.whole.startswith("%import relstorage\n<zodb a>\n<relstorage a>")


STORAGE = "<mappingstorage/>\n"


def test_an_included_file_is_named_relative_to_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("etc").mkdir()
    Path("etc/x.conf").write_text(f"%include more.conf\n<zodb a>\n{STORAGE}</zodb>\n")
    included = Path("etc/more.conf")
    included.write_text("<zodb b>\n<mappingstorage>\nx y\n</mappingstorage>\n</zodb>\n")
    with pytest.raises(UserError, match=r"^etc/more\.conf:3: 'x' is not a known key name"):
        parse(read_source(Path("etc/x.conf")), {})
    included.unlink()
    with pytest.raises(
        UserError, match=r"^etc/x\.conf:1: cannot read etc/more\.conf: No such file"
    ):
        parse(read_source(Path("etc/x.conf")), {})


def test_the_imports_of_our_own_section_types_work(tmp_path: Path) -> None:
    text = (
        "%import zodbshootout.recording\n%import zodbshootout.mysql\n<zodb a>\n<recording>\n"
        "path $scratch/r\n<mappingstorage/>\n</recording>\n</zodb>"
    )
    assert [contender.name for contender in contenders(text, tmp_path)] == ["a"]


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such file: nowhere\.conf; .*: zodbshootout sample$"):
        read_source(Path("nowhere.conf"))
    here = r"no such file: nowhere/sample\.conf; to measure the installed sample: zodbshootout sam"
    with pytest.raises(UserError, match=here):
        read_source(Path("nowhere/sample.conf"))
    with pytest.raises(UserError, match=r"cannot read .*: Is a directory"):
        read_source(tmp_path)
    (tmp_path / "nul").write_text("<zodb a>\n\0")
    with pytest.raises(UserError, match=r"nul:2: the NUL character is not allowed; delete it"):
        read_source(tmp_path / "nul")
    (tmp_path / "a binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"cannot read .*: it is not UTF-8 .* file:///.*/a binary"):
        read_source(tmp_path / "a binary")


def storages_of_servers(source: Source) -> list[str]:
    return [server.text.storage for server in parse(source, {}).servers]


def test_the_storage_section_is_extracted_from_a_server_section() -> None:
    source = Source(
        Path("x"),
        "%define a b\n<zeoserver one>\nssl on\n<settings>\nread-only true\n</settings>\n"
        "<demostorage>\n<filestorage base>\npath $a\n</filestorage>\n<mappingstorage changes/>\n"
        "</demostorage>\n</zeoserver>\n",
    )
    (storage,) = storages_of_servers(source)
    assert storage == (
        "<demostorage>\n<filestorage base>\npath b\n</filestorage>\n<mappingstorage changes>\n"
        "</mappingstorage>\n</demostorage>\n"
    )


def test_a_file_has_the_servers_and_variables_of_its_included_files(
    tmp_path: Path,
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "servers.conf").write_text(
        "%include more.conf\n<zeoserver one>\n<mappingstorage/>\n</zeoserver>\n"
    )
    (tmp_path / "shared" / "more.conf").write_text(
        "%define cache $(CACHE)\n<memcachedserver two/>\n"
    )
    path = tmp_path / "x.conf"
    path.write_text(
        "%include shared/servers.conf\n%include nowhere.conf\n<zodb a>\n<mappingstorage/>\n</zodb>"
    )
    source = read_source(path)
    assert source.text == path.read_text()
    assert {section.name for section in source.servers} == {"one", "two"}
    assert source.environment_names == {"CACHE"}


def test_a_file_can_be_included_in_several_sections(tmp_path: Path) -> None:
    (tmp_path / "base.conf").write_text("%define base b\n")
    (tmp_path / "storage.conf").write_text("<mappingstorage/>\n")
    server = "<zeoserver {}>\n%include storage.conf\n</zeoserver>\n"
    (tmp_path / "x.conf").write_text(
        f"%include base.conf\n%define path $base/x\n{server.format('one')}{server.format('two')}"
    )
    source = read_source(tmp_path / "x.conf")
    assert storages_of_servers(source) == ["<mappingstorage>\n</mappingstorage>\n"] * 2


def test_the_names_of_an_included_server_are_defined(tmp_path: Path) -> None:
    (tmp_path / "servers.conf").write_text("<memcachedserver mc>\n</memcachedserver>\n")
    text = "%include servers.conf\n<zodb a>\n<filestorage>\npath $mc_port\n</filestorage>\n</zodb>"
    (tmp_path / "x.conf").write_text(text)
    configuration = parse(read_source(tmp_path / "x.conf"), {"mc_port": "7"})
    assert [server.name for server in configuration.servers] == ["mc"]
    ((_, database),) = configuration.contenders
    assert database.config.storage.config.path == "7"


def test_a_source_knows_the_environment_variables_that_it_refers_to() -> None:
    source = Source(Path("x"), "dsn $(PGSERVICE)\nuser $( WHO )")
    assert source.environment_names == {"PGSERVICE", "WHO"}


def test_settings_do_not_depend_on_comments_and_directories(tmp_path: Path) -> None:
    text = f"<zodb a>\n{FILESTORAGE}</zodb>"
    (tmp_path / "other").mkdir()
    one = contenders(text, tmp_path)[0]
    same = contenders(f"# a comment\n{text}", tmp_path / "other")[0]
    different = contenders(text.replace("<zodb a>", "<zodb a>\ncache-size 7"), tmp_path)[0]
    assert one.settings == same.settings != different.settings


def test_trap_9_a_contender_keeps_its_own_cache_and_pool_sizes(tmp_path: Path) -> None:
    text = f"<zodb a>\ncache-size 77\npool-size 3\n{FILESTORAGE}</zodb>"
    db = open_db(contenders(text, tmp_path)[0].storage)
    assert (db.getCacheSize(), db.getPoolSize()) == (77, 3)
    db.close()


def test_a_dollar_in_the_scratch_path_is_literal(tmp_path: Path) -> None:
    odd = tmp_path / "a $b c"
    odd.mkdir()
    (contender,) = contenders(f"<zodb a>\n{FILESTORAGE}</zodb>", odd)
    with closing(open_db(contender.storage)) as db:
        assert db.storage.getName() == str(odd / "a.fs")
    assert contender.settings["storage", "path"] == "$scratch/a.fs"


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "x.conf"
    path.write_bytes(
        b"\xef\xbb\xbf<zodb a>\r\n<mappingstorage>\r\n</mappingstorage>\r\n</zodb>\r\n"
    )
    configuration = parse(read_source(path), {})
    assert [contender.name for contender in contenders_of(configuration)] == ["a"]
