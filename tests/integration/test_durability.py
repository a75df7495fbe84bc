"""Promises of contenders about their commits, and the system calls of these commits."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration import committing
from tests.integration.command import TESTS, environment
from tests.integration.committing import COMMITS

pytestmark = pytest.mark.servers("PostgreSQL", "MariaDB", "strace")

POSTGRESQL = (
    "<postgresql>\ndsn dbname='{}' user='zodbshootout' host='$pg_host' port='$pg_port' "
    "password='$pg_password'{}\n</postgresql>\n"
)
MYSQL = (
    "<mysql-or-mariadb>\nhost ${0}_host\nport ${0}_port\ndb zodbshootout\nuser zodbshootout\n"
    "passwd ${0}_password\n</mysql-or-mariadb>\n"
)
SQLITE = "<sqlite3>\ndata-dir $scratch/{0}\n<pragmas>\nsynchronous {0}\n</pragmas>\n</sqlite3>\n"
CHANGES = "<filestorage changes>\npath $scratch/changes.fs\n</filestorage>\n"
SERVERS = """
%import relstorage
%import zodbshootout.mysql
%import zc.zlibstorage
<zeoserver file>
  <zlibstorage>
    <filestorage>
      path $scratch/served.fs
    </filestorage>
  </zlibstorage>
</zeoserver>
<zeoserver dictionary>
  <mappingstorage/>
</zeoserver>
<postgresqlserver pg>
  database strict
  database lax
  <settings>
    wal_writer_delay 10s
  </settings>
</postgresqlserver>
<mysqlserver strict>
  <settings>
    log-bin binlog
    sync_binlog 1
  </settings>
</mysqlserver>
<mysqlserver lax>
  <settings>
    innodb_flush_log_at_trx_commit 2
    innodb_flush_log_at_timeout 2700
  </settings>
</mysqlserver>
"""
SYNCED, MAY_LOSE, IN_MEMORY = "synced", "may lose the last commits", "in memory"
PRIVATE = "this machine, private"
CONTENDERS = {
    "fs": (
        "<filestorage>\npath $scratch/x.fs\n</filestorage>\n",
        (SYNCED, "", None),
    ),
    "changes": (
        f"<demostorage>\n<mappingstorage/>\n{CHANGES}</demostorage>\n",
        (SYNCED, "", None),
    ),
    "demo": (
        "<demostorage>\n<filestorage>\npath $scratch/base.fs\n</filestorage>\n</demostorage>\n",
        (IN_MEMORY, "", None),
    ),
    "zeo": ("<zeoclient>\nserver $file\n</zeoclient>\n", (SYNCED, "", PRIVATE)),
    "zeo_memory": ("<zeoclient>\nserver $dictionary\n</zeoclient>\n", (IN_MEMORY, "", PRIVATE)),
    "sqlite": (
        "<relstorage>\n<sqlite3>\ndata-dir $scratch/delivered\n</sqlite3>\n</relstorage>\n",
        (MAY_LOSE, "synchronous NORMAL", None),
    ),
    "sqlite_off": (
        f"<relstorage>\n{SQLITE.format('off')}</relstorage>\n",
        (MAY_LOSE, "synchronous OFF", None),
    ),
    "sqlite_full": (
        f"<relstorage>\n{SQLITE.format('full')}</relstorage>\n",
        (SYNCED, "synchronous FULL", None),
    ),
    "compressed": (
        f"<zlibstorage>\n<relstorage>\n{SQLITE.format('extra')}</relstorage>\n</zlibstorage>\n",
        (SYNCED, "synchronous EXTRA", None),
    ),
    "postgresql": (
        f"<relstorage>\n{POSTGRESQL.format('strict', '')}</relstorage>\n",
        (SYNCED, "synchronous_commit on", PRIVATE),
    ),
    "postgresql_off": (
        "<relstorage>\n"
        + POSTGRESQL.format("lax", " options='-c synchronous_commit=off'")
        + "</relstorage>\n",
        (MAY_LOSE, "synchronous_commit off", PRIVATE),
    ),
    "mysql": (
        f"<relstorage>\n{MYSQL.format('strict')}</relstorage>\n",
        (SYNCED, "innodb_flush_log_at_trx_commit 1, sync_binlog 1", PRIVATE),
    ),
    "mysql_2": (
        f"<relstorage>\n{MYSQL.format('lax')}</relstorage>\n",
        (MAY_LOSE, "innodb_flush_log_at_trx_commit 2", PRIVATE),
    ),
}
"""The sections of contenders, with the durability, its detail and the place of the server."""
TRACED = "fsync,fdatasync,sync_file_range,msync"


@pytest.mark.skipif(sys.platform != "linux", reason="strace exists for Linux only")
def test_a_contender_syncs_as_many_commits_as_it_says(place: Path) -> None:
    sections = [f"<zodb {name}>\n{text}</zodb>\n" for name, (text, _) in CONTENDERS.items()]
    (place / "x.conf").write_text("".join([SERVERS, *sections]))
    (place / "run").mkdir(mode=0o755)
    words = [sys.executable, "-m", committing.__name__, "x.conf", str(place / "run")]
    done = subprocess.run(
        ["strace", "-f", "--seccomp-bpf", "-o", "trace", "-e", f"trace=kill,{TRACED}", *words],
        cwd=place, env=environment(place, PYTHONPATH=str(TESTS.parent)), check=True, text=True,
        stdout=subprocess.PIPE, timeout=280,
    )  # fmt: skip
    answers = {name: tuple(facts) for name, *facts in map(json.loads, done.stdout.splitlines())}
    assert answers == {name: facts for name, (_, facts) in CONTENDERS.items()}
    trace = (place / "trace").read_text()
    # The parts are before the first mark, between two of a contender, between two contenders, ...
    parts = re.sub(r"^(\d+) +kill\(\1, 0\).*$", "MARK", trace, flags=re.MULTILINE).split("MARK")
    syncs = [len(re.findall(rf"\b({TRACED.replace(',', '|')})\(", part)) for part in parts[1::2]]
    counted = dict(zip(answers, syncs, strict=True))
    for name, (durability, *_) in answers.items():
        if durability == SYNCED:
            assert counted[name] >= COMMITS, counted
        else:
            # Servers may sync older commits meanwhile.
            assert counted[name] < COMMITS / 2, counted
