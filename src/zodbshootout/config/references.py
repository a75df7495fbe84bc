"""References in values, such as ``$name`` and ``$(VARIABLE)``, by ZConfig's rules."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ZConfig.substitution import substitute

ENVIRONMENT_REFERENCE = re.compile(r"\$\(\s*(?P<name>\w+)\s*\)")
"""ZConfig's reference to the value of an environment variable."""
_REFERENCE = re.compile(
    r"\$(?:(?P<other>\$|\([a-z_]\w*\))|\{(?P<braced>[a-z_]\w*)\}|(?P<bare>[a-z_]\w*))",
    re.IGNORECASE | re.ASCII,
)
"""ZConfig's references: ``$name`` and ``${name}`` to a name, ``$(NAME)`` to an environment
variable, and ``$$``, which stands for a single ``$``."""
BEGIN, END = "\ue000", "\ue001"
"""Marks around the value of a reference: private-use characters, which have no meaning."""


def replaced(text: str, values: Mapping[str, str]) -> str:
    """Return *text* with *values* in place of references.

    The keys of *values* are names in lower case, ``(NAME)`` for an environment variable, and ``$``
    for ``$$``.
    A name without a value becomes ``${name}``; other references without a value are unchanged.
    """

    def value(reference: re.Match[str]) -> str:
        name = (reference["braced"] or reference["bare"] or "").lower()
        return values.get(name or reference["other"], f"${{{name}}}" if name else reference[0])

    return _REFERENCE.sub(value, text)


def references(text: str) -> set[str]:
    """Return the names that a value refers to, in lower case."""
    names = (match["braced"] or match["bare"] for match in _REFERENCE.finditer(text))
    return {name.lower() for name in names if name}


def with_names(text: str) -> str:
    """Write each reference to a name as ``$name``; replace other references by their values."""
    return str(substitute(text, {name: f"${name}" for name in references(text)}))


def marked(value: str) -> str:
    """Return the *value* of a reference, with marks around it."""
    return f"{BEGIN}{value}{END}"


def unmarked(text: str) -> str:
    """Return *text* without marks."""
    return text.replace(BEGIN, "").replace(END, "")
