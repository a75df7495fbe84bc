from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from zodbshootout.client.opening import inner_sections, nested_sections
from zodbshootout.client.storage_info import Limit, Sharing
from zodbshootout.contenders.kind import SectionKind, kind_of, written_sections


class DemoStorageSection(SectionKind):
    """``<demostorage>``."""

    section_classes = ("ZODB.config.DemoStorage",)
    storage_name = "DemoStorage"
    sharing = Sharing.EXCLUSIVE
    prefetches = False
    zap_obstacle = "its base stays as it is"

    @classmethod
    def keeping_sections(cls, section: Any) -> Sequence[Any]:
        return [inner for inner in inner_sections(section) if inner.name == "changes"]

    @classmethod
    def sharing_of(cls, section: Any) -> Sharing:
        return cls.sharing if cls.keeping_sections(section) else Sharing.VOLATILE

    @classmethod
    def limits(cls, section: Any) -> Sequence[Limit]:
        never = [
            Limit(
                f"DemoStorage cannot keep its changes in {kind.storage_name}; have it keep them in "
                "a <filestorage changes>"
            )
            for kind in _known(cls.keeping_sections(section), written_sections)
            if not kind.holds_changes
        ]
        alone = [
            Limit(
                f"DemoStorage uses one {kind.storage_name} in all threads, which that is not made "
                "for; use -c 1",
                sharers=2,
            )
            for kind in _known(inner_sections(section), nested_sections)
            if not kind.serves_threads
        ]
        return [*never, *alone]


def _known(
    sections: Iterable[Any], walk: Callable[[Any], Iterator[Any]]
) -> Iterator[type[SectionKind]]:
    """Return the kinds that are known of these sections and of those within them."""
    for section in sections:
        yield from filter(None, map(kind_of, walk(section)))


KINDS = (DemoStorageSection,)
