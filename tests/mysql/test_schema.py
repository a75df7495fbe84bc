from __future__ import annotations

import re

import pytest
from relstorage.adapters.mysql.schema import MySQLSchemaInstaller

from zodbshootout.mysql.adapter import without_inline_references

PRESERVING, FREE = MySQLSchemaInstaller.CREATE_OBJECT_STATE_TMPLS


def test_relstorage_has_what_is_left_out() -> None:
    """Check that RelStorage still has the references; if not, see whether its <mysql> works."""
    assert PRESERVING.count("REFERENCES") == 2


def test_nothing_but_the_references_is_left_out() -> None:
    kept = re.split(r'\s+REFERENCES "transaction"', PRESERVING)
    assert without_inline_references(PRESERVING) == "".join(kept)


@pytest.mark.parametrize(
    "template",
    [
        FREE,
        MySQLSchemaInstaller.CREATE_CURRENT_OBJECT_TMPL,
        *MySQLSchemaInstaller.CREATE_BLOB_CHUNK_TMPLS,
    ],
)
def test_templates_without_inline_references_stay_as_they_are(template: str) -> None:
    assert without_inline_references(template) == template


@pytest.mark.parametrize(
    ("column", "corrected"),
    [
        ('tid BIGINT NOT NULL REFERENCES "transaction",', "tid BIGINT NOT NULL,"),
        ("tid BIGINT references `transaction` (tid) NOT NULL,", "tid BIGINT NOT NULL,"),
        ("tid BIGINT REFERENCES transaction(tid) ON DELETE CASCADE,", "tid BIGINT,"),
        ("tid BIGINT REFERENCES t ON UPDATE SET NULL ON DELETE NO ACTION,", "tid BIGINT,"),
        ("FOREIGN KEY (tid) REFERENCES t (tid),", "FOREIGN KEY (tid) REFERENCES t (tid),"),
        ("FOREIGN KEY ix (a,b)\nREFERENCES t (a,b)", "FOREIGN KEY ix (a,b)\nREFERENCES t (a,b)"),
    ],
)  # fmt: skip
def test_each_form_of_a_reference(column: str, corrected: str) -> None:
    assert without_inline_references(column) == corrected
