from __future__ import annotations

from zodbshootout.contenders.layer import Layer, Sharing


class MappingStorageLayer(Layer):
    """MappingStorage: dictionaries in the memory of one process."""

    storage_class = "ZODB.MappingStorage.MappingStorage"
    section_classes = ("ZODB.config.MappingStorage",)
    sharing = Sharing.VOLATILE
    prefetches = False

    def caches_left(self) -> tuple[str, ...]:
        return ()


LAYERS = (MappingStorageLayer,)
