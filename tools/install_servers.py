"""Install the servers, PyPy and Chromium that the tests start, and compilers.

``python tools/install_servers.py`` installs missing packages as root on Debian and its derivatives,
and otherwise prints the commands to type.  It needs only the standard library, because it runs
before anything is built.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from zodbshootout.servers import ServerFailed
from zodbshootout.servers.installation import MEMCACHED, MYSQL, PGBOUNCER, POSTGRESQL, Installation

APT_GET = ("apt-get", "-o", "DPkg::Lock::Timeout=300")
INSTALL = ("install", "--no-install-recommends")
POSTGRESQL_SETTINGS = Path("/etc/postgresql-common/createcluster.d/zodbshootout-tests.conf")
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Requirement:
    """Something that has to be installed on the machine."""

    name: str
    is_met: Callable[[], bool]
    debian: str
    """The Debian packages that contain it."""
    brew: str
    """The command that installs it on macOS."""


def has_programs(installation: Installation, *programs: str) -> bool:
    """Return whether a server has these programs."""
    try:
        for program in programs:
            installation.program(program, given=None)
    except ServerFailed:
        return False
    return True


def has_library(*names: str) -> bool:
    """Return whether pkg-config knows a library, and so its headers, by one of its names."""
    return shutil.which("pkg-config") is not None and any(
        subprocess.run(["pkg-config", "--exists", name], check=False).returncode == 0
        for name in names
    )


def has_compiler() -> bool:
    """Return whether the compiler with which this Python builds extensions is installed."""
    command = shlex.split(sysconfig.get_config_var("CC") or "cc")
    return shutil.which(command[0]) is not None


REQUIREMENTS = (
    Requirement(
        "PostgreSQL",
        lambda: has_programs(POSTGRESQL, "postgres", "initdb"),
        POSTGRESQL.packages,
        "brew install postgresql@17",
    ),
    Requirement(
        "PgBouncer",
        lambda: has_programs(PGBOUNCER, "pgbouncer"),
        PGBOUNCER.packages,
        "brew install pgbouncer",
    ),
    Requirement(
        "MariaDB",
        lambda: has_programs(MYSQL, "mariadbd", "mariadb-install-db", "my_print_defaults"),
        MYSQL.packages,
        "brew install mariadb",
    ),
    Requirement(
        "memcached",
        lambda: has_programs(MEMCACHED, "memcached"),
        MEMCACHED.packages,
        "brew install memcached",
    ),
    Requirement("a C compiler", has_compiler, "gcc libc6-dev", "xcode-select --install"),
    Requirement(
        f"the headers of {PYTHON}",
        lambda: Path(sysconfig.get_path("include"), "Python.h").exists(),
        f"{PYTHON}-dev",
        "xcode-select --install",
    ),
    Requirement(
        "pkg-config",
        lambda: shutil.which("pkg-config") is not None,
        "pkg-config",
        "brew install pkgconf",
    ),
    Requirement(
        "the headers of MariaDB's client, for mysqlclient",
        lambda: has_library("libmariadb", "mariadb", "mysqlclient"),
        "libmariadb-dev",
        "brew install mariadb",
    ),
    Requirement(
        "the headers of PostgreSQL's client, for psycopg2",
        lambda: has_library("libpq"),
        "libpq-dev",
        "brew install libpq",
    ),
    Requirement(
        "PyPy",
        lambda: shutil.which("pypy3") is not None,
        "pypy3 pypy3-venv pypy3-dev g++",
        "brew install pypy3",
    ),
    Requirement(
        "Chromium",
        lambda: any(map(shutil.which, ("chromium", "chromium-browser"))),
        "chromium",
        "brew install --cask chromium",
    ),
    Requirement(
        "strace",
        lambda: sys.platform != "linux" or shutil.which("strace") is not None,
        "strace",
        "",  # Linux only
    ),
    # There is a wheel of pylibmc for some versions of Python only.
    Requirement(
        "the headers of libmemcached, for pylibmc",
        lambda: has_library("libmemcached"),
        "libmemcached-dev zlib1g-dev",
        "brew install libmemcached && export LIBMEMCACHED=$(brew --prefix libmemcached)",
    ),
)


def main() -> int:
    """Install missing requirements, or print the commands that do; return the exit status."""
    missing = missing_requirements()
    if missing and is_debian() and os.geteuid() == 0:
        install(missing)
        missing = missing_requirements()
    for requirement in missing:
        print_error(f"missing: {requirement.name}; install it: {advice(requirement)}")
    return 1 if missing else 0


def missing_requirements() -> list[Requirement]:
    """Return the requirements that are not met."""
    return [requirement for requirement in REQUIREMENTS if not requirement.is_met()]


def is_debian() -> bool:
    """Return whether this is Debian, or a derivative such as Ubuntu."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return False
    return "debian" in [release.get("ID"), *release.get("ID_LIKE", "").split()]


def install(missing: Sequence[Requirement]) -> None:
    """Install packages without removing others or asking questions."""
    packages = [package for requirement in missing for package in requirement.debian.split()]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # A package source that does not answer may be unrelated to these packages.
    subprocess.run([*APT_GET, "update"], env=environment, check=False)
    with without_cluster():
        subprocess.run(
            [*APT_GET, *INSTALL, "--yes", "--no-remove", *packages], env=environment, check=False
        )


@contextmanager
def without_cluster() -> Iterator[None]:
    """Keep PostgreSQL's package from creating a cluster, and so from starting a server.

    The setting is one of Debian's postgresql-common, and may precede the package.  memcached's
    package has no such setting: it starts a service on the loopback interface if the system has a
    service manager.
    """
    made = [parent for parent in POSTGRESQL_SETTINGS.parents if not parent.exists()]
    POSTGRESQL_SETTINGS.parent.mkdir(parents=True, exist_ok=True)
    POSTGRESQL_SETTINGS.write_text("create_main_cluster = false\n", encoding="utf-8")
    try:
        yield
    finally:
        POSTGRESQL_SETTINGS.unlink()
        for directory in made:
            if not any(directory.iterdir()):
                directory.rmdir()


def advice(requirement: Requirement) -> str:
    """Return the command that installs a requirement."""
    if sys.platform == "darwin":
        return requirement.brew
    command = f"apt-get {' '.join(INSTALL)} {requirement.debian}"
    return f"sudo {command}" if is_debian() else f"on Debian that is {command}"


def print_error(message: str) -> None:
    """Print a line to standard error."""
    sys.stderr.write(f"{message}\n")


if __name__ == "__main__":
    sys.exit(main())
