"""Instances of applications: configurations that people have, with directories and data."""

from __future__ import annotations

import shutil
from pathlib import Path

CONFIGURATIONS = Path(__file__).parent / "configurations"
ROOTS = ("/srv/plone", "/opt/zenoss", "/app", "/data")
"""The directories that the configurations are about."""
VARIABLES = {
    "CLIENT_HOME": "/data/client",
    "DEBUG_MODE": "off",
    "RELSTORAGE_BLOB_CACHE_SIZE": "100mb",
    "RELSTORAGE_BLOB_CACHE_SIZE_CHECK_EXTERNAL": "false",
    "RELSTORAGE_COMMIT_LOCK_TIMEOUT": "30",
    "RELSTORAGE_DSN": "dbname='plone' user='plone' host='db.invalid' password='t0psecret-env'",
    "RELSTORAGE_KEEP_HISTORY": "true",
    "RELSTORAGE_NAME": "storage",
    "RELSTORAGE_READ_ONLY": "off",
    "RELSTORAGE_SHARED_BLOB_DIR": "false",
    "SECURITY_POLICY_IMPLEMENTATION": "C",
    "ZEO_ADDRESS": "zeo.invalid:8100",
    "ZEO_CLIENT_CACHE_SIZE": "128MB",
    "ZEO_CLIENT_READ_ONLY_FALLBACK": "false",
    "ZEO_DROP_CACHE_RATHER_VERIFY": "false",
    "ZEO_PACK_KEEP_OLD": "true",
    "ZEO_PORT": "8100",
    "ZEO_READ_ONLY": "false",
    "ZEO_SHARED_BLOB_DIR": "off",
    "ZEO_STORAGE": "1",
    "ZODB_CACHE_SIZE": "50000",
    "ZOPE_FORM_MEMORY_LIMIT": "1MB",
}
"""The environment variables of the configurations, with the values that images have by default."""
SECRET = "t0psecret"
"""The beginning of every password in the configurations."""
_DIRECTORIES = (
    "app/var/filestorage", "data/filestorage", "opt/zenoss", "srv/plone/export",
    "srv/plone/instance/var", "srv/plone/var/changes", "srv/plone/var/filestorage",
    "srv/plone/var/cache", "srv/plone/var/instance", "var",
)  # fmt: skip
"""Directories that have to exist before ZConfig accepts the paths of files in them."""


def names() -> list[str]:
    """Return the names of all configurations but for those that others include."""
    return sorted(str(path.relative_to(CONFIGURATIONS)) for path in CONFIGURATIONS.glob("*/*.conf"))


def placed(name: str, directory: Path) -> Path:
    """Put a configuration, the files that it includes and its directories below *directory*."""
    origin = Path(name).parts[0]
    shutil.copytree(CONFIGURATIONS / origin, directory / origin, dirs_exist_ok=True)
    for path in (directory / origin).rglob("*.conf"):
        path.write_text(with_roots_below(directory, path.read_text()))
    for path in map(directory.joinpath, _DIRECTORIES):
        path.mkdir(parents=True, exist_ok=True)
    return directory / name


def with_roots_below(directory: Path, text: str) -> str:
    """Return the text of a configuration with *directory* in front of each root in it."""
    for root in ROOTS:
        text = text.replace(f" {root}", f" {directory}{root}")
    return text
