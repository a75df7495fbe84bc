"""Which settings are secrets, and how a text is shown without them."""

from __future__ import annotations

import re

SECRET_KEY = re.compile(r"passw|secret|token", re.IGNORECASE)
"""What is found in the name of a setting that nobody is to see."""

_SECRET_IN_DSN = re.compile(r"(passw(?:or)?d\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)", re.IGNORECASE)
_URL = re.compile(r"[a-z][a-z0-9+.-]*:(//|\()", re.IGNORECASE)
_SECRET_IN_AUTHORITY = re.compile(r"(://[^/?#:]*:)[^/?#]*@")
# Up to the next parameter, whatever stands there: rather too much than the half of a password.
_SECRET_IN_QUERY = re.compile(rf"([?&#][^=&]*(?:{SECRET_KEY.pattern})[^=&]*=)[^&]*", re.IGNORECASE)


def without_secrets(text: str) -> str:
    """Return *text* with passwords in it, as a DSN or a URL has them, replaced by ``***``."""
    text = _SECRET_IN_AUTHORITY.sub(r"\1***@", text)
    if _URL.match(text):
        return _SECRET_IN_QUERY.sub(r"\1***", text)
    return _SECRET_IN_DSN.sub(r"\1***", text)
