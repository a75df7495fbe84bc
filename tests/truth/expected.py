"""The calls that each benchmark makes, in seconds of the fake storage."""

from __future__ import annotations

from tests.fakes import (
    CHECK,
    COMMIT,
    LOAD,
    NEW_OID,
    POLL,
    PREFETCH,
    STORE,
    SYNC,
)

N = 10
HALF = 5
MAPPING = 1
READ_AGAIN = 1
"""Further loads of the mapping: Connection.get loads its record, and so does the mapping."""
BEGIN = SYNC + POLL
EXPECTED = {
    "add": BEGIN + N * NEW_OID + (N + MAPPING) * STORE + COMMIT,
    "update": BEGIN + N * STORE + COMMIT,
    "warm": BEGIN + (N + MAPPING + READ_AGAIN) * LOAD,
    "cold": BEGIN + (N + MAPPING + READ_AGAIN) * LOAD,
    "prefetch_cold": BEGIN + PREFETCH + (N + MAPPING + READ_AGAIN) * LOAD,
    "hot": (N + MAPPING) * LOAD,
    "steamin": 0.0,
    "load": LOAD,
    "load_before": LOAD,
    "history": 0.0,
    "store": N * STORE + COMMIT,
    "tpc": COMMIT,
    "ex_commit": BEGIN,
    "im_commit": POLL,
    "readCurrent": BEGIN + N * CHECK + COMMIT,
    "new_oid": N * NEW_OID,
    "conflicts": BEGIN + HALF * STORE + COMMIT,
    # So small a BTree is one record, which contains its only bucket.
    "conflicts_map": BEGIN + (HALF + MAPPING) * STORE + COMMIT,
    "readCurrent_conflicts": BEGIN + N * STORE + N * CHECK + COMMIT,
}
