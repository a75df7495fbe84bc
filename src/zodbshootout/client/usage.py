"""The processor time and the memory that this process has used."""

from __future__ import annotations

import os
import resource
import sys

from zodbshootout.model.usage import Usage

BLOCK = 512
"""Bytes of a block as ``getrusage`` counts output."""
_MEMORY_UNIT = 1 if sys.platform == "darwin" else 1024
"""The unit of the peak of memory, in bytes: it is the one figure whose unit systems disagree on."""


def usage_now() -> Usage:
    """Return what this process has used so far; the call takes about a microsecond."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(
        os.getpid(),
        own.ru_utime + own.ru_stime,
        ended.ru_utime + ended.ru_stime,
        BLOCK * (own.ru_oublock + ended.ru_oublock),
        _MEMORY_UNIT * own.ru_maxrss,
    )
