from pathlib import Path

from zodbshootout.client.database import Database
from zodbshootout.model.specification import Storage
from zodbshootout.model.storage_facts import Durability

SECTION = "%import acme\n<zodb acme>\n<acme>\npath $here/acme.fs\n</acme>\n</zodb>\n"


def test_the_cache_is_emptied_and_counts_its_misses(tmp_path: Path) -> None:
    with Database(Storage(SECTION, names={"here": str(tmp_path)})) as database:
        assert database.knows_caches
        assert database.info().promise == (Durability.SYNCED, "")
        assert "Acme cache" in database.own_caches()
        database.empty_caches()
        before = database.cache_use()
        with database.db.transaction() as connection:
            assert len(connection.root()) == 0
        use = database.cache_use().since(before)
        assert use.misses
