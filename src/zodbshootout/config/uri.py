"""ZODB URIs on the command line."""

from __future__ import annotations

import re
from pathlib import Path

from zodbshootout.client.storage_types.zodburi import ResolvedURI, scheme_of, schemes
from zodbshootout.config.advice import not_converted
from zodbshootout.config.source import Source
from zodbshootout.errors import UserError

_BEGINNING = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):(?P<rest>//|\()?", re.IGNORECASE)


def is_uri(word: str) -> bool:
    """Return whether *word* looks like a ZODB URI, even one of an unknown scheme."""
    match = _BEGINNING.match(word)
    return match is not None and (match["rest"] is not None or match["scheme"] in schemes())


def source_of(uri: str) -> Source:
    """Return a configuration with one contender: the database of *uri*, named after the scheme.

    :raises UserError: if *uri* does not describe a storage
    """
    name = scheme_of(uri)
    if not uri.isprintable():  # it becomes a line of the configuration
        raise UserError(f"{name}: a URI is one line of printable characters")
    try:
        ResolvedURI(uri)
    except ValueError as error:
        raise UserError(f"{uri}: {not_converted(str(error))}") from error
    literal = uri.replace("$", "$$")
    return Source(Path(name), f"<zodburi {name}>\n    uri {literal}\n</zodburi>\n")
