"""Keep secrets out of every text that leaves the program.

The secrets are passwords and the like from the configuration, the command line or the environment.
The texts include messages of drivers and servers, and tracebacks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

STARS = "***"
SHORT = 8
"""A secret of at most this number of characters is masked only if it is a whole word."""
_BEGIN = r"(?:(?<!\w)|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
"""The beginning of a word, also right after an escape such as ``%20``."""


class Mask:
    """Replaces secrets in texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.hide(secrets)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(sorted(self._secrets))

    def hide(self, secrets: Iterable[str]) -> None:
        """Replace these secrets as well from now on."""
        self._secrets.update(filter(str.strip, secrets))
        forms = {form for secret in self._secrets for form in _forms(secret) if form.strip()}
        if forms:
            ordered = sorted(forms, key=lambda form: (-len(form), form))
            self._pattern = re.compile("|".join(map(_expression, ordered)))

    def __call__(self, text: str) -> str:
        """Return *text* with ``***`` in place of each secret."""
        return text if self._pattern is None else self._pattern.sub(STARS, text)


def _expression(form: str) -> str:
    escaped = re.escape(form)
    return escaped if len(form) > SHORT else rf"{_BEGIN}{escaped}(?!\w)"


def _forms(secret: str) -> Iterator[str]:
    """Yield the forms of a secret in texts: plain, and quoted for URLs, Python, DSNs and so on."""
    collapsed = " ".join(secret.split())
    for text in {secret, secret.strip(), collapsed}:
        yield text
        yield quote(text)
        yield quote(text, safe="")
        yield quote_plus(text)
        yield text.replace("$", "$$")
        yield text.replace("\\", "\\\\").replace("'", "\\'")
        yield text.replace("\\", "\\\\").replace("'", "\\'").replace(" ", "\\ ")
        yield text.replace("'", "''")
        yield text.replace(",", "\\,")
        yield repr(text)[1:-1]
        yield repr(repr(text)[1:-1])[1:-1]
        yield json.dumps(text)[1:-1]
        yield json.dumps(text, ensure_ascii=False)[1:-1]
