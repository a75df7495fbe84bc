"""Keep secrets out of every text that leaves the program.

The secrets are passwords and the like from the configuration, the command line or the environment.
A command has one mask.  It gets the secrets when the command reads where they stand, and is applied
where text leaves: to lines that are printed or logged, and to results before they are written or
reported.  All other modules use texts as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

SECRET_KEY = re.compile(
    r"pass(w|phrase|$)|pwd|(?<![a-z])pw(?![a-z])|secret|tokens?(?![a-z])|credential"
    r"|(api|access|account|customer|encryption|master|private|signing)[-_]?key",
    re.IGNORECASE,
)
"""A pattern; if the name of a setting or of a variable contains a match, the value is secret."""
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

    def settings(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a section, without those whose names say that they are secret."""
        return {
            name: self(content) if isinstance(content, str) else self.settings(content)
            for name, content in section.items()
            if not (isinstance(content, str) and SECRET_KEY.search(name))
        }


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
        yield text.replace("'", "'\"'\"'")
        yield text.replace(",", "\\,")
        yield repr(text)[1:-1]
        yield repr(repr(text)[1:-1])[1:-1]
        yield json.dumps(text)[1:-1]
        yield json.dumps(text, ensure_ascii=False)[1:-1]
