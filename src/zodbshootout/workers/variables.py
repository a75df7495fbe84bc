"""The environment variables and CPUs that workers get from the command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

_KEPT = (
    "PATH", "HOME", "USER", "LOGNAME", "TEMP", "TMP", "TMPDIR", "PYTHONPATH", "PYTHONHASHSEED",
    "PYTHON_CPU_COUNT", "PYTHON_GIL", "PYPERF_PERF_RECORD_DATA_DIR",
    "PYPERF_PERF_RECORD_EXTRA_OPTS", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
"""The variables that pyperf keeps, and others that Python and dynamic libraries read."""
_KEPT_PREFIXES = (
    "PG", "MYSQL", "MARIADB", "ORACLE", "TNS_", "NLS_", "RS_", "RELSTORAGE_", "ZEO_", "ZODB_",
    "GEVENT",
)  # fmt: skip
"""The prefixes of variables that database clients and storages read."""
_LOCALE_PREFIXES = ("LANG", "LC_")


def worker_environment(
    environment: Mapping[str, str], inherit: Sequence[str], *, locale: bool, copy_all: bool
) -> dict[str, str]:
    """Return the environment variables of workers.

    With *copy_all*, the result is all of *environment*.  Otherwise it has the variables that Python
    and storages need, those named in *inherit* and, with *locale*, those of the locale.  Other
    variables would disturb timings, which depend on the length of the environment.
    """
    if copy_all:
        return dict(environment)
    locales = [name for name in environment if locale and name.startswith(_LOCALE_PREFIXES)]
    return for_storages(environment, [*_KEPT, *locales, *inherit])


def for_storages(environment: Mapping[str, str], inherit: Sequence[str]) -> dict[str, str]:
    """Return the variables that storages need on any host, and those named in *inherit*."""
    return {
        name: value
        for name, value in environment.items()
        if name in inherit or name.startswith(_KEPT_PREFIXES)
    }


def default_affinity() -> str:
    """Return the CPUs that this process may use, for pyperf's ``--affinity``; empty if unknown.

    Without ``--affinity``, pyperf would pin workers to isolated CPUs, if there are any, and all
    clients of a crew would share these few CPUs.
    """
    if not hasattr(os, "sched_getaffinity"):
        return ""
    return ",".join(map(str, sorted(os.sched_getaffinity(0))))
