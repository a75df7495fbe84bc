"""Addresses of servers: free ports, checks of whether servers answer, and names for addresses."""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path

import ZConfig
from ZConfig.substitution import substitute

from zodbshootout.client.reachability import connect
from zodbshootout.config.configuration import SCRATCH, Configuration, ServerSection
from zodbshootout.config.references import references
from zodbshootout.config.source import EXTERNAL, Source
from zodbshootout.config.tree import Section
from zodbshootout.errors import UserError
from zodbshootout.model.specification import Address, Endpoint

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


_CERTIFICATES = ("certificate", "key", "authority", "options")
_ADDRESS = ("", "_host", "_port")
_PARTS = (*_ADDRESS, "_password", *(f"_{name}" for name in _CERTIFICATES))
"""The suffixes that are added to a server's name to make the names that the run defines."""
_CACHES = "cache-servers"
"""RelStorage's key for memcached servers."""
_LEGAL_NAME = re.compile(r"[a-z]\w*", re.ASCII)


@contextmanager
def given_names(source: Source, scratch: Path) -> Iterator[dict[str, str]]:
    """Return the names that a run defines for a configuration, with their values.

    ``$scratch`` is a directory of the run.  Each server has names for its address, host and port;
    a private server also has names for its password and, if the file refers to them, certificates.
    The ports of private servers are reserved as long as the context lasts.  These servers listen on
    the host that their key ``listen`` names, by default on the loopback interface.
    """
    directory = scratch / "files"
    # If root starts a server, other users may enter scratch; they must not enter this directory.
    directory.mkdir(mode=0o700, exist_ok=True)
    names = {SCRATCH: str(directory)}
    with ExitStack() as stack:
        for section in source.servers:
            server = section.name
            if not _LEGAL_NAME.fullmatch(server) or server == SCRATCH:
                raise UserError(
                    f"{source.path}: a server cannot be called {server!r}; use letters, digits and "
                    f"_, begin with a letter, and leave {SCRATCH!r} to the run"
                )
            if section.type == EXTERNAL:
                own_names = Endpoint(server, external_address(section)).names
            else:
                own_names = _of_private(section, source, scratch, stack)
            if clashes := sorted(names.keys() & own_names.keys()):
                raise UserError(
                    f"{source.path}: ${clashes[0]} would belong to two servers; "
                    f"give server {server!r} another name"
                )
            names |= own_names
        yield names


def _of_private(
    section: Section, source: Source, scratch: Path, stack: ExitStack
) -> dict[str, str]:
    """Return the names of a private server; *stack* reserves its port."""
    server, host = section.name, _fixed(section, "listen") or HOST
    port = _port(source, server, host, stack)
    names = Endpoint(server, (host, port)).names
    names[f"{server}_password"] = secrets.token_hex(16)
    is_used = not source.used_names.isdisjoint(f"{server}_{name}" for name in _CERTIFICATES)
    ssl = (_fixed(section, "ssl") or "").lower() in {"true", "yes", "on"}
    # Clients of a ZEO server with ssl must refer to the certificates.
    if is_used or (ssl and section.type != "zeoserver"):
        files = certificates(scratch / f"certificates-{server}", host)
        names |= {f"{server}_{name}": path for name, path in files.items()}
    return names


def external_address(section: Section) -> Address:
    """Return the address in the section of a server that runs already.

    :raises UserError: if it is neither ``host:port`` nor the path of a Unix socket
    """
    address = _parsed(_fixed(section, "address"))
    if address is None:
        example = "write address HOST:PORT, or the path of a Unix socket"
        raise section.mistake(f"<{EXTERNAL} {section.name}>: no address; {example}", "address")
    return address


def _parsed(text: str) -> Address | None:
    """Return the address that ``host:port`` or the path of a Unix socket means, or ``None``."""
    if text.startswith("/"):
        return text
    host, _, port = text.rpartition(":")
    is_port = port.isdecimal() and 0 < int(port) < 2**16
    return (host.strip("[]"), int(port)) if host and is_port else None


def _fixed(server: Section, name: str) -> str:
    """Return the value of a server's key that says where the server is; empty without the key.

    :raises UserError: if the value uses a name that the run defines
    """
    key = server.key(name)
    if key is None:
        return ""
    try:
        return str(substitute(key.value, {}))
    except (ZConfig.SubstitutionReplacementError, ZConfig.SubstitutionSyntaxError):
        raise UserError(
            f"{key.place}: {name}: only names that the file itself defines can be used here"
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


def external_of(sections: Sequence[Section], configuration: Configuration) -> list[ServerSection]:
    """Return the servers that run already and to which any of *sections* refers, in file order."""
    return [
        server
        for server in configuration.external
        if any(_address_names(server, section) for section in sections)
    ]


def endpoints_of(text: Section, configuration: Configuration) -> tuple[Endpoint, ...]:
    """Return the servers to whose addresses a contender's section refers, in file order.

    :raises UserError: if the section could lead to another address than that of the server
    """
    caches = (key for section in text.walk() for key in section.keys if key.name.lower() == _CACHES)
    cache_names = set(chain.from_iterable(references(key.value) for key in caches))
    endpoints = []
    for server in chain(configuration.servers, configuration.external):
        used = _address_names(server, text)
        if len(used) == 1 and server.name not in used and server.kind == EXTERNAL:
            name = server.name
            raise text.mistake(
                f"refer to server {name} by ${name}, or by ${name}_host and ${name}_port"
            )
        address = _parsed(configuration.names[server.name]) if used else None
        if address is not None:
            is_cache = server.kind == "memcachedserver" or not used.isdisjoint(cache_names)
            endpoints.append(Endpoint(server.name, address, server.rtt or 0.0, is_cache))
    return tuple(endpoints)


def _address_names(server: ServerSection, text: Section) -> frozenset[str]:
    """Return the names for a server's address that a section uses."""
    return text.names & address_names(server.name)


def address_names(server: str) -> frozenset[str]:
    """Return the names of a server's address, host and port."""
    return frozenset(f"{server}{part}" for part in _ADDRESS)


def certificates(directory: Path, host: str = HOST) -> dict[str, str]:
    """Create a certificate for this *host* in *directory*; return the paths of its files by name.

    Both servers and clients identify themselves with ``certificate`` and ``key``; ``authority`` is
    the certificate of the authority that signed ``certificate``, and ``options`` an options file by
    which MySQL's clients trust that authority.
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
    Path(files["options"]).write_text(f"[client]\nssl-ca={files['authority']}\n", encoding="utf-8")
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
