"""Where log records go, as ``--log`` says; no secret is in them."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ZConfig

from zodbshootout.client.masking import Mask

_SCHEMA = """
<schema>
  <import package="ZConfig.components.logger"/>
  <section type="eventlog" name="*" attribute="eventlog"/>
  <multisection type="logger" name="*" attribute="loggers"/>
</schema>
"""


class BadLoggers(ValueError):  # noqa: N818
    """A file that does not configure logging; the message names it, and what is wrong with it."""


def configure_logging(log: str | None, mask: Mask) -> None:
    """Send log records to standard error from a level on, or wherever a ZConfig file says.

    What *mask* hides is in none of them.

    :raises BadLoggers: when *log* is the path of a file that does not say it
    """
    if log is None:
        return
    if log.isupper():
        logging.basicConfig(
            level=log,
            format="%(asctime)s %(levelname)s [%(process)d %(threadName)s] %(name)s: %(message)s",
        )
    else:
        for configure in read_loggers(Path(log)):
            configure()
    loggers = [logging.getLogger(name) for name in (None, *logging.root.manager.loggerDict)]
    for handler in {handler for logger in loggers for handler in logger.handlers}:
        handler.setFormatter(_Masking(handler.formatter or logging.Formatter(), mask))


def read_loggers(path: Path) -> Sequence[Any]:
    """Return what configures each logger when it is called.

    :raises BadLoggers: when that is not in the file
    """
    schema = ZConfig.loadSchemaFile(io.StringIO(_SCHEMA))
    try:
        parsed, _ = ZConfig.loadConfig(schema, str(path))
    except ZConfig.ConfigurationError as error:
        where = f"{path}:{error.lineno}" if getattr(error, "lineno", None) else str(path)
        raise BadLoggers(f"{where}: {error.message}") from error
    loggers = [parsed.eventlog, *parsed.loggers]
    return [logger for logger in loggers if logger is not None]


class _Masking(logging.Formatter):
    """What another formatter makes of a record, without secrets."""

    def __init__(self, formatter: logging.Formatter, mask: Mask) -> None:
        super().__init__()
        self._formatter = formatter
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        return self._mask(self._formatter.format(record))
