"""Settings that could reach beyond a private server are refused, however they are spelled."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.servers.conftest import MakeServer
from zodbshootout.errors import UserError
from zodbshootout.servers import ServerFailed, allowed_settings
from zodbshootout.servers.installation import MYSQL, POSTGRESQL

STORAGES = {"zeoserver": "<mappingstorage/>\n"}


def section(kind: str, lines: str) -> str:
    return f"<{kind} it>\n<settings>\n{lines}\n</settings>\n{STORAGES.get(kind, '')}</{kind}>\n"


def refusal(make_server: MakeServer, text: str) -> str:
    with pytest.raises(UserError) as caught:
        make_server(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("postgresqlserver", "archive_command cp %p /srv/archive/%f"),
        ("postgresqlserver", "Archive-Command true"),
        ("postgresqlserver", "archive_mode on"),
        ("postgresqlserver", "archive_library x"),
        ("postgresqlserver", "restore_command x"),
        ("postgresqlserver", "shared_preload_libraries x"),
        ("postgresqlserver", "primary_conninfo host=db"),
        ("postgresqlserver", "synchronous_standby_names x"),
        ("postgresqlserver", "log_directory x"),
        ("postgresqlserver", "config_file x"),
        ("postgresqlserver", "temp_tablespaces x"),
        ("postgresqlserver", "include x"),
        ("postgresqlserver", "auto_explain.log_min_duration 1"),
        ("mysqlserver", "log-bin-index x"),
        ("mysqlserver", "log-bin-i x"),
        ("mysqlserver", "loose_log_bin_index x"),
        ("mysqlserver", "loose-skip-log_bin_index x"),
        ("mysqlserver", "innodb_data_home_dir x"),
        ("mysqlserver", "innodb-data-home x"),
        ("mysqlserver", "innodb_log_group_home_dir x"),
        ("mysqlserver", "innodb_undo_directory x"),
        ("mysqlserver", "plugin-load-add x"),
        ("mysqlserver", "wsrep_cluster_address x"),
        ("mysqlserver", "general_log_file x"),
        ("mysqlserver", "defaults-extra-file x"),
        ("mysqlserver", "tmpdir x"),
        ("mysqlserver", "hot.key_buffer_size x"),
        ("memcachedserver", "memory-file x"),
        ("memcachedserver", "unix-socket x"),
        ("memcachedserver", "extended ext_path=x"),
        ("memcachedserver", "pidfile x"),
        ("zeoserver", "authentication-database x"),
    ],
)
def test_a_setting_that_could_reach_beyond_the_server_is_refused(
    kind: str, line: str, make_server: MakeServer
) -> None:
    name = line.split(maxsplit=1)[0].lower()
    assert refusal(make_server, section(kind, line)).endswith(
        f"x.conf:3: server it: a private server takes settings that affect speed, not {name}; "
        "leave it out of <settings>"
    )


def test_a_misspelt_setting_is_corrected(make_server: MakeServer) -> None:
    text = section("postgresqlserver", "shared-bufers 1GB")
    assert refusal(make_server, text).endswith("not shared-bufers; did you mean shared_buffers?")


@pytest.mark.parametrize("name", ["log-bin", "log_bin", "loose-log-bin", "LOG_BIN"])
def test_a_binary_log_stays_in_the_data_directory(name: str, make_server: MakeServer) -> None:
    for value in ("", " binlog"):
        make_server(section("mysqlserver", f"{name}{value}"))
    for definition in ("", "%define where /srv/binlog\n"):
        value = "$where" if definition else "../binlog"
        message = refusal(make_server, definition + section("mysqlserver", f"{name} {value}"))
        assert message.endswith(
            f"server it: {name.lower()} of a private server cannot name a path; leave the "
            "directory out"
        )


def test_a_setting_in_an_included_file_is_refused_at_its_line(
    make_server: MakeServer, tmp_path: Path
) -> None:
    (tmp_path / "more.conf").write_text(section("postgresqlserver", "fsync off\narchive_command x"))
    assert "more.conf:4: server it: " in refusal(make_server, "%include more.conf\n")


def test_no_allowed_setting_of_postgresql_holds_more_than_a_number_or_a_word() -> None:
    try:
        postgres = POSTGRESQL.program("postgres", given=None)
    except ServerFailed:
        pytest.skip("PostgreSQL is not installed")
    described = subprocess.run(
        [postgres, "--describe-config"], check=True, capture_output=True, text=True
    )
    fields = [line.split("\t") for line in described.stdout.splitlines()]
    texts = {name.lower() for name, _, _, kind, *_ in fields if kind == "STRING"}
    assert texts & allowed_settings.POSTGRESQL == {"log_line_prefix"}


def test_no_allowed_setting_of_mysql_is_a_path_or_abbreviates_another_setting() -> None:
    try:
        server = MYSQL.program("mariadbd", "mysqld", given=None)
    except ServerFailed:
        pytest.skip("neither MariaDB nor MySQL is installed")
    described = subprocess.run(
        [shutil.which(server) or server, "--no-defaults", "--verbose", "--help"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    lines = described.stdout.partition("\nVariables (--")[2].splitlines()
    defaults = {words[0].replace("-", "_"): words[1:] for words in map(str.split, lines) if words}
    assert len(defaults) > 300
    for name in allowed_settings.MYSQL:
        if name not in defaults:
            assert not [other for other in defaults if other.startswith(name)]
        assert not [word for word in defaults.get(name, []) if "/" in word]
