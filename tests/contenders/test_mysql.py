"""Advice and drivers for the sections of MySQL, zodbshootout's included, before they are opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from zodbshootout.config.configuration import Source, parse
from zodbshootout.contenders.contender import Contender, contenders_of

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


def contender(section: str) -> Contender:
    text = f"<zodb x>\n<relstorage>\n<{section}>\ndriver auto\n</{section}>\n</relstorage>\n"
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
