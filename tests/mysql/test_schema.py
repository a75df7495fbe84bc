from __future__ import annotations

import re

import pytest
from relstorage.adapters.mysql.schema import MySQLSchemaInstaller

from zodbshootout.mysql.adapter import without_inline_references

PRESERVING, FREE = MySQLSchemaInstaller.CREATE_OBJECT_STATE_TMPLS


def test_relstorage_still_has_two_inline_references() -> None:
    """If this fails, check whether RelStorage's own <mysql> works now."""
    assert PRESERVING.count("REFERENCES") == 2


def test_only_the_inline_references_are_removed() -> None:
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
def test_every_form_of_inline_reference_is_removed_and_foreign_keys_are_kept(
    column: str, corrected: str
) -> None:
    assert without_inline_references(column) == corrected
