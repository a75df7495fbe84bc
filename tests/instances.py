"""Instances of applications: configurations that people have, with directories and data.

An :class:`Instance` runs a command on its configuration, and checks that nothing else of it was
touched::

    with instance(place, "zope2instance/zeo.conf") as site:
        done = site.run("add", "--private")
    assert done.status == 0
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import ZODB
from persistent.mapping import PersistentMapping
from ZODB.blob import Blob
from ZODB.FileStorage import FileStorage

from tests.integration.command import Done, environment

CONFIGURATIONS = Path(__file__).parent / "configurations"
ROOTS = ("/srv/plone", "/opt/zenoss", "/app", "/data")
"""The directories that the configurations are about."""
VARIABLES = {
    "CLIENT_HOME": "/data/client",
    "DEBUG_MODE": "off",
    "RELSTORAGE_BLOB_CACHE_SIZE": "100mb",
    "RELSTORAGE_BLOB_CACHE_SIZE_CHECK_EXTERNAL": "false",
    "RELSTORAGE_COMMIT_LOCK_TIMEOUT": "30",
    "RELSTORAGE_DSN": (
        "dbname='plone' user='plone' host='db.invalid' port='5432' password='t0psecret-env'"
    ),
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
AROUND_SECRETS = (
    "{}$x", "{}${{x", "{}$", "{} # no", "{}'", "{}\\", "{}@", "{}$(X)", "${}", "'{}", "= {}",
    '"{}', "$x{}", "{} {}",
)  # fmt: skip
"""The text around a value that holds a password."""
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


DATABASES = {
    "app/var/filestorage/Data.fs": "app/var/blobstorage",
    "srv/plone/var/filestorage/Data.fs": "srv/plone/var/blobstorage",
    "srv/plone/var/instance/catalog.fs": None,
}
"""The files of the databases in an instance, with the directories of their blobs."""
CACHES = (
    "app/var/1.zec", "app/var/blobstorage.cache/0.blob", "srv/plone/instance/var/blobs/0.blob",
    "srv/plone/var/blobcache/0.blob", "srv/plone/var/cache/instance-1.zec",
)  # fmt: skip
"""Files of clients' caches in an instance."""
OBJECTS = 20
_HOST, _PORT = re.compile(r"\b\w+\.invalid\b"), re.compile(r"\b(3306|5432|8100)\b")
"""The hosts and ports of the servers in the configurations."""
_TRACED = (
    "chmod", "chown", "connect", "creat", "fchmodat", "fchownat", "lchown", "link", "linkat",
    "mkdir", "mkdirat", "mknod", "mknodat", "open", "openat", "openat2", "rename", "renameat",
    "renameat2", "rmdir", "setxattr", "symlink", "symlinkat", "truncate", "unlink", "unlinkat",
    "utime", "utimensat", "utimes",
)  # fmt: skip
"""System calls that open or change a file, or connect; a processor may lack some of them."""

Manifest = Mapping[str, tuple[int, int, int, bytes]]
"""The mode, inode, time of change in ns and content of each file, by its path."""


@dataclass(frozen=True)
class Instance:
    """Configurations, their directories with data, and a server that accepts no connection."""

    directory: Path
    configurations: Sequence[Path]
    server: socket.socket
    variables: Mapping[str, str]
    """The environment variables to which the configurations refer."""

    @property
    def work(self) -> Path:
        """The working directory of commands."""
        return self.directory.parent / "work"

    def run(self, *words: str) -> Done:
        """Run zodbshootout on the configurations, and check that it touches nothing else."""
        files = map(str, self.configurations)
        return self.traced(sys.executable, "-m", "zodbshootout", *files, *words)

    def traced(self, *command: str) -> Done:
        """Run a command, and check that it touches nothing but the configurations."""
        place = self.work
        place.mkdir(exist_ok=True)
        calls = ",".join(f"?{name}" for name in _TRACED)
        tracer = ["strace", "-f", "-y", "--seccomp-bpf", "-o", "trace", "-e", f"trace={calls}"]
        done = subprocess.run(
            [*tracer, *command], cwd=place, env=environment(place, **self.variables), text=True,
            capture_output=True, timeout=280, check=False,
        )  # fmt: skip
        touches = self._touches((place / "trace").read_text(errors="replace"))
        assert touches == [], "\n".join(touches)
        return Done(done.returncode, done.stdout, done.stderr)

    def _touches(self, trace: str) -> list[str]:
        """Return the lines of a trace that open, change or connect to a part of the instance."""
        part = re.compile(rf"{self.directory}|htons\({self.server.getsockname()[1]}\)")
        origins = "|".join({re.escape(str(path.parent)) for path in self.configurations})
        # The end of a call that another process interrupts says no more than its beginning.
        allowed = re.compile(rf' resumed>|"({origins})/[^"]*\.conf", O_RDONLY')
        return [
            line for line in trace.splitlines() if part.search(line) and not allowed.search(line)
        ]

    def has_a_client(self) -> bool:
        """Return whether a client has begun to connect to the server."""
        self.server.setblocking(False)
        try:
            connection, _ = self.server.accept()
        except BlockingIOError:
            return False
        connection.close()
        return True


@contextmanager
def instance(place: Path, *names: str) -> Iterator[Instance]:
    """Make an instance with configurations, and check at the end that it is as it was.

    The servers that the configurations name are one that accepts no connection.
    """
    directory = place / "site"
    directory.mkdir()
    configurations = [placed(name, directory) for name in names]
    with socket.create_server(("127.0.0.1", 0)) as server:

        def with_server(text: str) -> str:
            return _PORT.sub(str(server.getsockname()[1]), _HOST.sub("127.0.0.1", text))

        for path in directory.rglob("*.conf"):
            path.write_text(with_server(path.read_text()))
        fill(directory)
        variables = {name: with_server(value) for name, value in VARIABLES.items()}
        made = Instance(directory, configurations, server, variables)
        before = manifest(directory)
        yield made
        assert manifest(directory) == before
        assert not made.has_a_client()


def fill(directory: Path) -> None:
    """Put databases and the files of caches into an instance."""
    for name, blobs in DATABASES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        storage = FileStorage(str(path), blob_dir=blobs and str(directory / blobs))
        with closing(ZODB.DB(storage)) as database, database.transaction() as connection:
            root = connection.root()
            root.update({f"page{number}": PersistentMapping() for number in range(OBJECTS)})
            if blobs:
                root["image"] = Blob(b"an image")
    for path in map(directory.joinpath, CACHES):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"a cache")


def manifest(directory: Path) -> Manifest:
    """Return what every file and directory in *directory* is now."""
    return {
        str(path.relative_to(directory)): _state(path)
        for path in sorted([directory, *directory.rglob("*")])
    }


def _state(path: Path) -> tuple[int, int, int, bytes]:
    status = path.lstat()
    content = path.read_bytes() if path.is_file() else b""
    return status.st_mode, status.st_ino, status.st_mtime_ns, content
