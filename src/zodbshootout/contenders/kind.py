"""What is known of a kind of section before it is opened, and where that is registered."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from zodbshootout.client.opening import inner_sections
from zodbshootout.client.storage_info import Advice, Limit, Requirement, Sharing, narrowest
from zodbshootout.client.storages.open_storage import class_names


class SectionKind:
    """What follows from a ZConfig section of one kind."""

    section_classes: ClassVar[tuple[str, ...]] = ()
    """``module.Class`` of what ZConfig makes of such sections."""
    storage_name: ClassVar[str] = ""
    """The class of the storage that it opens."""
    transparent: ClassVar[bool] = False
    """Whether that storage leaves whatever it does not do itself to what it wraps."""
    sharing: ClassVar[Sharing] = Sharing.CONCURRENT
    prefetches: ClassVar[bool | None] = None
    """Whether ``Connection.prefetch`` does anything; ``None`` where only opening it tells."""
    serves_threads: ClassVar[bool] = True
    """Whether one storage object can be used by several threads.

    ZODB gives each connection an object of its own where the storage brings its own MVCC.
    """
    holds_changes: ClassVar[bool] = True
    """Whether a DemoStorage can keep its changes in it."""
    zap_obstacle: ClassVar[str | None] = None
    """Why its data cannot be destroyed."""

    @classmethod
    def sharing_of(cls, section: Any) -> Sharing:  # noqa: ARG003
        """Return which DBs see the data of what *section* opens, but for what is in it."""
        return cls.sharing

    @classmethod
    def keeping_sections(cls, section: Any) -> Sequence[Any]:
        """Return the sections in *section* that what is written is passed on to."""
        return inner_sections(section)

    @classmethod
    def limits(cls, section: Any) -> Sequence[Limit]:  # noqa: ARG003
        """Return which crews cannot use it, but for what follows from its sharing."""
        return ()

    @classmethod
    def requirements(cls, section: Any) -> Sequence[Requirement]:  # noqa: ARG003
        """Return the servers that have to be there before it can be opened."""
        return ()

    @classmethod
    def installation(cls, section: Any) -> str | None:  # noqa: ARG003
        """Return what to type where packages are missing that it needs."""
        return None

    @classmethod
    def advice(cls, section: Any) -> Sequence[Advice]:  # noqa: ARG003
        """Return what to write in its place where it fails."""
        return ()


_MODULES = ("demostorage", "filestorage", "memory", "relstorage", "wrappers", "zeo")
"""The modules of this package with kinds: a new one is one file and its name here."""


@functools.cache
def known_kinds() -> tuple[type[SectionKind], ...]:
    """Return the kinds that are registered."""
    modules = (importlib.import_module(f"zodbshootout.contenders.{name}") for name in _MODULES)
    return tuple(kind for module in modules for kind in module.KINDS)


def kind_of(section: Any) -> type[SectionKind] | None:
    """Return the kind of a section, or ``None`` where it is not known."""
    names = class_names(type(section))
    return next((kind for kind in known_kinds() if names & set(kind.section_classes)), None)


def written_sections(section: Any) -> Iterator[Any]:
    """Return *section* and every section within it that is about what is written to."""
    yield section
    for inner in (kind_of(section) or SectionKind).keeping_sections(section):
        yield from written_sections(inner)


def sharing_of(section: Any) -> Sharing:
    """Return which DBs see the data of what *section* opens, as far as that is known before."""
    known = ((kind_of(each), each) for each in written_sections(section))
    return narrowest(kind.sharing_of(each) for kind, each in known if kind is not None)
