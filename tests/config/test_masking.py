from __future__ import annotations

import pytest

from zodbshootout.config.masking import without_secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("dbname='x' password='ge heim' host='h'", "dbname='x' password=*** host='h'"),
        ("passwd=geheim&more host=h", "passwd=*** host=h"),
        ("postgres://u:geheim@h:5432/x", "postgres://u:***@h:5432/x"),
        ("postgres://u:ge@he im@h/x", "postgres://u:***@h/x"),
        ("zeo://h:1?username=u&password=geheim&wait=1", "zeo://h:1?username=u&password=***&wait=1"),
        ("mysql://h/x?my_passwd=geheim", "mysql://h/x?my_passwd=***"),
        ("other://h?a=1&api_token=geheim&b=2#c", "other://h?a=1&api_token=***&b=2#c"),
        ("demo:(zeo://u:geheim@h:1)/(memory://)", "demo:(zeo://u:***@h:1)/(memory://)"),
        ("demo:(zeo://h?password=ge)heim)/(memory://)", "demo:(zeo://h?password=***"),
        ("other:user;password=geheim", "other:user;password=***"),
        ("zeo://localhost:8100?blob_dir=/a@b", "zeo://localhost:8100?blob_dir=/a@b"),
        ("file:///a:b@c/x.fs", "file:///a:b@c/x.fs"),
    ],
)
def test_a_text_is_shown_without_its_secrets(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
