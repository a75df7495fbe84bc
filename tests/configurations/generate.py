"""Write the configurations that buildout recipes generate.

``python -m tests.configurations.generate`` needs ``plone.recipe.zope2instance`` and
``plone.recipe.zeoserver``, which the tests of the generated files do not.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).parent
SITE = "/srv/plone"
"""The directory of the buildout in the generated files."""

RELSTORAGE_OPTIONS = "keep-history false\nblob-dir /srv/plone/var/blobcache\nblob-cache-size 512MB"
Options = Mapping[str, str]
INSTANCES: Mapping[str, Options] = {
    "filestorage": {"blob-storage": "var/blobstorage", "zodb-temporary-storage": "off"},
    "temporary": {
        "zodb-temporary-storage": "on",
        "environment-vars": "TZ Europe/Berlin\nzope_i18n_compile_mo_files true",
        "zope-conf-additional": (
            "<zodb_db catalog>\n  mount-point /plone/portal_catalog:/site/portal_catalog\n"
            "  container-class Products.ZCatalog.ZCatalog.ZCatalog\n  cache-size 60000\n"
            "  <filestorage>\n    path $CLIENTHOME/catalog.fs\n  </filestorage>\n</zodb_db>\n"
            "<product-config plone>\n  key value\n</product-config>"
        ),
    },
    "zeo": {
        "zeo-client": "on",
        "zeo-address": "zeo1.invalid:8100 zeo2.invalid:8100",
        "zeo-client-cache-size": "300MB",
        "zeo-client-client": "instance",
        "zeo-var": "/srv/plone/var/cache",
        "zeo-username": "client",
        "zeo-password": "t0psecret-zeo",
        "zodb-temporary-storage": "off",
    },
    "postgresql": {
        "rel-storage": (
            "type postgresql\ndsn dbname='plone' user='plone' host='db.invalid' port='5432' "
            f"password='t0psecret-pg'\ncache-local-mb 300\n{RELSTORAGE_OPTIONS}"
        ),
        "zodb-temporary-storage": "off",
    },
    "mysql": {
        "rel-storage": (
            "type mysql\ndb plone\nuser plone\nhost db.invalid\nport 3306\npasswd t0psecret-my\n"
            f"commit-lock-timeout 30\n{RELSTORAGE_OPTIONS}"
        ),
        "zodb-temporary-storage": "on",
    },
    "wrapped": {
        "zlib-storage": "active",
        "blob-storage": "var/blobstorage",
        "zodb-cache-size-bytes": "512MB",
        "zodb-temporary-storage": "off",
    },
    "staging": {
        "before-storage": "2026-01-31T12:00:00",
        "demo-storage": "on",
        "demo-file-storage": "changes/Data.fs",
        "demo-blob-storage": "changes/blobstorage",
        "zodb-temporary-storage": "off",
    },
}
"""The options of each instance, by the name of its file."""
SERVERS: Mapping[str, Options] = {
    "zeo": {"zeo-address": "127.0.0.1:8100", "pack-keep-old": "false"},
}


def main() -> None:
    # Only a buildout needs the recipes.
    from plone.recipe.zeoserver.recipe import Recipe as Server  # type: ignore[import-not-found]
    from plone.recipe.zope2instance.recipe import (  # type: ignore[import-not-found]
        Recipe as Instance,
    )

    for name, options in INSTANCES.items():
        _write(Instance, "build_zope_conf", "zope.conf", options, HERE / "zope2instance" / name)
    for name, options in SERVERS.items():
        _write(Server, "build_zeo_conf", "zeo.conf", options, HERE / "zeoserver" / name)


def _write(recipe: Any, build: str, result: str, options: Options, path: Path) -> None:
    """Write the file that a method of a recipe builds, with :data:`SITE` for its directory."""
    with tempfile.TemporaryDirectory() as directory:
        location = Path(directory, "parts", "instance")
        (location / "etc").mkdir(parents=True)
        part = {"recipe": "", "location": str(location), "eggs": "", "bin-directory": directory}
        buildout = {"buildout": {"directory": directory, "parts-directory": directory}}
        made = recipe.__new__(recipe)
        made.buildout, made.options, made.name = buildout, {**part, **options}, "instance"
        made.wsgi, made.egg = True, mock.Mock()
        getattr(made, build)()
        text = (location / "etc" / result).read_text(encoding="utf-8")
    path.parent.mkdir(exist_ok=True)
    lines = [line.rstrip() for line in text.replace(directory, SITE).splitlines() if line.strip()]
    path.with_suffix(".conf").write_text("\n".join([*lines, ""]), encoding="utf-8")
    sys.stdout.write(f"{path.with_suffix('.conf').relative_to(HERE)}: {len(lines)} lines\n")


if __name__ == "__main__":
    main()
