from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zodbshootout.client.specification import ClientKind
from zodbshootout.client.storage_info import Address, Limit, Requirement
from zodbshootout.contenders.kind import SectionKind


class ZEOSection(SectionKind):
    """``<zeoclient>`` and ``<clientstorage>``."""

    section_classes = ("ZODB.config.ZEOClient", "ZEO.zconfig.ClientStorageConfig")
    storage_name = "ClientStorage"
    prefetches = True
    holds_changes = False

    @classmethod
    def limits(cls, section: Any) -> Sequence[Limit]:
        loops = Limit(
            "ClientStorage: each DB runs an event loop of its own, and in a process patched by "
            "gevent there can be one; use --threads shared",
            client_kinds=frozenset({ClientKind.GREENLET}),
            databases=2,
            of_process=True,
        )
        persistent = Limit(
            "ClientStorage: its persistent cache file serves one DB at a time; "
            "use --threads shared, or -c 1",
            databases=2,
        )
        has_file = any(getattr(section.config, name, None) for name in ("client", "cache_path"))
        return [loops, persistent] if has_file else [loops]

    @classmethod
    def requirements(cls, section: Any) -> Sequence[Requirement]:
        addresses = tuple(server.address for server in section.config.server)
        printable = [_printable(address) for address in addresses]
        # With the port alone it would listen on every interface, and let everybody in.
        command = f"runzeo -a {printable[0]} -f Data.fs"
        return [
            Requirement(
                addresses,
                f"no ZEO server at {' or '.join(printable)}; start one there: {command}",
            )
        ]


def _printable(address: Address) -> str:
    return address if isinstance(address, str) else f"{address[0] or 'localhost'}:{address[1]}"


KINDS = (ZEOSection,)
