"""Keeping secrets out of every text that leaves the program.

What is secret is known: the values of passwords and the like that stand in the configuration, on
the command line or in the environment.  These values are replaced, however the text came to hold
them, be it in the words of a driver, a server or a traceback.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

STARS = "***"
SHORT = 4
"""Of fewer characters, a secret is replaced only where it is a word of its own."""


class Mask:
    """Knows secrets, and shows a text without them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.hide(secrets)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What is hidden."""
        return tuple(sorted(self._secrets))

    def hide(self, secrets: Iterable[str]) -> None:
        """Have these values, too, replaced from now on."""
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
    return escaped if len(form) >= SHORT else rf"(?<!\w){escaped}(?!\w)"


def _forms(secret: str) -> Iterator[str]:
    """Return how a value looks in a text: as it is, and quoted for URLs, Python, DSNs and so on."""
    collapsed = " ".join(secret.split())
    for each in {secret, secret.strip(), collapsed}:
        yield each
        yield quote(each)
        yield quote(each, safe="")
        yield quote_plus(each)
        yield each.replace("$", "$$")
        yield each.replace("\\", "\\\\").replace("'", "\\'")
        yield each.replace("\\", "\\\\").replace("'", "\\'").replace(" ", "\\ ")
        yield each.replace("'", "''")
        yield repr(each)[1:-1]
        yield repr(repr(each)[1:-1])[1:-1]
        yield json.dumps(each)[1:-1]
        yield json.dumps(each, ensure_ascii=False)[1:-1]
