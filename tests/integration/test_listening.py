"""Run private servers on an address other than 127.0.0.1."""

from __future__ import annotations

import pytest

from tests.integration.command import cells, left_behind, open_directory, run

pytestmark = pytest.mark.servers("PostgreSQL", "MariaDB")

CONFIGURATION = """
%import ZEO
%import relstorage
%import zodbshootout.mysql
<zeoserver main>
    listen 127.0.0.2
    ssl true
    <filestorage>
        path $scratch/main.fs
    </filestorage>
</zeoserver>
<postgresqlserver pg>
    listen 127.0.0.2
    database bench
    user bench
</postgresqlserver>
<mysqlserver my>
    listen 127.0.0.2
</mysqlserver>
<zodb zeo>
    <clientstorage>
        server $main
        <ssl>
            certificate $main_certificate
            key $main_key
            authenticate $main_authority
        </ssl>
    </clientstorage>
</zodb>
<zodb postgresql>
    <relstorage>
        keep-history false
        <postgresql>
            dsn host=$pg_host port=$pg_port dbname=bench user=bench password=$pg_password
        </postgresql>
    </relstorage>
</zodb>
<zodb mysql>
    <relstorage>
        keep-history false
        <mysql-or-mariadb>
            host $my_host
            port $my_port
            user zodbshootout
            passwd $my_password
            db zodbshootout
            driver PyMySQL
        </mysql-or-mariadb>
    </relstorage>
</zodb>
"""


def test_servers_that_listen_on_another_address_are_measured() -> None:
    with open_directory() as home:
        (home / "x.conf").write_text(CONFIGURATION)
        words = ("add", "-c", "1", "--object-counts", "5", "-p", "1", "-n", "1")
        done = run(home, "x.conf", *words, "--min-time", "0.01", "-o", "a.json")
        assert done.status == 0, done.err + done.out
        assert {state for state, _ in cells(home / "a.cells.jsonl").values()} == {"measured"}
        assert left_behind(home) == []
