"""Known secrets are masked in every form in which a text may contain them."""

from __future__ import annotations

import json
import shlex
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zodbshootout.model.masking import STARS, Mask

PRINTABLE = [chr(code) for code in range(0x20, 0x7F)]
PASSWORDS = st.text(PRINTABLE, min_size=6, max_size=20).filter(
    lambda text: text == text.strip() and len(set(text)) > 2 and "*" not in text
)


@given(PASSWORDS)
def test_a_secret_is_masked_as_it_is_and_in_quoted_forms(password: str) -> None:
    mask = Mask([password])
    escaped = password.replace("\\", "\\\\").replace("'", "\\'")
    forms = (
        password, quote(password), quote(password, safe=""), quote_plus(password),
        repr(password)[1:-1], json.dumps(password)[1:-1], f"password='{escaped}'",
        shlex.quote(password),
    )  # fmt: skip
    for form in forms:
        shown = mask(f"cannot connect: {form} is wrong")
        assert password not in shown
        assert STARS in shown


def test_the_longest_secret_is_masked_first() -> None:
    assert Mask(["geheim", "geheimnis"])("geheimnis geheim") == f"{STARS} {STARS}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password zodb here", f"password {STARS} here"),
        ("zodbshootout: no zodb_one", "zodbshootout: no zodb_one"),
        ("'zodb'", "'***'"),
        ("u:zodb@h", "u:***@h"),
        (r"b'\nzodb\n'", r"b'\n***\n'"),
        ("password%3Dzodb%20", "password%3D***%20"),
    ],
)
def test_a_short_secret_is_masked_only_as_a_whole_word(text: str, shown: str) -> None:
    assert Mask(["zodb"])(text) == shown


@pytest.mark.parametrize(("secret", "masked"), [("a" * 8, False), ("a" * 9, True)])
def test_a_long_secret_is_masked_even_within_a_word(secret: str, masked: bool) -> None:
    assert (Mask([secret])(f"x{secret}y") == f"x{STARS}y") is masked


def test_a_secret_is_masked_as_it_is_written_in_a_list_of_values() -> None:
    assert Mask(["ab,cdefghi"])(r"--define x=ab\,cdefghi,1") == "--define x=***,1"


def test_a_blank_secret_masks_nothing() -> None:
    assert Mask(["", "  "])("a  b") == "a  b"


def test_secrets_can_be_added_later() -> None:
    mask = Mask(["first secret"])
    mask.hide(["second"])
    assert mask("first secret, second") == f"{STARS}, {STARS}"
    assert mask.secrets == ("first secret", "second")


def test_settings_whose_names_say_that_they_are_secret_are_left_out() -> None:
    settings = {
        "server": {"main": {"settings": {"auth_token": "abc"}}, "token": {"port": "7"}},
        "dsn": "a=geheim",
    }
    shown = Mask(["geheim"]).settings(settings)
    assert shown == {"server": {"main": {"settings": {}}, "token": {"port": "7"}}, "dsn": "a=***"}
