from pathlib import Path

from zodbshootout.api.storages import Durability
from zodbshootout.api.testing import opened


def test_the_cache_is_emptied_and_counts_its_misses(tmp_path: Path) -> None:
    section = f"<acme>\npath {tmp_path}/acme.fs\n</acme>\n"
    with opened(f"%import acme\n<zodb acme>\n{section}</zodb>\n") as database:
        assert database.facts.knows_caches
        assert database.info().promise == (Durability.SYNCED, "")
        assert "Acme cache" in database.own_caches()
        database.empty_caches()
        before = database.cache_use()
        with database.db.transaction() as connection:
            assert len(connection.root()) == 0
        use = database.cache_use().since(before)
        assert use.misses
