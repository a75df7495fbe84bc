"""The names that a benchmark needs.  Every Python in which clients run can import them."""

from zodbshootout.client.benchmarks.benchmark import (
    BARE,
    FROM_CACHE,
    FROM_DATABASE,
    UPKEEP,
    WRITING,
    Benchmark,
    Shape,
    Traits,
)
from zodbshootout.client.client import Client
from zodbshootout.client.data.datasets import (
    Dataset,
    add_empty_mappings,
    contents,
    find_objects,
    key_at,
    new_item,
    sets_to_read,
)
from zodbshootout.client.data.objects import records_each
from zodbshootout.client.database import Database
from zodbshootout.model.outcome import CheckFailed, Unsupported
from zodbshootout.model.specification import CrewShape, Parameters
from zodbshootout.model.storage_facts import PICKLE_CACHE, StorageInfo

__all__ = [
    "BARE", "FROM_CACHE", "FROM_DATABASE", "PICKLE_CACHE", "UPKEEP", "WRITING",
    "Benchmark", "CheckFailed", "Client", "CrewShape", "Database", "Dataset", "Parameters",
    "Shape", "StorageInfo", "Traits", "Unsupported",
    "add_empty_mappings", "contents", "find_objects", "key_at", "new_item", "records_each",
    "sets_to_read",
]  # fmt: skip
