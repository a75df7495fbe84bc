from __future__ import annotations

from zodbshootout.model.quantities import QUANTITIES

ADDED = {
    "client_written_bytes": "3000 0",
    "stores": 33,
    "work_per_iteration": 10,
    "benchmark_counted": "objects",
    "object_size_bytes": 300,
}
SERVED = {**ADDED, "server_place": "this machine, private", "server_written_bytes": "3000 6000"}


def test_the_write_amplification_is_what_all_have_written_for_a_byte_of_the_objects() -> None:
    amplification = QUANTITIES["amplification"]
    assert amplification.read(ADDED, ()) == [1.0, 0.0]
    assert amplification.read(SERVED, ()) == [2.0, 2.0]


def test_the_write_amplification_is_unknown_without_all_that_it_is_derived_from() -> None:
    amplification = QUANTITIES["amplification"]
    assert amplification.read({**ADDED, "server_place": "elsewhere"}, ()) is None
    assert amplification.read({**ADDED, "stores": 0}, ()) is None
    assert amplification.read({**ADDED, "benchmark_counted": "transactions"}, ()) is None
    assert amplification.read({}, ()) is None
