"""Set up logging for ``--log``, and keep secrets out of the log."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ZConfig

from zodbshootout.errors import UserError
from zodbshootout.model.masking import Mask

_SCHEMA = """
<schema>
  <import package="ZConfig.components.logger"/>
  <section type="eventlog" name="*" attribute="eventlog"/>
  <multisection type="logger" name="*" attribute="loggers"/>
</schema>
"""


@dataclass(frozen=True)
class LogSettings:
    """How to log; a worker receives these settings before its task."""

    log: str | None = None
    """A level's name, or the path of a ZConfig logging file."""
    secrets: Sequence[str] = ()
    """Texts that must not appear in a log."""


def configure_logging(settings: LogSettings) -> None:
    """Log to standard error from a level upwards, or configure the loggers that a file defines.

    :raises UserError: if the file does not configure logging
    """
    log, mask = settings.log, Mask(settings.secrets)
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
    """Return, for each logger that a file defines, a function that configures the logger.

    :raises UserError: if the file does not configure logging
    """
    schema = ZConfig.loadSchemaFile(io.StringIO(_SCHEMA))
    try:
        parsed, _ = ZConfig.loadConfig(schema, str(path))
    except ZConfig.ConfigurationError as error:
        where = f"{path}:{error.lineno}" if getattr(error, "lineno", None) else str(path)
        raise UserError(f"{where}: {error.message}") from error
    except (OSError, UnicodeError) as error:
        raise UserError(f"{path}: {error}") from error
    loggers = [parsed.eventlog, *parsed.loggers]
    return [logger for logger in loggers if logger is not None]


class _Masking(logging.Formatter):
    """Masks the output of another formatter."""

    def __init__(self, formatter: logging.Formatter, mask: Mask) -> None:
        super().__init__()
        self._formatter = formatter
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        return self._mask(self._formatter.format(record))
