"""Open the DB that a specification describes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote_plus

import ZConfig
import ZODB.config

from zodbshootout.client.outcome import BadSection
from zodbshootout.client.specification import Storage
from zodbshootout.client.storages import settle
from zodbshootout.client.storages.relstorage import suitable_driver


def open_db(storage: Storage) -> Any:
    """Open the DB; exceptions of ZConfig, ZODB and the storage go through."""
    return _open_uri(storage.uri) if storage.uri else _open_section(storage)


def _open_section(storage: Storage) -> Any:
    section = section_of(storage)
    settle(section)
    return section.open()


def section_of(storage: Storage) -> Any:
    """Return ZConfig's object for a section; nothing is opened.

    :raises BadSection: if the section is wrong
    """
    lines, missing = storage.section.splitlines(), None
    while True:
        text = io.StringIO(prelude(storage.names) + "".join(f"{line}\n" for line in lines))
        try:
            configuration, _ = ZConfig.loadConfigFile(ZODB.config.getDbSchema(), text)
        except ZConfig.ConfigurationError as error:
            imported = f"%import {getattr(error, 'package', None)}"
            if imported not in lines:
                raise missing or _bad(error, len(storage.names)) from error
            # Perhaps only other sections of the file need this import.
            line = lines.index(imported)
            missing = missing or BadSection(error.message, line + 1)
            lines[line] = ""
        else:
            (section,) = configuration.database
            return section


def _bad(error: ZConfig.ConfigurationError, before: int) -> BadSection:
    """Return the error; *before* lines precede the section in what ZConfig has read."""
    line = (getattr(error, "lineno", None) or 0) - before
    return BadSection(str(getattr(error, "message", None) or error), max(0, line))


def prelude(names: Mapping[str, str]) -> str:
    """Return the lines that define *names* in ZConfig's language."""
    literal = {name: value.replace("$", "$$") for name, value in names.items()}
    return "".join(f"%define {name} {value}\n" for name, value in literal.items())


def _open_uri(uri: str) -> Any:
    import zodburi

    factory, options = zodburi.resolve_uri(_with_driver(uri))
    settle(getattr(factory, "__self__", None))  # the section that a zconfig: URI names
    storage = factory()
    try:
        return ZODB.DB(storage, **options)
    except BaseException:
        storage.close()
        raise


def _with_driver(uri: str) -> str:
    """Return *uri* with a driver, if it leaves the choice of the driver to chance."""
    head, mark, fragment = uri.partition("#")
    driver = suitable_driver(uri.partition(":")[0])
    if driver is None or dict(parse_qsl(head.partition("?")[2])).get("driver", "auto") != "auto":
        return uri
    return f"{head}{'&' if '?' in head else '?'}driver={quote_plus(driver)}{mark}{fragment}"
