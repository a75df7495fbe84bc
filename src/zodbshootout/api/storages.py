"""The names that a type of storage needs.  Every Python in which clients run can import them."""

from zodbshootout.client.reachability import Requirement
from zodbshootout.client.storage_types import PrivateSection, StorageType
from zodbshootout.model.outcome import Unsupported
from zodbshootout.model.specification import ClientKind
from zodbshootout.model.storage_facts import (
    OPERATING_SYSTEM,
    Advice,
    CacheUse,
    DiskSize,
    Durability,
    Limit,
    Sharing,
    StorageInfo,
    server_cache,
)

__all__ = [
    "OPERATING_SYSTEM",
    "Advice", "CacheUse", "ClientKind", "DiskSize", "Durability", "Limit", "PrivateSection",
    "Requirement", "Sharing", "StorageInfo", "StorageType", "Unsupported",
    "server_cache",
]  # fmt: skip
