from __future__ import annotations

from zodbshootout.contenders.layer import Layer, Sharing


class MappingStorageLayer(Layer):
    """MappingStorage: dictionaries in the memory of one process."""

    storage_class = "ZODB.MappingStorage.MappingStorage"
    section_classes = ("ZODB.config.MappingStorage",)
    sharing = Sharing.VOLATILE
    prefetches = False


class DemoStorageLayer(Layer):
    """DemoStorage: changes over a base that stays as it is; by default they stay in memory."""

    storage_class = "ZODB.DemoStorage.DemoStorage"
    section_classes = ("ZODB.config.DemoStorage",)
    sharing = Sharing.VOLATILE
    prefetches = False


LAYERS = (MappingStorageLayer, DemoStorageLayer)
