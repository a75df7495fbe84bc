"""See to it that the servers, PyPy and Chromium are installed that tests start, and compilers.

``python tests/install_servers.py`` installs what is missing where it may, which is as root on
Debian and its descendants, and otherwise says what to type.  It needs the standard library alone:
it comes before everything that has to be built.
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
from zodbshootout.servers.installation import MEMCACHED, MYSQL, POSTGRESQL, Installation

APT_GET = ("apt-get", "-o", "DPkg::Lock::Timeout=300")
INSTALL = ("install", "--no-install-recommends")
POSTGRESQL_SETTINGS = Path("/etc/postgresql-common/createcluster.d/zodbshootout-tests.conf")
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Requirement:
    """Something that has to be installed on the machine."""

    name: str
    is_there: Callable[[], bool]
    debian: str
    """The packages that it is in."""
    brew: str
    """The command that installs it on macOS."""


def has_programs(installation: Installation, *programs: str) -> bool:
    """Say whether a server would find its programs."""
    try:
        for program in programs:
            installation.program(program, given=None)
    except ServerFailed:
        return False
    return True


def has_library(*names: str) -> bool:
    """Say whether pkg-config finds a library by one of its names, and so its headers."""
    return shutil.which("pkg-config") is not None and any(
        subprocess.run(["pkg-config", "--exists", name], check=False).returncode == 0
        for name in names
    )


def has_compiler() -> bool:
    """Say whether there is the compiler with which this Python builds extensions."""
    command = shlex.split(sysconfig.get_config_var("CC") or "cc")
    return shutil.which(command[0]) is not None


REQUIREMENTS = (
    Requirement(
        "PostgreSQL's server",
        lambda: has_programs(POSTGRESQL, "postgres", "initdb"),
        POSTGRESQL.packages,
        "brew install postgresql@17",
    ),
    Requirement(
        "MariaDB's server",
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
    # For some versions of Python there is a wheel of pylibmc, and for others there is none.
    Requirement(
        "the headers of libmemcached, for pylibmc",
        lambda: has_library("libmemcached"),
        "libmemcached-dev zlib1g-dev",
        "brew install libmemcached && export LIBMEMCACHED=$(brew --prefix libmemcached)",
    ),
)


def main() -> int:
    """Install what is missing, or say what it is; return the exit status."""
    missing = missing_requirements()
    if missing and is_debian() and os.geteuid() == 0:
        install(missing)
        missing = missing_requirements()
    for requirement in missing:
        tell(f"missing: {requirement.name}; install it: {advice(requirement)}")
    return 1 if missing else 0


def missing_requirements() -> list[Requirement]:
    """Return the requirements that are not met."""
    return [requirement for requirement in REQUIREMENTS if not requirement.is_there()]


def is_debian() -> bool:
    """Say whether this is Debian, or a system made of it such as Ubuntu."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return False
    return "debian" in [release.get("ID"), *release.get("ID_LIKE", "").split()]


def install(missing: Sequence[Requirement]) -> None:
    """Install packages, and neither remove others nor ask anything."""
    packages = [package for requirement in missing for package in requirement.debian.split()]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # A source that does not answer may be one that has nothing to do with these packages.
    subprocess.run([*APT_GET, "update"], env=environment, check=False)
    with without_cluster():
        subprocess.run(
            [*APT_GET, *INSTALL, "--yes", "--no-remove", *packages], env=environment, check=False
        )


@contextmanager
def without_cluster() -> Iterator[None]:
    """Have PostgreSQL's package make no database of the system's, and so start no server.

    That is a setting of Debian's postgresql-common, which can be there before the package is.
    memcached's package has none: it starts a service on the loopback interface where the system
    has something that starts services.
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
    """Return what to type so that it is there."""
    if sys.platform == "darwin":
        return requirement.brew
    command = f"apt-get {' '.join(INSTALL)} {requirement.debian}"
    return f"sudo {command}" if is_debian() else f"on Debian that is {command}"


def tell(message: str) -> None:
    """Print one line."""
    sys.stderr.write(f"{message}\n")


if __name__ == "__main__":
    sys.exit(main())
