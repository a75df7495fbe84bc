"""The secret values of a configuration."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zodbshootout.config.secrets import (
    of_argument,
    of_configuration,
    of_dsn,
    of_environment,
    of_uri,
)
from zodbshootout.config.tree import read_tree
from zodbshootout.model.masking import SECRET_KEY, Mask

PRINTABLE = [chr(code) for code in range(0x20, 0x7F)]
PASSWORDS = st.text(PRINTABLE, min_size=6, max_size=20).filter(lambda text: text == text.strip())


def secrets_of(text: str, **names: str) -> set[str]:
    """Return the secrets in a configuration, without those of the environment."""
    return of_configuration(read_tree(text, Path("x.conf")).keys, names)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgres://u:geheim@h:5432/x", "postgres://u:***@h:5432/x"),
        ("postgres://u:ge@he im@h/x", "postgres://u:***@h/x"),
        ("postgresql://u:top#secret@localhost/db", "postgresql://u:***@localhost/db"),
        ("postgresql://u:top?secret@localhost/db", "postgresql://u:***@localhost/db"),
        ("postgresql://u:top/secret@localhost/db", "postgresql://u:***@localhost/db"),
        ("zeo://h:1?username=u&password=geheim&wait=1", "zeo://h:1?username=u&password=***&wait=1"),
        ("mysql://h/x?my_passwd=geheim", "mysql://h/x?my_passwd=***"),
        ("other://h?a=1&api_token=geheim&b=2#c", "other://h?a=1&api_token=***&b=2#c"),
        ("demo:(zeo://u:geheim@h:1)/(memory://)", "demo:(zeo://u:***@h:1)/(memory://)"),
        ("demo:(zeo://h?password=ge)heim)/(memory://)", "demo:(zeo://h?password=***"),
        ("postgres//u:geheim@h/x", "postgres//u:***@h/x"),
        ("postgres:/u:geheim@h/x", "postgres:/u:***@h/x"),
        ("postgres:u:geheim@h/x", "postgres:***@h/x"),
        ("u:geheim@h/x", "u:***@h/x"),
        ("https://geheim:@h/x.whl", "https://***:@h/x.whl"),
        ("x @ git+https//geheim@h/x", "x @ git+https//***@h/x"),
        ("file:///a:b@c/x.fs", "file:///a:b@c/x.fs"),
        ("./a@b..c", "./a@b..c"),
    ],
)
def test_a_uri_is_shown_without_its_password(text: str, shown: str) -> None:
    assert Mask(of_uri(text))(text) == shown


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("dbname='x' password='ge heim' host='h'", "dbname='x' password='***' host='h'"),
        (r"password=a\ b\ c host=h", "password=*** host=h"),
        (r"password='it\'s me' host=h", "password='***' host=h"),
        ("passwd=geheim&more host=h", "passwd=*** host=h"),
        ("password = 'never ends", "password = '***"),
        ("password=ge heim99 host=h", "password=*** *** host=h"),
        ("password='ge'heim99' host=h", "password='***'***' host=h"),
    ],
)
def test_a_dsn_is_shown_without_its_password(dsn: str, shown: str) -> None:
    assert Mask(of_dsn(dsn))(dsn) == shown


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER ROLE u PASSWORD 'geheim' VALID UNTIL 'x'",
        "ALTER ROLE passwd WITH ENCRYPTED PASSWORD E'ge''heim'",
        'ALTER ROLE "passwd" PASSWORD \'geheim\' IN "y"',
        "alter role u password $x$geheim$x$",
        "CREATE USER u@h IDENTIFIED BY 'geheim'",
        "CREATE USER u IDENTIFIED WITH plug BY geheim",
        'SET PASSWORD = PASSWORD("geheim")',
        "PRAGMA key = 'geheim'",
        "CREATE USER MAPPING FOR u OPTIONS (user 'u', password 'geheim')",
    ],
)
def test_a_statement_is_shown_without_its_password(statement: str) -> None:
    in_a_file = secrets_of(f"sql {statement.replace('$', '$$')}\n")
    for secrets in (in_a_file, of_argument(f"x={statement}")):
        shown = Mask(secrets)(statement)
        assert "***" in shown
        assert "heim" not in shown
        assert shown[:6] == statement[:6]


def test_a_statement_without_a_password_is_shown_whole() -> None:
    assert secrets_of("sql SET x = 'y'\n") == set()


def test_a_password_in_a_dsn_may_contain_a_no_break_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg2.extensions", None)
    assert set(of_dsn("password=a\u00a0b host=h")) == {"a\u00a0b"}


@given(PASSWORDS)
def test_any_password_in_a_dsn_is_a_secret(password: str) -> None:
    escaped = password.replace("\\", "\\\\").replace("'", "\\'")
    assert password in set(of_dsn(f"dbname=x password='{escaped}' host=h"))
    assert password in set(of_dsn(f"password='{escaped}'"))


def test_password_variables_of_drivers_are_secret_unless_they_name_a_file(tmp_path: Path) -> None:
    passfile = tmp_path / "pgpass"
    passfile.write_text("")
    environment = {
        "PGPASSWORD": "abc", "MYSQL_PWD": "def", "MY_TOKEN": "1", "HOME": "/root",
        "PGPASSFILE": str(passfile),
    }  # fmt: skip
    assert set(of_environment(environment)) == {"abc", "def"}


def test_a_variable_is_secret_if_a_word_of_its_name_says_so() -> None:
    environment = {
        "TOKENIZERS_PARALLELISM": "sometimes", "TOKENFILE": "/tmp", "TOKEN": "abcde",
        "API_TOKEN": "fghij", "accessToken": "klmno", "GITHUB_TOKEN_2": "pqrst",
    }  # fmt: skip
    assert set(of_environment(environment)) == {"abcde", "fghij", "klmno", "pqrst"}


@pytest.mark.parametrize("value", ["true", "False", "YES", "no", "off", "none", "4096", "100000"])
def test_a_switch_or_a_small_number_in_the_environment_is_no_secret(value: str) -> None:
    assert set(of_environment({"USE_TOKEN": value, "MY_SECRET": value})) == set()
    drivers = set(of_environment({"PGPASSWORD": value}))
    assert drivers == ({value} if value.isdigit() else set())


def test_a_file_that_names_itself_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "x.conf"
    file.write_text(f"uri zconfig://{file}\npassword in itself\n")
    assert "in itself" in set(of_uri(f"zconfig://{file}"))


def test_the_working_directory_is_no_secret() -> None:
    assert set(of_environment({"PWD": "/gone/away", "OLDPWD": "/gone/before"})) == set()


@pytest.mark.parametrize(
    "key",
    [
        "password", "passwd", "my-pass", "pwd", "api-key", "api_key", "apikey", "private-key",
        "encryption-key", "s3-sse-customer-key", "s3_secret_access_key", "azure-account-key",
        "auth-token", "PGPASSWORD", "passphrase",
    ],
)  # fmt: skip
def test_a_setting_is_secret_if_a_word_of_its_name_says_so(key: str) -> None:
    assert SECRET_KEY.search(key)
    assert "geheimnis" in secrets_of(f"<zodb a>\n<s3>\n{key} geheimnis\n</s3>\n</zodb>\n")


@pytest.mark.parametrize("key", ["key", "keep-history", "cache-size", "ssl-key-file", "keyspace"])
def test_other_keys_are_not_secret(key: str) -> None:
    assert not SECRET_KEY.search(key)


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("%define one geheim\n%define two a$one\npassword $two", {"geheim", "ageheim"}),
        ("%define one geheim\npassword abc${ONE}", {"geheim", "abcgeheim"}),
        ("%define one geheim\ndsn host=h password='$one'", {"geheim"}),
        ("%define one host=h password=ab\n%define two geheim\ndsn $one$two", {"geheim", "ab"}),
        ("%define one geh%3aeim\nuri zeo://h:1?password=$one", {"geh%3aeim", "geh:eim"}),
        ("%define one ge$$heim\nuri postgres://u:$one@h", {"ge$heim"}),
        ("%define one geheim\n%define my-token $one", {"geheim"}),
    ],
)
def test_a_definition_is_secret_if_a_secret_is_made_of_it(text: str, secrets: set[str]) -> None:
    assert secrets <= secrets_of(text)


def test_a_reference_to_a_password_of_the_run_is_not_secret() -> None:
    secrets = secrets_of("%define mine ${main_password}\npassword $mine", main_password="0815-4711")
    assert "0815-4711" in secrets
    assert "${main_password}" not in secrets


def test_definitions_beside_a_secret_are_not_secret() -> None:
    text = "%define host db1\n%define pw geheim\ndsn host=$host password=$pw dbname=x"
    assert secrets_of(text).isdisjoint({"db1", "host=db1", "x"})


def test_a_variable_in_a_uri_is_not_secret_but_its_value_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHOOTOUT_PASSWORD", "from outside")
    secrets = secrets_of("uri postgres://u:$(SHOOTOUT_PASSWORD)@h:1/x")
    assert "from outside" in secrets
    assert "SHOOTOUT_PASSWORD" not in secrets


@pytest.mark.parametrize("word", ["--define=pw_secret=a,b c", "pw_secret=a,b c", "x;secret=a,b c"])
def test_secrets_in_a_word_of_the_command_line(word: str) -> None:
    assert set(of_argument(word)) == {"a,b c", "a", "b c"}


def test_the_secrets_of_a_uri_include_those_of_what_its_file_includes(tmp_path: Path) -> None:
    (tmp_path / "auth.conf").write_text("password $pw\n")
    (tmp_path / "db.conf").write_text(
        f"%define pw geheim\n%define here {tmp_path}\n<zodb>\n%include $here/auth.conf\n</zodb>\n"
    )
    assert "geheim" in set(of_uri(f"demo:(zconfig://{tmp_path}/db.conf#main)/(memory://)"))
