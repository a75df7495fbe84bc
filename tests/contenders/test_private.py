"""``--private``: the settings of a configuration with other data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from zodbshootout.config.configuration import Configuration, parse
from zodbshootout.config.source import Source
from zodbshootout.config.tree import Section, read_tree
from zodbshootout.contenders.contender import contenders_of
from zodbshootout.contenders.private import with_private_data
from zodbshootout.errors import UserError
from zodbshootout.servers.address import given_names

Change = Callable[..., list[Section]]
RELSTORAGE = (
    "%import relstorage\n<zodb {name}>\n<relstorage>\n{more}\n{adapter}\n</relstorage>\n</zodb>\n"
)
POSTGRESQL = "<postgresql>\ndsn {dsn}\n</postgresql>"
ZEO = "<zodb {name}>\n<zeoclient>\nserver {server}\n{more}\n</zeoclient>\n</zodb>\n"


def changed(text: str, *only: str) -> list[Section]:
    """Return the outermost sections of a configuration with private data."""
    return list(with_private_data(read_tree(text, Path("x.conf")), only).root.sections)


def values(section: Section) -> dict[str, str]:
    return {key.name: key.value for inner in section.walk() for key in inner.keys}


def read(text: str, directory: Path) -> Configuration:
    source = Source(directory / "x.conf", text, change=with_private_data)
    with given_names(source, directory) as names:
        return parse(source, names)


def test_files_become_files_of_the_run_and_all_else_stays() -> None:
    (section,) = changed(
        "<zodb_db main>\ncache-size 30000\n<filestorage>\npath /srv/var/Data.fs\n"
        "blob-dir /srv/var/blobs\npack-gc false\n</filestorage>\nmount-point /\n</zodb_db>\n"
    )
    assert values(section) == {
        "cache-size": "30000",
        "path": "${scratch}/private-1-Data.fs",
        "blob-dir": "${scratch}/private-2-blobs",
        "pack-gc": "false",
        "mount-point": "/",
    }


def test_one_path_stays_one_and_others_stay_others() -> None:
    text = "<zodb {}>\n<filestorage>\npath {}\n</filestorage>\n</zodb>\n"
    places = [("a", "/srv/Data.fs"), ("b", "/mnt/Data.fs"), ("c", "/srv/Data.fs")]
    sections = changed("".join(text.format(*place) for place in places))
    paths = [values(section)["path"] for section in sections]
    assert paths[0] == paths[2] != paths[1]


def test_what_is_the_runs_anyway_stays() -> None:
    text = (
        "<zodb a>\n<filestorage>\npath $scratch/x.fs\n</filestorage>\n</zodb>\n"
        "<zeoserver main>\n<filestorage>\npath $scratch/y.fs\n</filestorage>\n</zeoserver>\n"
        + ZEO.format(name="b", server="$main", more="storage 1")
        + RELSTORAGE.format(
            name="c", more="cache-servers $mc", adapter=POSTGRESQL.format(dsn="port='$pg_port'")
        )
        + "<postgresqlserver pg>\n</postgresqlserver>\n<memcachedserver mc>\n</memcachedserver>\n"
    )
    assert [section.whole for section in changed(text)] == [
        section.whole for section in read_tree(text, Path("x.conf")).root.sections
    ]


OWN = (
    "<postgresqlserver pg>\n</postgresqlserver>\n"
    "<zeoserver main>\n<mappingstorage/>\n</zeoserver>\n"
)


@pytest.mark.parametrize(
    ("dsn", "stays"),
    [
        ("host='$pg_host' port=$pg_port dbname=x user=u password='$pg_password'", True),
        ("host=localhost port='$pg_port' connect_timeout=5", True),
        ("port='$pg_port'", True),
        ("host=db.example.com port='$pg_port' password='$pg_password'", False),
        ("host=db.example.com password='$pg_password'", False),
        ("port='$pg_port' hostaddr=10.0.0.1", False),
        ("port='$pg_port' service=production", False),
        ("postgresql://u@db.example.com:$pg_port/x", False),
        ("postgresql://u@$pg_host:$pg_port/x?host=db.example.com", False),
        ("postgresql://u:$pg_password@$pg_host:$pg_port/x", True),
    ],
)
def test_a_dsn_is_the_runs_only_if_its_whole_address_is(dsn: str, stays: bool) -> None:
    text = RELSTORAGE.format(name="a", more="", adapter=POSTGRESQL.format(dsn=dsn))
    contender = changed(OWN + text)[2]
    (original,) = read_tree(text, Path("x.conf")).root.sections
    assert (values(contender)["dsn"] == values(original)["dsn"]) is stays


@pytest.mark.parametrize(
    ("servers", "stays"),
    [
        ("$main", True),
        ("localhost:$main_port", True),
        ("db.example.com:$main_port", False),
        ("$main\nserver db.example.com:8100", False),
        ("db.example.com:8100", False),
    ],
)
def test_a_zeo_client_is_the_runs_only_if_all_of_its_servers_are(servers: str, stays: bool) -> None:
    contender = changed(OWN + ZEO.format(name="a", server=servers, more=""))[2]
    assert ("private" not in contender.whole) is stays


def test_a_place_in_a_variable_is_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "/srv/x")
    with pytest.raises(UserError, match="packer of <filestorage> may refer to"):
        changed("<filestorage>\npath x\npacker $(PLACE)\n</filestorage>\n")
    (section,) = changed("<filestorage>\npath $scratch$(PLACE)\n</filestorage>\n")
    assert values(section)["path"] == "${scratch}/private-1-scratchPLACE"


def test_a_path_that_leaves_the_scratch_directory_is_another_one() -> None:
    (section,) = changed("<filestorage>\npath $scratch/../../srv/Data.fs\n</filestorage>\n")
    assert values(section)["path"] == "${scratch}/private-1-Data.fs"


def test_a_zeo_server_has_a_private_one_with_its_storages() -> None:
    text = "".join(
        ZEO.format(name=name, server=server, more=f"{more}password geheim")
        for name, server, more in [
            ("a", "db:8100", ""), ("b", "db:8100", "storage Catalog\n"),
            ("c", "other:8100", ""), ("d", "db:8100", "storage 1\n"),
        ]
    )  # fmt: skip
    *clients, first, second = changed(text)
    assert [tuple(values(client).values()) for client in clients] == [
        ("${private_zeo_1}", "1"), ("${private_zeo_1}", "catalog"),
        ("${private_zeo_2}", "1"), ("${private_zeo_1}", "1"),
    ]  # fmt: skip
    assert [(server.type, server.name) for server in (first, second)] == [
        ("zeoserver", "private_zeo_1"), ("zeoserver", "private_zeo_2"),
    ]  # fmt: skip
    assert [storage.name for storage in first.sections] == ["1", "catalog"]
    assert values(second) == {
        "path": "${scratch}/private_zeo_2-1.fs", "blob-dir": "${scratch}/private_zeo_2-1.blobs",
    }  # fmt: skip


def test_a_variable_may_name_the_storage_of_a_zeo_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEO_STORAGE", "Catalog")
    client, server = changed(ZEO.format(name="a", server="db:8100", more="storage $(ZEO_STORAGE)"))
    assert values(client)["storage"] == "catalog"
    assert [storage.name for storage in server.sections] == ["catalog"]


def test_a_zeo_client_shares_the_blobs_of_its_server() -> None:
    more = "shared-blob-dir on\nblob-dir /srv/blobs"
    client, server = changed(ZEO.format(name="a", server="/srv/zeo.sock", more=more))
    assert values(client)["blob-dir"] == values(server)["blob-dir"]


def test_the_caches_of_zeo_clients_stay_apart_and_below_scratch() -> None:
    places = [
        "client c\nvar /srv/var",
        "client c",
        "client c\nvar /srv/x",
        "client c\nvar /srv/var",
    ]
    sections = changed(
        "".join(
            ZEO.format(name=f"z{number}", server="db:8100", more=more)
            for number, more in enumerate(places)
        )
    )
    assert [values(client)["var"] for client in sections[:4]] == ["${scratch}"] * 4
    names = [values(client)["client"] for client in sections[:4]]
    assert names[0] == names[3]
    assert len(set(names)) == 3


def test_an_encrypted_client_has_an_encrypted_server(tmp_path: Path) -> None:
    text = (
        "%import ZEO\n<zodb a>\n<clientstorage>\nserver db:8100\n<ssl>\ncertificate /etc/c.pem\n"
        "authenticate /etc/a.pem\ncheck-hostname false\n</ssl>\n</clientstorage>\n</zodb>\n"
    )
    client, server = changed(text)
    assert values(server)["ssl"] == "true"
    assert values(client)["check-hostname"] == "false"
    assert not any("/etc" in value for value in values(client).values())
    (contender,) = contenders_of(read(text, tmp_path))
    assert set(contender.servers) == {"private_zeo_1"}


@pytest.mark.parametrize(
    ("dsn", "kept"),
    [
        ("dbname=plone host=db password=geheim connect_timeout=5", " connect_timeout='5'"),
        ("dbname='a b' user='u' application_name='it\\'s'", " application_name='it\\'s'"),
        (
            "postgresql://u:geheim@db/plone?connect_timeout=7&sslmode=require",
            " connect_timeout='7' sslmode='require'",
        ),
        (
            "dbname=plone sslmode=verify-full sslrootcert=/etc/ca.pem sslcert=/etc/c.pem",
            " sslrootcert='${private_postgresql_authority}' sslmode='verify-full'",
        ),
        ("dbname=plone sslmode=disable", " sslmode='disable'"),
        ("service=production passfile=/etc/pgpass sslkey=/etc/k", ""),
        ("", ""),
    ],
)
def test_a_dsn_keeps_only_what_is_about_the_connection(dsn: str, kept: str) -> None:
    text = RELSTORAGE.format(name="a", more="", adapter=POSTGRESQL.format(dsn=dsn))
    contender, server = changed(text)
    assert values(contender)["dsn"] == (
        "host='${private_postgresql_host}' port='${private_postgresql_port}' dbname='private_1' "
        f"user='zodbshootout' password='${{private_postgresql_password}}'{kept}"
    )
    encrypted = {"ssl": "true"} if "require" in dsn or "verify" in dsn else {}
    assert values(server) == {"database": "private_1", **encrypted}


def test_each_database_of_postgresql_is_one_of_the_private_server() -> None:
    text = "".join(
        RELSTORAGE.format(name=name, more="keep-history false", adapter=POSTGRESQL.format(dsn=dsn))
        for name, dsn in [("a", "dbname=x"), ("b", "dbname=y"), ("c", "dbname=x")]
    )
    *contenders, server = changed(text)
    names = [values(contender)["dsn"].split("dbname=")[1].split()[0] for contender in contenders]
    assert names == ["'private_1'", "'private_2'", "'private_1'"]
    assert [key.value for key in server.keys] == ["private_1", "private_2"]


def test_pgjsonb_keeps_its_options_and_no_bucket_or_directory_of_the_original() -> None:
    contender, server = changed(
        "%import zodb_pgjsonb\n<zodb a>\n<pgjsonb>\ndsn dbname=plone password=geheim\n"
        "history-preserving true\npool-max-size 20\nblob-temp-dir /srv/blobs\n"
        "s3-bucket-name plone\ns3-endpoint-url https://s3\ns3-secret-key geheim\n"
        "</pgjsonb>\n</zodb>\n"
    )
    dsn = values(contender).pop("dsn")
    assert "dbname='private_1'" in dsn
    assert "geheim" not in dsn
    assert values(contender) == {
        "history-preserving": "true",
        "pool-max-size": "20",
        "dsn": dsn,
    }
    assert (server.type, values(server)) == ("postgresqlserver", {"database": "private_1"})


def test_mysql_becomes_the_section_that_mariadb_needs_too() -> None:
    adapter = (
        "<mysql>\ndriver MySQL Connector/Python\nunix_socket /run/mysqld.sock\ndb plone\n"
        "read_default_file /etc/my.cnf\nconnect_timeout 9\n</mysql>"
    )
    contender, server = changed(RELSTORAGE.format(name="a", more="", adapter=adapter))
    assert values(contender) == {
        "driver": "MySQL Connector/Python",
        "connect_timeout": "9",
        "host": "${private_mysql_host}",
        "port": "${private_mysql_port}",
        "db": "private_1",
        "user": "zodbshootout",
        "passwd": "${private_mysql_password}",
    }
    assert (server.type, values(server)) == ("mysqlserver", {"database": "private_1"})
    assert contender.whole.index("%import zodbshootout.mysql") < contender.whole.index("<mysql-or")


def test_relstorage_keeps_its_options_and_no_replicas_or_memcached() -> None:
    more = (
        "keep-history false\nreplica-conf /etc/replicas\nro-replica-conf /etc/ro\n"
        "cache-servers cache:11211\ncache-local-dir /srv/cache\ncreate-schema false"
    )
    adapter = "<sqlite3>\ndata-dir /srv/sqlite\n<pragmas>\nsynchronous off\n</pragmas>\n</sqlite3>"
    contender, memcached = changed(RELSTORAGE.format(name="a", more=more, adapter=adapter))
    assert values(contender) == {
        "keep-history": "false",
        "cache-local-dir": "${scratch}/private-1-cache",
        "cache-servers": "${private_memcached}",
        "data-dir": "${scratch}/private-2-sqlite",
        "synchronous": "off",
    }
    assert (memcached.type, memcached.name) == ("memcachedserver", "private_memcached")


def test_wrappers_keep_their_order() -> None:
    (section,) = changed(
        "%import zc.zlibstorage\n<zodb a>\n<zlibstorage>\n<demostorage>\n<filestorage base>\n"
        "path /srv/a.fs\n</filestorage>\n<blobstorage changes>\nblob-dir /srv/b\n"
        "<mappingstorage/>\n</blobstorage>\n</demostorage>\n</zlibstorage>\n</zodb>\n"
    )
    types = [(inner.type, inner.name) for inner in section.walk()]
    assert types == [
        ("zodb", "a"), ("zlibstorage", ""), ("demostorage", ""), ("filestorage", "base"),
        ("blobstorage", "changes"), ("mappingstorage", ""),
    ]  # fmt: skip
    assert "/srv" not in section.whole


def test_a_private_server_of_the_file_keeps_no_directory_and_no_data_of_others() -> None:
    zeo, postgresql = changed(
        "<zeoserver main>\n<settings>\nread-only true\n</settings>\n<filestorage>\n"
        "path /srv/Data.fs\n</filestorage>\n</zeoserver>\n"
        "<postgresqlserver pg>\ndirectory /srv/pg\nprograms /usr/lib\n</postgresqlserver>\n"
    )
    assert values(zeo) == {"read-only": "true", "path": "${scratch}/private-1-Data.fs"}
    assert values(postgresql) == {"programs": "/usr/lib"}


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        (
            "<oracle>\n</oracle>",
            "x.conf:4: --private: it is not known how to give <oracle> new data",
        ),
        (
            "<postgresql>\nsslrootdir /etc/x\n</postgresql>",
            "x.conf:5: --private: sslrootdir of <postgresql> may refer to the original's data",
        ),
    ],
)
def test_what_cannot_be_replaced_is_refused_by_name(section: str, reason: str) -> None:
    text = RELSTORAGE.format(name="a", more="", adapter=section).replace("\n\n", "\n")
    more = "<zodb b>\n<mappingstorage/>\n</zodb>\n"
    with pytest.raises(UserError) as error:
        changed(text + more)
    assert reason in str(error.value)
    assert str(error.value).endswith("; choose others with --only")
    with pytest.raises(UserError):
        changed(text + more, "b,a")
    assert [section.name for section in changed(text + more, "b")] == ["b"]


@pytest.mark.parametrize("uri", ["zeo://db", "file:///srv/Data.fs", "zconfig:///etc/zodb.conf"])
def test_a_uri_is_refused(uri: str) -> None:
    with pytest.raises(UserError, match=r"--private: a URI names its data; write a section"):
        changed(f"<zodburi a>\nuri {uri}\n</zodburi>\n")


def test_a_configuration_of_a_zeo_server_is_refused_as_it_is_without_the_option() -> None:
    with pytest.raises(UserError, match=r"this is the configuration of a ZEO server"):
        changed("<zeo>\naddress 8100\n</zeo>\n<filestorage 1>\npath /srv/x\n</filestorage>\n")


@pytest.mark.parametrize("environment", ["", "environment old\n"])
def test_a_database_of_an_unknown_type_is_refused(environment: str) -> None:
    text = (
        f"<newtdb a>\n{environment}<zodb>\n<filestorage>\npath /srv/x\n</filestorage>\n"
        "</zodb>\n</newtdb>\n"
    )
    with pytest.raises(UserError, match="it is not known how to give <newtdb> new data"):
        changed(text)


def test_a_contender_for_another_python_has_private_data_too(tmp_path: Path) -> None:
    text = (
        "<environment old>\nrequirements ZODB<6\n</environment>\n"
        "<zodb a>\nenvironment old\n<filestorage>\npath /srv/x.fs\n</filestorage>\n</zodb>\n"
    )
    (contender,) = contenders_of(read(text, tmp_path))
    assert "/srv" not in contender.storage.section
    assert contender.settings["filestorage", "path"] == "$scratch/private-1-x.fs"


def test_what_zope_alone_reads_is_left_out() -> None:
    sections = changed(
        "<eventlog>\npath /srv/log\n</eventlog>\n<zodb_db a>\n<mappingstorage/>\n</zodb_db>\n"
    )
    assert [section.type for section in sections] == ["zodb_db"]


def test_only_names_a_storage_outside_of_databases_by_its_type(tmp_path: Path) -> None:
    text = "<oracle>\n</oracle>\n<mappingstorage>\n</mappingstorage>\n"
    chosen: Sequence[str] = ["mappingstorage"]
    source = Source(tmp_path / "x.conf", text, change=partial(with_private_data, only=chosen))
    assert [section.type for section in source.tree.root.sections] == ["mappingstorage"]
