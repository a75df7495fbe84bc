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
        assert any(server in contender.servers for contender in all_contenders)
    assert not any(
        "sesame" in text for contender in all_contenders for text in contender.settings.values()
    )


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cache-size 5\n", "x.conf:1: 'cache-size' is not a known key name outside of a section"),
        (
            "%define x 1\n<environment a>\n</environment>\n",
            "x.conf:2: an <environment> needs requirements or a python",
        ),
        (
            f"<zodb a>\n{FILESTORAGE}</zodb>\n<zodb a>\n{FILESTORAGE}</zodb>",
            "x.conf:10: two sections are called 'a'; give each a different name",
        ),
        (
            f"<zodb a>\n{FILESTORAGE}cache-sise 5\n</zodb>",
            "x.conf:5: 'cache-sise' is not a known key name in <zodb>; did you mean cache-size",
        ),
        (
            "<zodb a>\n<filestorage>\nzzzz 1\n</filestorage>\n</zodb>",
            "x.conf:3: 'zzzz' is not a known key name in <filestorage>; there are blob-dir, create",
        ),
        (
            "<zodb a>\n<filestorge>\n</filestorge>\n</zodb>",
            "x.conf:2: unknown type name: 'filestorge'; did you mean filestorage",
        ),
        (
            f"%import no.such.package\n<zodb a>\n{FILESTORAGE}</zodb>",
            "x.conf:1: package no.such.package is not installed",
        ),
        (
            f"%import relstorag\n<zodb a>\n{FILESTORAGE}</zodb>",
            "x.conf:1: package relstorag is not installed; did you mean relstorage?",
        ),
        ("<zodb a>\n</zodb>", "x.conf:1: <zodb a> contains no storage, such as <filestorage>"),
        (
            f"<zodb a>\ncache-size many\n{FILESTORAGE}</zodb>",
            "x.conf:2: cache-size: 'many' is not a whole number",
        ),
        (
            f"<zodb a>\ncache-size 30000   # objects\n{FILESTORAGE}</zodb>",
            "x.conf:2: cache-size: '30000 # objects' is not a whole number; a comment needs",
        ),
        (
            f"%define size 5 # objects\n<zodb a>\ncache-size $size\n{FILESTORAGE}</zodb>",
            "x.conf:3: cache-size: '5 # objects' is not a whole number; a comment needs",
        ),
        (
            "<zodb a>\n<zeoclient>\nserver a:1\nwait on # x\n</zeoclient>\n</zodb>",
            "x.conf:4: wait: not a valid boolean value: 'on # x'; a comment needs its own line",
        ),
        (
            f"<zodb a> # main\n{FILESTORAGE}</zodb>",
            "<mappingstorage/>; a comment needs its own line",
        ),
        (
            f"<zodb a>\n{FILESTORAGE}</zodb> # main",
            "x.conf:5: the last line of a section ends with >, as in </zodb>; a comment needs",
        ),
        (
            "%import relstorage\n\n\n<relstorage>\ncache-local-mb 300MB\n</relstorage>\n",
            "x.conf:5: cache-local-mb: '300MB' is not a whole number; write a number of megabytes",
        ),
        (
            f"<zodb a>\ncache-size = 5\n{FILESTORAGE}</zodb>",
            "x.conf:2: cache-size: '= 5' is not a whole number; write it without =",
        ),
        (
            f"<zodb a>\ncache-size 30k\n{FILESTORAGE}</zodb>",
            "x.conf:2: cache-size: '30k' is not a whole number; write a number without a unit",
        ),
        (
            f"<zodb a>\ncache-size ${{buildout:cachesize}}\n{FILESTORAGE}</zodb>",
            "x.conf:2: ${ begins a name, as in ${NAME}; write $$ for a plain $, and replace",
        ),
        (
            "<zodb a>\n<filestorage>\npath a$\n</filestorage>\n</zodb>",
            "x.conf:3: write $$ for a plain $, or a name after $",
        ),
        (
            "<zodb a>\n<zeoclient>\nserver $other\n</zeoclient>\n</zodb>",
            "x.conf:3: $other is not defined; write '%define other VALUE' above it",
        ),
        (
            "%define my_port 7\n<zodb a>\n<zeoclient>\nserver $my_prt\n</zeoclient>\n</zodb>",
            "x.conf:4: $my_prt is not defined; did you mean $my_port?",
        ),
        (
            "<zodb a>\n<filestorage>\npath $scartch\n</filestorage>\n</zodb>",
            "x.conf:3: $scartch is not defined; did you mean $scratch?",
        ),
        (
            "<nonsense>\n</nonsense>\n",
            "mysqlserver, postgresqlserver, settings, zeoclient, zeoserver, zodb, zodburi",
        ),
        (
            "<zodb a>\n<filestorage>\npath /no/such/directory/x.fs\n</filestorage>\n</zodb>",
            "x.conf:3: path: The directory named as part of the path /no/such/directory/x.fs",
        ),
        (
            "<zodb a>\n<zeoclient>\nserver $(NOWHERE_SET)\n</zeoclient>\n</zodb>",
            "x.conf:3: the environment variable NOWHERE_SET is not set; set it: export NOWHERE_SET",
        ),
        (
            "<zodb a>\n<relstorage>\n</relstorage>\n</zodb>",
            "x.conf:2: unknown type name: 'relstorage'; write '%import relstorage' above it",
        ),
        ("<zeoserver>\n<mappingstorage/>\n</zeoserver>", "as in <zeoserver NAME>"),
        ("<zodb a>\n", "x.conf:1: <zodb a> is not closed; write </zodb> at its end"),
        ("\n%include nowhere.conf\n", "x.conf:2: cannot read /"),
        ("%include nowhere.conf\n", "/nowhere.conf: No such file or directory"),
        (
            "instancehome x\n<zodb_db main>\ncache-sise 5\n</zodb_db>\n",
            "x.conf:3: 'cache-sise' is not a known key name in <zodb>; did you mean cache-size",
        ),
        (
            "%import collective.not_installed\n<zodb_db main>\ncache-sise 5\n</zodb_db>\n",
            "x.conf:3: 'cache-sise' is not a known key name",
        ),
        (
            "%import not_installed\n<zodb_db main>\n<not-known>\n</not-known>\n</zodb_db>\n",
            "x.conf:1: package not_installed is not installed",
        ),
        (
            "<zodb_db main>\nmount-point /\n</zodb_db>\n",
            "x.conf:1: <zodb main> contains no storage",
        ),
        ("<zodb a>\nmount-point /\n</zodb>\n", "x.conf:2: 'mount-point' is not a known key name"),
        ("instancehome x\n<zodb main>\n</zodb>\n", "x.conf:1: 'instancehome' is not a known key"),
        ("<zeo>\naddress 8100\n</zeo>\n", "x.conf:1: this is the configuration of a ZEO server"),
        (
            "<mappingstorage>\n</mappingstorage>\n<mappingstorage>\n</mappingstorage>\n",
            "two sections are called 'mappingstorage'",
        ),
    ],
)
def test_an_error_is_reported_in_one_line_with_its_place(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        parsed(text, tmp_path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


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
    assert (main.name, main.settings["cache_size"]) == ("main", "30000")
    assert main.settings["storage.base.path"] == "$scratch/Data.fs"
    assert temporary.name == "temporary"
    assert temporary.settings["storage.section"] == "MappingStorage"
    assert "mount" not in main.text


def test_the_storages_of_a_zodbconvert_configuration_are_contenders(tmp_path: Path) -> None:
    text = (
        "%import relstorage\n<filestorage source>\npath $scratch/a.fs\n</filestorage>\n"
        "<relstorage destination>\n<sqlite3>\ndata-dir $scratch/b\n</sqlite3>\n</relstorage>\n"
    )
    source, destination = contenders_of(parsed(text, tmp_path))
    assert [source.name, destination.name] == ["source", "destination"]
    assert source.settings["storage.section"] == "FileStorage"
    assert destination.settings["storage.adapter.data_dir"] == "$scratch/b"
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


PG = (
    "%import relstorage\n<zodb a>\n<relstorage>\n<postgresql>\n{}\n"
    "</postgresql>\n</relstorage>\n</zodb>\n"
)
REMEDY = "invalid value; write a literal $ as $$"


@pytest.mark.parametrize("password", ["abc$topsecret", "abc${topsecret", "abc$ 9topsecret", "abc$"])
@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("dsn dbname='z' password='{}' host=$scratch", "x.conf:5: dsn"),
        ("dsn host=$scratch password={}", "x.conf:5: dsn"),
        ("dsn postgresql://u:{}@h/db", "x.conf:5: dsn"),
        ("dsn postgresql://h/db?user=u&password={}", "x.conf:5: dsn"),
        ("%define my_password {}\ndsn $my_password", "x.conf:5: %define my_password"),
        (
            "%define connection dbname=z password='{}'\ndsn $connection",
            "x.conf:5: %define connection",
        ),
        ("%define mine {}\ndsn dbname=z password='$mine'", "x.conf:5: %define mine"),
        ("%include rest.conf", "rest.conf:2: dsn"),
    ],
)
def test_no_part_of_a_secret_is_in_an_error_about_a_dollar(
    line: str, place: str, password: str, tmp_path: Path
) -> None:
    (tmp_path / "rest.conf").write_text(f"\ndsn dbname=z password='{password}'\n")
    with pytest.raises(UserError) as caught:
        parsed(PG.format(line.format(password)), tmp_path)
    assert str(caught.value) == f"{tmp_path}/{place}: {REMEDY}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("dsn host=$pg_hots password='x$pg_password'", f"{REMEDY}; did you mean the name pg_host?"),
        ("dsn host=$pg_host password=$pg_passwrd", f"{REMEDY}; did you mean the name pg_password?"),
        ("dsn host=$(HOST_9) password=geheim", "variable HOST_9 is not set; set it: export HOST_9"),
        ("dsn host=h password='$(PW_9)'", "the environment variable PW_9 is not set"),
        ("dsn postgres://u:$(PASSWORD_9)@h:1/x", "the environment variable PASSWORD_9 is not set"),
        ("dsn host=h password='ab$(PW_9)'", f"{REMEDY}, and set every environment variable in it"),
        ("dsn host=$here dbname=x", "$here is not defined; write '%define here VALUE' above it"),
        ("driver ${here", "x.conf:5: ${ begins a name, as in ${NAME}; write $$ for a plain $"),
        ("passwd x", "x.conf:5: 'passwd' is not a known key name in <postgresql>"),
    ],
)
def test_an_error_beside_a_secret_says_what_to_type(
    line: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        parsed(PG.format(line), tmp_path, pg_host="h", pg_password="0815")
    assert message in str(caught.value)


def test_no_part_of_a_secret_is_in_an_error_of_the_file_that_a_uri_names(tmp_path: Path) -> None:
    (tmp_path / "db.conf").write_text(
        "<zodb>\n<zeoclient>\nserver h:1\npassword abc$topsecret\n</zeoclient>\n</zodb>\n"
    )
    with pytest.raises(UserError) as caught:
        parsed(f"<zodburi a>\nuri zconfig://{tmp_path}/db.conf\n</zodburi>\n", tmp_path)
    assert "topsecret" not in str(caught.value)
    assert "line 4: write a literal $ in a value as $$" in str(caught.value)


def test_all_environment_variables_that_are_not_set_are_named(tmp_path: Path) -> None:
    text = (
        "%define home $(NOT_NEEDED)\n%define size $(SIZE_9)\ninstancehome $home\n<zodb_db a>\n"
        "cache-size $size\npool-size $(POOL_9)\n<mappingstorage/>\n</zodb_db>\n"
    )
    with pytest.raises(UserError) as caught:
        parsed(text, tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/x.conf:2: these environment variables are not set: SIZE_9, POOL_9; set them: "
        "export SIZE_9=... POOL_9=..."
    )


def test_a_definition_that_nothing_uses_may_refer_to_nothing(tmp_path: Path) -> None:
    unused = "%define a $nothing\n%define b $a\n%define c $(NOWHERE_9)\n%define d 1\n%define e $d\n"
    text = f"{unused}{{}}<zodb main>\ncache-size $e\n<mappingstorage/>\n</zodb>\n"
    (contender,) = contenders_of(parsed(text.format(""), tmp_path))
    assert contender.settings["cache_size"] == "1"
    with pytest.raises(UserError, match=r"x\.conf:1: \$nothing is not defined"):
        parsed(text.replace("$e\n", "$b\n").format(""), tmp_path)
    with pytest.raises(UserError, match=r"x\.conf:6: .*\$\{ begins a name"):
        parsed(text.format("%define wrong ${}\n"), tmp_path)


def test_relstorage_outside_of_a_database_needs_no_import(tmp_path: Path) -> None:
    text = "<relstorage {}>\n<sqlite3>\ndata-dir $scratch/{}\n</sqlite3>\n</relstorage>\n"
    converted = contenders_of(parsed(f"{text.format('a', 'a')}{text.format('b', 'b')}", tmp_path))
    assert [contender.name for contender in converted] == ["a", "b"]
    assert converted[0].section.whole.startswith("%import relstorage\n<zodb a>\n<relstorage a>")


STORAGE = "<mappingstorage/>\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"<zodb a>\n{STORAGE}<zodb b>\n{STORAGE}</zodb>\n</zodb>\n",
            "3: <zodb b> is not allowed in <zodb a>, which begins on line 1; write </zodb> above",
        ),
        (
            f"<zodb a>\n<filestorage>\npath x\n</zodb>\n<zodb b>\n{STORAGE}</zodb>\n",
            "4: </zodb> cannot close <filestorage>, which begins on line 2; write </filestorage> ",
        ),
        (f"<zodb a>\n{STORAGE}</filestorage>\n</zodb>", "3: </filestorage> closes nothing: no"),
        (
            "<zodb a>\n<filestorage>\npath x\n",
            "2: <filestorage> is not closed; write </filestorage>",
        ),
        (
            "<zodb a>\n<filestorage>\n",
            "2: <filestorage> is not closed; write </filestorage> and </z",
        ),
        (
            f"<zodb a>\n{STORAGE}\n<filestorage>\npath x\n</filestorage>\n</zodb>\n",
            "4: <filestorage> is a second storage in <zodb a>, which takes one; give it its",
        ),
        (
            f"%import zc.zlibstorage\n<zlibstorage>\n{STORAGE * 2}</zlibstorage>\n",
            "4: <mappingstorage> is a second storage in <zlibstorage>, which takes one; delete one",
        ),
        (
            "%import zc.zlibstorage\n<zodb a>\n<zlibstorage>\n</zlibstorage>\n</zodb>",
            "3: <zlibstorage> contains no storage, such as <filestorage>",
        ),
        ("<filestorage>\nblob-dir x\n\n</filestorage>\n", "1: <filestorage> needs path"),
        (
            "<mysql>\ndb x\n</mysql>\n",
            "1: <mysql> is not allowed outside of a section; put it into <relstorage>",
        ),
        (
            "<relstorage x>\n</relstorage>\n",
            "1: <relstorage x> contains no database, such as <postgresql>",
        ),
        (
            f"<zodb a b>\n{STORAGE}</zodb>\n",
            "1: a section begins with its type, and perhaps a name",
        ),
        ("%import relstorage x\n", "1: %import takes one package; write a line for each:"),
        ("%define 1 2\n", "1: '1' is not a name; begin with a letter, and use letters, digits, _"),
        (f"{STORAGE}%import 'a\n", "2: package 'a is not installed"),
        ("%include a # b\n", "1: # cannot be part of a file's name; a comment needs its own"),
        (f"<zodb a>\npool-size $\n{STORAGE}</zodb>", "2: write $$ for a plain $, or a name"),
        (f"<zodb a>\npool-size ${{}}\n{STORAGE}</zodb>", "2: ${ begins a name, as in ${NAME}"),
        (f"<zodb a>\npool-size $(A\n{STORAGE}</zodb>", "2: $( begins the name of an environment"),
        (f"<zodb a>\n[main]\n{STORAGE}</zodb>", "2: '[main]' cannot be the name of a key; a line"),
        (f"<zodb_db a>\n{STORAGE}</zodb_db>\n[main]\n", "4: this is not a line of a ZConfig file"),
        (f"<zodb_db a>\n{STORAGE}</zodb_db>\n- a: b\n", "4: this is not a line of a ZConfig file"),
        (f"<zodb a>\npool-size 1\npool-size 2\n{STORAGE}</zodb>", "3: pool-size occurs twice"),
        (f"<zodb a>\ncache-size -1\n{STORAGE}</zodb>", "2: cache-size: -1 is negative"),
        (f"<zodb a>\ncache-size {9**30}\n{STORAGE}</zodb>", f"2: cache-size: {9**30} is too large"),
        ("<filestorage>\npath\n</filestorage>\n", "2: path: name the file of the database"),
        (
            "<filestorage>\npath x\nread-only maybe\n</filestorage>\n",
            "3: read-only: not a valid boolean value: 'maybe'; write true or false",
        ),
        ("%import zc.\n", "1: no section types are in 'zc.'; %import takes a package with"),
        ("%import pyperf\n", "1: no section types are in 'pyperf'; %import takes a package with"),
        ("%imprt pyperf\n", "1: unknown directive: 'imprt'; there are %define, %import and %incl"),
        (f"<zodb a>\ncache-size '1\n{STORAGE}</zodb>", '2: cache-size: "\'1" is not a whole numb'),
    ],
)
def test_a_mistake_of_structure_is_reported_with_its_section(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        contenders_of(parsed(text, tmp_path))
    assert f"x.conf:{message}" in str(caught.value)


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# Paste\n[app:main]\nuse = egg:x\n", "2: this is an ini file without a zodbconn.uri"),
        (
            "[app:main]\n# db\nzodbconn.uri = zconfig://%(here)s/zodb.conf\n",
            "3: this is an ini file; measure its zodbconn.uri: zodbshootout 'zconfig://{here}/zodb.conf'",
        ),
        (
            "[app:main]\nzodbconn.uri.a = postgres://u:geheim@h:5/x\n",
            "2: this is an ini file; measure its zodbconn.uri.a: zodbshootout 'postgres://u:***@h:5/x'",
        ),
        (
            "[app:main]\nzodb_uri = file:///srv/Data.fs\n",
            "2: this is an ini file; measure its zodb_uri: zodbshootout 'file:///srv/Data.fs'",
        ),
        (
            "; buildout\n[buildout]\nzope-conf = <zodb a>\n",
            "2: this is a buildout configuration; use the zope.conf that it generates",
        ),
        ("services:\n  db:\n    image: x\n", "1: this is YAML; use the ZConfig file generated"),
        ("---\na: 1\n", "1: this is YAML"),
        ('{{"a": 1}}\n', "1: this is JSON; use the application's"),
        ('{{"benchmarks": [\n', "1: these are results; show them: zodbshootout show {here}/x.conf"),
        ('<?xml version="1.0"?>\n<a/>\n', "1: this is not a ZConfig file with a"),
        ("<!DOCTYPE html>\n", "1: this is not a ZConfig file with a"),
        ("DSN=x\n", "1: this is not a ZConfig file with a"),
        ("ZODB==6\n", "1: this is not a ZConfig file with a"),
        (
            "%define INSTANCE x\n<eventlog>\n</eventlog>\n<zeo>\naddress 8100\n</zeo>\n",
            "4: this is the configuration of a ZEO server",
        ),
        (
            "%define X y\ninstancehome $X\nhttp-port 80\n",
            "2: this is Zope's configuration, but without a <zodb_db NAME>; use the file",
        ),
    ],
)
def test_a_file_of_another_format_is_named_as_such(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        parsed(text.format() if "{{" in text else text, tmp_path)
    assert f"x.conf:{message.format(here=tmp_path)}" in str(caught.value)


@pytest.mark.parametrize(
    ("section", "package"),
    [
        ("recording", "zodbshootout.recording"),
        ("postgresql", "relstorage"),
        ("mysql-or-mariadb", "zodbshootout.mysql"),
        ("newt-with-text-index", "zodbshootout.newt"),
        ("temporarystorage", "tempstorage"),
        ("before", "zc.beforestorage"),
        ("encryptingstorage", "cipher.encryptingstorage"),
        ("pgjsonb", "zodb_pgjsonb"),
        ("newtdb", "newt.db"),
        ("s3blobstorage", "zodb_s3blobs"),
        ("NEOStorage", "neo.client"),
    ],
)
def test_the_import_of_a_known_section_type_is_named(
    section: str, package: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        parsed(f"<zodb a>\n<{section}>\n</{section}>\n</zodb>", tmp_path)
    where = f"{tmp_path / 'x.conf'}:2"
    assert str(caught.value) == (
        f"{where}: unknown type name: '{section.lower()}'; write '%import {package}' above it"
    )


def test_the_imports_of_our_own_section_types_work(tmp_path: Path) -> None:
    text = (
        "%import zodbshootout.recording\n%import zodbshootout.mysql\n<zodb a>\n<recording>\n"
        "path $scratch/r\n<mappingstorage/>\n</recording>\n</zodb>"
    )
    assert [contender.name for contender in contenders(text, tmp_path)] == ["a"]


@pytest.mark.parametrize(
    ("package", "advice"),
    [
        ("neo.client", "; install it: pip install neoppod"),
        ("zodb_pgjsonb", "; install it: pip install zodb-pgjsonb"),
        ("cipher.encryptingstorage", "; install it: pip install cipher.encryptingstorage"),
        ("zc.beforstorage", "; did you mean zc.beforestorage?"),
        ("nowhere", ""),
    ],
)
def test_a_package_that_is_not_installed_is_reported_with_its_place(
    package: str, advice: str, tmp_path: Path
) -> None:
    (tmp_path / "more.conf").write_text(f"# imports\n\n%import {package}\n")
    with pytest.raises(UserError) as caught:
        parsed("%include more.conf\n<zodb a>\n<mappingstorage/>\n</zodb>", tmp_path)
    where = f"{tmp_path / 'more.conf'}:3"
    assert str(caught.value) == f"{where}: package {package} is not installed{advice}"


def test_an_import_of_a_module_is_reported_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"x\.conf:2: no section types are in 'os'; %import"):
        parsed(f"\n%import os\n<zodb a>\n{FILESTORAGE}</zodb>", tmp_path)


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


def test_an_error_in_an_included_file_is_reported_with_its_place_there(tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text("<zodb a>\n<filestorage>\npaht x\n</filestorage>\n</zodb>")
    (tmp_path / "x.conf").write_text("\n\n%include more.conf\n")
    with pytest.raises(UserError) as caught:
        parse(read_source(tmp_path / "x.conf"), {"mc": "1", "mc_port": "2"})
    assert str(caught.value) == (
        f"{tmp_path / 'more.conf'}:3: 'paht' is not a known key name in <filestorage>; "
        "did you mean path?"
    )


def test_the_names_of_an_included_server_are_defined(tmp_path: Path) -> None:
    (tmp_path / "servers.conf").write_text("<memcachedserver mc>\n</memcachedserver>\n")
    text = "%include servers.conf\n<zodb a>\n<filestorage>\npath $mc_port\n</filestorage>\n</zodb>"
    (tmp_path / "x.conf").write_text(text)
    configuration = parse(read_source(tmp_path / "x.conf"), {"mc_port": "7"})
    assert [server.name for server in configuration.servers] == ["mc"]
    ((_, database),) = configuration.contenders
    assert database.config.storage.config.path == "7"


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text("%include x.conf\n")
    with pytest.raises(UserError, match=r"x\.conf:1: the file includes itself"):
        parse(read_source(tmp_path / "x.conf"), {})


def test_a_source_knows_the_environment_variables_that_it_refers_to() -> None:
    source = Source(Path("x"), "dsn $(PGSERVICE)\nuser $( WHO )")
    assert source.environment_names == {"PGSERVICE", "WHO"}


def test_the_settings_do_not_depend_on_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"<zodb a>\ncache-size 5000\n{FILESTORAGE}</zodb>"
    (before,) = contenders(text, tmp_path)
    monkeypatch.setenv("SOME_TOKEN", "5000")
    (after,) = contenders(text, tmp_path)
    assert after.fingerprint() == before.fingerprint()
    assert after.settings["cache_size"] == "5000"


def test_no_password_is_in_the_settings(tmp_path: Path) -> None:
    with_passwords = contenders(
        "%import relstorage\n<zodb pg>\n<relstorage>\n<postgresql>\n"
        "dsn dbname='x' user='u' password='geheim' host='h'\n</postgresql>\n</relstorage>\n</zodb>"
        "\n<zodb my>\n<relstorage>\n<mysql>\ndb x\nuser u\npasswd geheim\n</mysql>\n"
        "</relstorage>\n</zodb>",
        tmp_path,
    )
    for contender in with_passwords:
        text = repr(contender.settings)
        assert "geheim" not in text
        assert "'u'" in text
    assert with_passwords[0].settings["storage.adapter.dsn"] == (
        "dbname='x' user='u' password='***' host='h'"
    )


def test_a_fingerprint_depends_on_the_settings_but_not_on_the_run(tmp_path: Path) -> None:
    text = f"<zodb a>\n{FILESTORAGE}</zodb>"
    (tmp_path / "other").mkdir()
    one = contenders(text, tmp_path)[0]
    same = contenders(f"# a comment\n{text}", tmp_path / "other")[0]
    different = contenders(text.replace("<zodb a>", "<zodb a>\ncache-size 7"), tmp_path)[0]
    assert one.fingerprint() == same.fingerprint() != different.fingerprint()


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
    assert contender.settings["storage.path"] == "$scratch/a.fs"


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "x.conf"
    path.write_bytes(
        b"\xef\xbb\xbf<zodb a>\r\n<mappingstorage>\r\n</mappingstorage>\r\n</zodb>\r\n"
    )
    configuration = parse(read_source(path), {})
    assert [contender.name for contender in contenders_of(configuration)] == ["a"]
