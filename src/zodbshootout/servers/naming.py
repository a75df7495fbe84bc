"""The names that the run defines for the servers of a configuration, such as ``$main_port``.

They stand for addresses, passwords and certificates.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from zodbshootout.config.configuration import SCRATCH, Configuration, ServerSection, Source
from zodbshootout.errors import UserError
from zodbshootout.servers.address import HOST, host_and_port, is_unspecified, reserved_port

_PARTS = ("", "_host", "_port", "_password", "_certificate", "_key", "_authority")
"""Appended to the name of a server, these are the names that belong to it."""
_LEGAL_NAME = re.compile(r"[a-z]\w*", re.ASCII)


@contextmanager
def given_names(
    source: Source, scratch: Path, listen: Mapping[str, str] | None = None
) -> Iterator[dict[str, str]]:
    """Return the names that a run defines for a configuration, with their values.

    These are ``$scratch``, a directory of the run, and for each server *NAME* its address, host,
    port, password and, if they are used, certificates.  The ports are reserved as long as the
    context lasts.  A server listens on the host that *listen* names, or on the loopback interface.

    :raises UserError: if a server has a name that it cannot have, or cannot listen where it should,
        or if certificates cannot be made
    """
    directory = scratch / "files"
    # Root makes the scratch directory enterable for other users.
    directory.mkdir(mode=0o700, exist_ok=True)
    names = {SCRATCH: str(directory)}
    with ExitStack() as stack:
        for server in dict.fromkeys(source.server_names):
            _check_legal(source, server)
            host = (listen or {}).get(server, HOST)
            port = _port(source, server, host, stack)
            own_names = {
                server: host_and_port(host, port),
                f"{server}_host": host,
                f"{server}_port": str(port),
                f"{server}_password": secrets.token_hex(16),
            }
            if _mentions_certificates(source, server):
                files = certificates(scratch / f"certificates-{server}", host)
                own_names |= {f"{server}_{name}": path for name, path in files.items()}
            if clashes := sorted(names.keys() & own_names.keys()):
                raise UserError(
                    f"{source.path}: ${clashes[0]} would belong to two servers; "
                    f"give server {server!r} another name"
                )
            names |= own_names
        yield names


def servers_of(names: Collection[str], configuration: Configuration) -> list[ServerSection]:
    """Return the servers to which some of the *names* belong, and the servers that these need.

    They come in the order of the configuration.
    """
    servers = {server.name: server for server in configuration.servers}
    needed: set[str] = set()
    names = set(names)
    while new := {server for server in servers.keys() - needed if names & _names_of(server)}:
        needed |= new
        names = {name for server in new for name in configuration.text_of(servers[server]).names}
    return [server for name, server in servers.items() if name in needed]


def _names_of(server: str) -> set[str]:
    return {f"{server}{part}" for part in _PARTS}


def needed_servers(section: Any, configuration: Configuration) -> list[ServerSection]:
    """Return the servers that *section* needs, itself or through another, but for itself."""
    names = configuration.text_of(section).names
    return [server for server in servers_of(names, configuration) if server is not section]


def certificates(directory: Path, host: str = HOST) -> dict[str, str]:
    """Make a certificate for this *host* in *directory*; return the paths of its files by name.

    Servers and clients alike identify themselves with ``certificate`` and ``key``; ``authority`` is
    the certificate of the authority that has signed it.

    :raises UserError: if trustme is not installed
    """
    try:
        import trustme
    except ImportError:
        raise UserError(
            "certificates for ssl need trustme; install it: pip install trustme"
        ) from None
    directory.mkdir(mode=0o700, exist_ok=True)
    files = {name: str(directory / f"{name}.pem") for name in ("certificate", "key", "authority")}
    authority = trustme.CA()
    issued = authority.issue_cert(*dict.fromkeys(["localhost", HOST, host]))
    issued.cert_chain_pems[0].write_to_path(files["certificate"])
    issued.private_key_pem.write_to_path(files["key"])
    authority.cert_pem.write_to_path(files["authority"])
    return files


def _check_legal(source: Source, name: str) -> None:
    if not _LEGAL_NAME.fullmatch(name) or name == SCRATCH:
        raise UserError(
            f"{source.path}: a server cannot be called {name!r}; use letters, digits and _, "
            f"begin with a letter, and leave {SCRATCH!r} to the run"
        )


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


def _mentions_certificates(source: Source, server: str) -> bool:
    name = rf"\$\{{?{re.escape(server)}_(certificate|key|authority)\b"
    return re.search(rf"^[^#\n]*{name}", source.whole, re.MULTILINE | re.IGNORECASE) is not None
