"""Addresses of servers: free ports, checks of whether servers answer, and names for addresses."""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import ZConfig
from ZConfig.substitution import substitute

from zodbshootout.client.reachability import connect, host_and_port
from zodbshootout.config.configuration import SCRATCH, Configuration, ServerSection
from zodbshootout.config.source import Source
from zodbshootout.config.tree import Section
from zodbshootout.errors import UserError

HOST = "127.0.0.1"
"""The loopback interface, on which private servers listen by default; no other host reaches it."""


def greets(address: tuple[str, int]) -> bool:
    """Return whether a server at *address* speaks first, as MySQL does when it is ready."""
    try:
        with connect(address) as connection:
            return bool(connection.recv(1))
    except OSError:
        return False


def is_loopback(host: str) -> bool:
    """Return whether *host* is a loopback address, which no other host can reach."""
    return _resolved(host).is_loopback


def client_address(host: str) -> str | None:
    """Return the address from which clients connect to *host*; ``None`` if there may be several."""
    address = _resolved(host)
    if not address.is_loopback:
        return None
    return "::1" if isinstance(address, ipaddress.IPv6Address) else HOST


def _resolved(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ipaddress.ip_address("203.0.113.0")  # reserved for documentation
    return ipaddress.ip_address(answers[0][4][0])


@contextmanager
def reserved_port(host: str = HOST) -> Iterator[int]:
    """Reserve a free port of this *host* as long as the context lasts.

    On Linux, a bound socket that does not listen reserves the port: neither outgoing connections
    nor programs that ask for any free port get it.  The server can still bind the port, because
    servers set ``SO_REUSEADDR``.  On other systems, another program may take the port.

    :raises OSError: if *host* is not an address of this host
    :raises UnicodeError: if *host* cannot be a host name
    """
    family, *_, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    with socket.socket(family) as holder:
        if sys.platform == "linux":
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(address)
        port: int = holder.getsockname()[1]
        if sys.platform != "linux":
            holder.close()
        yield port


_CERTIFICATES = ("certificate", "key", "authority")
_PARTS = ("", "_host", "_port", "_password", *(f"_{name}" for name in _CERTIFICATES))
"""The suffixes that are added to a server's name to make the names that the run defines."""
_LEGAL_NAME = re.compile(r"[a-z]\w*", re.ASCII)


@contextmanager
def given_names(source: Source, scratch: Path) -> Iterator[dict[str, str]]:
    """Return the names that a run defines for a configuration, with their values.

    ``$scratch`` is a directory of the run.  Each server has names for its address, host, port,
    password and, if the file refers to them, certificates.  The ports are reserved as long as the
    context lasts.  A server listens on the host that its key ``listen`` names, by default on the
    loopback interface.
    """
    directory = scratch / "files"
    # If root starts a server, other users may enter scratch; they must not enter this directory.
    directory.mkdir(mode=0o700, exist_ok=True)
    names = {SCRATCH: str(directory)}
    with ExitStack() as stack:
        listen = {section.name: _listen(section) for section in source.servers}
        for server, host in listen.items():
            if not _LEGAL_NAME.fullmatch(server) or server == SCRATCH:
                raise UserError(
                    f"{source.path}: a server cannot be called {server!r}; use letters, digits and "
                    f"_, begin with a letter, and leave {SCRATCH!r} to the run"
                )
            port = _port(source, server, host, stack)
            own_names = {
                server: host_and_port(host, port),
                f"{server}_host": host,
                f"{server}_port": str(port),
                f"{server}_password": secrets.token_hex(16),
            }
            if not source.used_names.isdisjoint(f"{server}_{name}" for name in _CERTIFICATES):
                files = certificates(scratch / f"certificates-{server}", host)
                own_names |= {f"{server}_{name}": path for name, path in files.items()}
            if clashes := sorted(names.keys() & own_names.keys()):
                raise UserError(
                    f"{source.path}: ${clashes[0]} would belong to two servers; "
                    f"give server {server!r} another name"
                )
            names |= own_names
        yield names


def _listen(server: Section) -> str:
    """Return the host in a server's key ``listen``.

    :raises UserError: if the value of the key uses a name that the run defines
    """
    key = server.key("listen")
    if key is None:
        return HOST
    try:
        return str(substitute(key.value, {}))
    except (ZConfig.SubstitutionReplacementError, ZConfig.SubstitutionSyntaxError):
        raise UserError(
            f"{key.place}: listen: only names that the file itself defines can be used here"
        ) from None


def servers_of(names: Collection[str], configuration: Configuration) -> list[ServerSection]:
    """Return the servers that *names* refer to, and all servers that they need, in file order."""
    servers = {server.name: server for server in configuration.servers}
    needed: set[str] = set()
    names = set(names)
    while new := {
        server
        for server in servers.keys() - needed
        if names & {f"{server}{part}" for part in _PARTS}
    }:
        needed |= new
        names = {name for server in new for name in servers[server].text.names}
    return [server for name, server in servers.items() if name in needed]


def certificates(directory: Path, host: str = HOST) -> dict[str, str]:
    """Create a certificate for this *host* in *directory*; return the paths of its files by name.

    Both servers and clients identify themselves with ``certificate`` and ``key``; ``authority`` is
    the certificate of the authority that signed ``certificate``.
    """
    try:
        import trustme
    except ImportError:
        raise UserError(
            "certificates for ssl need trustme; install it: pip install trustme"
        ) from None
    directory.mkdir(mode=0o700, exist_ok=True)
    files = {name: str(directory / f"{name}.pem") for name in _CERTIFICATES}
    authority = trustme.CA()
    issued = authority.issue_cert(*dict.fromkeys(["localhost", HOST, host]))
    issued.cert_chain_pems[0].write_to_path(files["certificate"])
    issued.private_key_pem.write_to_path(files["key"])
    authority.cert_pem.write_to_path(files["authority"])
    return files


def _port(source: Source, server: str, host: str, stack: ExitStack) -> int:
    if _resolved(host).is_unspecified:
        raise UserError(
            f"{source.path}: server {server}: clients cannot connect to {host}; give listen an "
            "address of this host"
        )
    try:
        return stack.enter_context(reserved_port(host))
    except (OSError, UnicodeError) as error:
        raise UserError(
            f"{source.path}: server {server}: listen {host} is not an address of this host: "
            f"{getattr(error, 'strerror', error)}"
        ) from None
