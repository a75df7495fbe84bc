from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from zodbshootout.contenders.layer import (
    Layer,
    Sharing,
    inner_sections,
    layer_of_section,
    nested_sections,
    written_sections,
)
from zodbshootout.model import CrewShape


class DemoStorageLayer(Layer):
    """DemoStorage: changes over a base that stays as it is; by default they stay in memory."""

    storage_class = "ZODB.DemoStorage.DemoStorage"
    section_classes = ("ZODB.config.DemoStorage",)
    wraps = ("changes", "base")
    # Its changes can be in a file that one DB at a time can open; it has no other means of
    # learning what another DB has changed there.
    sharing = Sharing.EXCLUSIVE
    prefetches = False
    zap_obstacle = "its base stays as it is"

    def caches_left(self) -> tuple[str, ...]:
        return ()

    def pack_flaw(self) -> str | None:
        if hasattr(self.storage, "_temporary_changes"):
            return None
        # ZODB 6.4 does not set it where it looks for it later.
        return "DemoStorage cannot pack changes that are kept elsewhere than in its memory"

    def keepers(self) -> Sequence[Layer]:
        changes, _ = self.inner
        return (changes,)

    @classmethod
    def keeping_sections(cls, section: Any) -> Sequence[Any]:
        return [inner for inner in inner_sections(section) if inner.name == "changes"]

    @classmethod
    def sharing_of(cls, section: Any) -> Sharing:
        return cls.sharing if cls.keeping_sections(section) else Sharing.VOLATILE

    @classmethod
    def refusal(cls, section: Any, shape: CrewShape) -> str | None:
        for layer in _known(cls.keeping_sections(section), written_sections):
            if not layer.holds_changes:
                return (
                    f"DemoStorage cannot keep its changes in {layer.name()}; have it keep them in "
                    "a <filestorage changes>"
                )
        if shape.shared and shape.size > 1:
            for layer in _known(inner_sections(section), nested_sections):
                if not layer.serves_threads:
                    return (
                        f"DemoStorage uses one {layer.name()} in all threads, which that is not "
                        "made for; use -c 1"
                    )
        return None


def _known(sections: Sequence[Any], walk: Any) -> Iterator[type[Layer]]:
    """Return the layers that are known of these sections and of those within them."""
    for section in sections:
        yield from filter(None, map(layer_of_section, walk(section)))


LAYERS = (DemoStorageLayer,)
