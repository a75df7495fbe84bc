"""Reading a ZConfig file that configures logging."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ZConfig

from zodbshootout.config.configuration import ConfigurationError

_SCHEMA = """
<schema>
  <import package="ZConfig.components.logger"/>
  <section type="eventlog" name="*" attribute="eventlog"/>
  <multisection type="logger" name="*" attribute="loggers"/>
</schema>
"""


def read_loggers(path: Path) -> Sequence[Any]:
    """Return what configures each logger when it is called.

    :raises ConfigurationError: naming the file and what is wrong with it
    """
    schema = ZConfig.loadSchemaFile(io.StringIO(_SCHEMA))
    try:
        parsed, _ = ZConfig.loadConfig(schema, str(path))
    except ZConfig.ConfigurationError as error:
        where = f"{path}:{error.lineno}" if getattr(error, "lineno", None) else str(path)
        raise ConfigurationError(f"{where}: {error.message}") from error
    loggers = [parsed.eventlog, *parsed.loggers]
    return [logger for logger in loggers if logger is not None]
