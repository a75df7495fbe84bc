"""The names that a configuration can use for the addresses and passwords of its servers."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from zodbshootout.config.configuration import SCRATCH, Source
from zodbshootout.errors import UserError
from zodbshootout.servers.address import HOST, is_unspecified, joined, reserved_port
from zodbshootout.servers.certificates import certificates

_LEGAL_NAME = re.compile(r"[a-z]\w*", re.ASCII)


@contextmanager
def given_names(
    source: Source, scratch: Path, listen: Mapping[str, str] | None = None
) -> Iterator[dict[str, str]]:
    """Return the names that a run defines for a configuration, with their values.

    These are ``$scratch``, a directory of the run, and for each server *NAME* its address, host,
    port, password and, where they are used, certificates.  The ports are reserved as long as the
    context lasts.  Servers *listen* on the loopback interface, or where that says.

    :raises UserError: when a server cannot have the name it has, or cannot listen where
        it should, or certificates cannot be made
    """
    _check_legal(source)
    own = scratch / "files"
    own.mkdir(
        mode=0o700, exist_ok=True
    )  # root makes the scratch directory enterable for other users
    names = {SCRATCH: str(own)}
    with ExitStack() as stack:
        for server in dict.fromkeys(source.server_names):
            host = (listen or {}).get(server, HOST)
            port = _port(source, server, host, stack)
            mine = {
                server: joined(host, port),
                f"{server}_host": host,
                f"{server}_port": str(port),
                f"{server}_password": secrets.token_hex(16),
            }
            if _mentions_certificates(source, server):
                made = certificates(scratch / f"certificates-{server}", host)
                mine |= {f"{server}_{name}": path for name, path in made.items()}
            if clashes := sorted(names.keys() & mine.keys()):
                raise UserError(
                    f"{source.path}: ${clashes[0]} would belong to two servers; "
                    f"give server {server!r} another name"
                )
            names |= mine
        yield names


def _port(source: Source, server: str, host: str, stack: ExitStack) -> int:
    if is_unspecified(host):
        raise UserError(
            f"{source.path}: server {server}: listen {host} is no address that clients could use; "
            "name one of this host's"
        )
    try:
        return stack.enter_context(reserved_port(host))
    except OSError as error:
        raise UserError(
            f"{source.path}: server {server}: listen {host} is no address of this host: "
            f"{error.strerror}"
        ) from None


def _check_legal(source: Source) -> None:
    for name in source.server_names:
        if not _LEGAL_NAME.fullmatch(name) or name == SCRATCH:
            raise UserError(
                f"{source.path}: a server cannot be called {name!r}; use letters, digits and _, "
                f"begin with a letter, and leave {SCRATCH!r} to the run"
            )


def _mentions_certificates(source: Source, server: str) -> bool:
    name = rf"\$\{{?{re.escape(server)}_(certificate|key|authority)\b"
    return re.search(rf"^[^#\n]*{name}", source.whole, re.MULTILINE | re.IGNORECASE) is not None
