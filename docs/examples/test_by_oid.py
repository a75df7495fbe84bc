from shootout_by_oid import ByOID

from zodbshootout.api.testing import measured


def test_every_iteration_loads_every_object() -> None:
    sample = measured(ByOID, 3, threads=2, objects=10)
    assert sample.iterations == 2 * 3
    assert sample.counts["loads"] >= sample.iterations * 10
