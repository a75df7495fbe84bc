"""Advice and drivers for the sections of MySQL, zodbshootout's included, before they are opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.errors import UserError

IMPORTS = "%import relstorage\n%import zodbshootout.mysql\n"
SECTIONS = ("mysql", "mysql-or-mariadb")
REFUSALS = {
    "MariaDB, history preserving, MySQLdb": (
        "OperationalError: (1005, 'Can\\'t create table `hp`.`object_state` "
        '(errno: 150 "Foreign key constraint is incorrectly formed")\')'
    ),
    "MariaDB, history preserving, MySQL Connector/Python": (
        "DatabaseError: 1005 (HY000): Can't create table `hp`.`object_state` "
        '(errno: 150 "Foreign key constraint is incorrectly formed")'
    ),
    "MariaDB, history free": (
        'ProgrammingError: (1064, "You have an error in your SQL syntax; check the manual that '
        "corresponds to your MariaDB server version for the right syntax to use near 'AS excluded "
        "ON DUPLICATE KEY UPDATE prev_tid = excluded.prev_tid, md5 = exclu...' at line 1\")"
    ),
    "MariaDB whose version is 10.6.4-MariaDB-1:10.6.4+maria~focal, history free": (
        "ValueError: invalid literal for int() with base 10: '4+maria~focal'"
    ),
    "MySQL 9.7, history preserving": (
        "OperationalError: (3780, \"Referencing column 'tid' and referenced column 'tid' in "
        "foreign key constraint 'object_state_ibfk_1' are incompatible.\")"
    ),
}
"""Errors of these servers, as a run reports them."""
OTHER_ERRORS = (
    "OperationalError: (1045, \"Access denied for user 'z'@'localhost' (using password: YES)\")",
    "OperationalError: (1005, 'Can\\'t create table `hp`.`theirs` (errno: 150 \"...\")')",
    "ProgrammingError: (1064, \"You have an error in your SQL syntax; near 'SELEKT' at line 1\")",
    "OperationalError: (1146, \"Table 'hp.object_state' doesn't exist\")",
    "ValueError: invalid literal for int() with base 10: 'MariaDB'",
    "StorageError: 10050150 rows AS excluded, 3780 of them in 'object_state_old'",
)


def contender(section: str, driver: str = "auto") -> Contender:
    text = f"<zodb x>\n<relstorage>\n<{section}>\ndriver {driver}\n</{section}>\n</relstorage>\n"
    (only_contender,) = contenders_of(
        parse(Source(Path("x.conf"), f"{IMPORTS}{text}</zodb>\n"), {})
    )
    return only_contender


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=list(REFUSALS))
def test_after_an_error_of_an_unsupported_server_our_section_is_advised(refusal: str) -> None:
    advice = "for this server write '%import zodbshootout.mysql' and <mysql-or-mariadb>"
    assert contender("mysql").advice_on(refusal) == advice
    assert contender("mysql-or-mariadb").advice_on(refusal) is None


@pytest.mark.parametrize("cause", OTHER_ERRORS)
def test_after_other_errors_nothing_is_advised(cause: str) -> None:
    assert contender("mysql").advice_on(cause) is None


def test_nothing_is_advised_to_users_of_other_adapters() -> None:
    text = f"{IMPORTS}<zodb x>\n<relstorage>\n<postgresql>\n</postgresql>\n</relstorage>\n</zodb>\n"
    (other,) = contenders_of(parse(Source(Path("x.conf"), text), {}))
    assert [other.advice_on(refusal) for refusal in REFUSALS.values()] == [None] * len(REFUSALS)


@pytest.mark.parametrize("section", SECTIONS)
def test_both_sections_need_the_same_driver(section: str) -> None:
    assert contender(section).installation == (
        "<mysql>: no driver for it is installed; install it: pip install mysqlclient"
    )


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize(
    "error",
    [
        "OperationalError: (1153, \"Got a packet bigger than 'max_allowed_packet' bytes\")",
        'OperationalError: (2006, "MySQL server has gone away (ConnectionResetError(104, \'")',
        "OperationalError: 2013 (HY000): Lost connection to MySQL server during query",
    ],
)
def test_after_a_packet_that_was_too_large_its_limit_is_named(section: str, error: str) -> None:
    advice = str(contender(section).advice_on(error))
    assert advice.endswith("in <settings>, for example 'max_allowed_packet 64M'")


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize(
    "driver", ["MySQLdb", "pymysql", "gevent mysqldb", "C MySQL Connector/Python"]
)
def test_drivers_that_relstorage_knows_are_accepted(section: str, driver: str) -> None:
    assert contender(section, driver).name == "x"


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize(
    ("driver", "advice"),
    [
        ("mysqlclient", "did you mean MySQLdb?"),
        ("MySQL Connector/Python", "there are MySQLdb, PyMySQL, gevent MySQLdb"),
    ],
)
def test_a_driver_that_relstorage_does_not_know_is_refused(
    section: str, driver: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from relstorage.adapters.mysql import drivers

    class Driver:
        def __init__(self, name: str) -> None:
            self.driver_name = name

        def check_availability(self) -> bool:
            return "Connector" not in self.driver_name

    names = ("gevent MySQLdb", "MySQLdb", "PyMySQL", "C MySQL Connector/Python")
    monkeypatch.setattr(drivers, "known_driver_factories", lambda: list(map(Driver, names)))
    with pytest.raises(UserError, match=r"^x\.conf:6: ") as caught:
        contender(section, driver)
    assert str(caught.value).endswith(f"x.conf:6: there is no driver {driver!r}; {advice}")


def test_a_wrong_driver_of_another_database_is_refused() -> None:
    text = "%import relstorage\n<zodb x>\n<relstorage>\n<{0}>\n{1}\n</{0}>\n</relstorage>\n</zodb>"
    for section, keys, advice in (
        ("postgresql", "driver psycopg2-binary", "did you mean psycopg2?"),
        ("sqlite3", "driver sqlite\ndata-dir x", "there are gevent sqlite3, sqlite3"),
    ):
        source = Source(Path("x.conf"), text.format(section, keys))
        with pytest.raises(UserError, match=r"^x\.conf:5: there is no driver") as caught:
            contenders_of(parse(source, {}))
        assert str(caught.value).endswith(advice)
