"""Find and replace the addresses of servers in DSNs and URIs."""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

from zodbshootout.client.reachability import Address, host_and_port


class Route(Protocol):
    """A function that replaces the address of a server."""

    def __call__(self, address: Address, *, is_cache: bool = False) -> Address:
        """Return the address to use instead of *address*; *is_cache* is true for cache servers."""


POSTGRESQL_PORT = 5432
_DEFAULT_PORTS = {"zeo": 9991, "postgres": POSTGRESQL_PORT, "mysql": 3306}
"""The default ports in URIs of zodburi and RelStorage, by scheme."""
_CONNINFO = re.compile(r"(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|([^\s']+))")
_MEMCACHED = re.compile(
    r"((inet6?|tcp):)?(?P<host>\[[^]]+\]|[^:\[\]/]+)(:(?P<port>\d+))?(?P<weight>:\d+)?"
)
MEMCACHED_PORT = 11211
UDP = "udp:"
"""The prefix of an address that is reached over UDP, which relays do not support."""
_VERIFIES_NAMES = "verify-full"
"""The ``sslmode`` that requires the host's name to match the server's certificate."""


def addresses(reroute: Callable[[Route], object]) -> dict[Address, bool]:
    """Return the addresses that *reroute* would replace, and whether each belongs to a cache."""
    named: dict[Address, bool] = {}

    def note(address: Address, *, is_cache: bool = False) -> Address:
        named[address] = is_cache
        return address

    reroute(note)
    return named


def in_dsn(dsn: str, route: Route) -> str:
    """Return a PostgreSQL DSN with its addresses replaced; unchanged if it names no server.

    The new settings are appended, because libpq and pg8000 use the last value of a setting.  An
    invalid DSN stays as it is: the driver reports the error.
    """
    with suppress(ValueError):
        settings = settings_of(dsn)
        if path := settings.get("unix_sock"):  # a setting of pg8000, which libpq refuses
            routed = route(path)
            return dsn if routed == path else f"{dsn} unix_sock='{routed}'"
        if settings.get("host") or settings.get("hostaddr"):
            return dsn + _routed(settings, route, is_url="://" in dsn, has_query="?" in dsn)
    return dsn


def _routed(settings: Mapping[str, str], route: Route, *, is_url: bool, has_query: bool) -> str:
    """Return the settings to append to a DSN so that it leads to other addresses."""
    # libpq connects to hostaddr, and uses host as the server's name.
    address = settings.get("hostaddr") or settings.get("host", "")
    hosts, ports = address.split(","), settings.get("port", "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    named = [(host, port or str(POSTGRESQL_PORT)) for host, port in zip(hosts, ports)]
    routed = [_of_postgresql(host, port, route) for host, port in named]
    if routed == named:
        return ""
    host, port = (",".join(part) for part in zip(*routed))
    # If hostaddr is appended, libpq still looks for the original host in the server's certificate.
    is_named = "hostaddr" in settings or settings.get("sslmode") == _VERIFIES_NAMES
    key = "hostaddr" if is_named else "host"
    if is_url:
        return f"{'&' if has_query else '?'}{key}={host}&port={port}"
    return f" {key}='{host}' port='{port}'"


def settings_of(dsn: str) -> Mapping[str, str]:
    """Return the settings in a PostgreSQL DSN, by the rules of libpq.

    :raises ValueError: if the DSN is a URL that cannot be parsed
    """
    if not re.match(r"postgres(ql)?://", dsn):
        matches = _CONNINFO.finditer(dsn)
        return {match[1]: re.sub(r"\\(.)", r"\1", match[2] or match[3] or "") for match in matches}
    parts = urlsplit(dsn)
    hosts = [piece.rpartition("@")[2].partition(":") for piece in parts.netloc.split(",")]
    named = {"host": ",".join(host for host, _, _ in hosts)}
    named["port"] = ",".join(port for _, _, port in hosts)
    return {**named, **dict(parse_qsl(parts.query))}


def _of_postgresql(host: str, port: str, route: Route) -> tuple[str, str]:
    name = f".s.PGSQL.{port}"
    if host.startswith("/"):
        routed = route(os.path.join(host, name))  # noqa: PTH118
        return os.path.dirname(str(routed)), port  # noqa: PTH120
    routed = route((host, int(port)))
    assert isinstance(routed, tuple)
    return routed[0], str(routed[1])


def in_uri(uri: str, route: Route) -> str:
    """Return a zodburi URI with its addresses replaced; unchanged if it names no server."""
    scheme, _, rest = uri.partition("://")
    default = _DEFAULT_PORTS.get(scheme)
    if default is None:
        return uri
    try:
        parts = urlsplit(uri)
        port = parts.port or default
    except ValueError:
        return uri
    if scheme == "zeo" and not parts.hostname:
        end = len(re.split(r"[?#]", rest, maxsplit=1)[0])
        return f"{scheme}://{route(rest[:end])}{rest[end:]}"
    settings = dict(parse_qsl(parts.query, keep_blank_values=True))
    path, servers = settings.get("unix_socket"), settings.get("cache_servers")
    if path and scheme == "mysql":
        settings["unix_socket"] = str(route(path))
    elif parts.hostname:
        routed = route((parts.hostname, port))
        assert isinstance(routed, tuple)
        user, at, _ = parts.netloc.rpartition("@")
        parts = parts._replace(netloc=f"{user}{at}{host_and_port(*routed)}")
    if servers:
        named = servers.split(",")
        settings["cache_servers"] = ",".join(in_cache_server(server, route) for server in named)
    if path or servers:
        parts = parts._replace(query=urlencode(settings))
    # urllib would leave out the slashes before an empty host.
    return f"{scheme}://{parts.netloc}{parts._replace(scheme='', netloc='').geturl()}"


def in_cache_server(server: str, route: Route) -> str:
    """Return an item of ``cache-servers``, in pylibmc's notation, with its address replaced.

    Addresses that are reached over UDP begin with :data:`UDP`.
    """
    address = server if server.startswith(UDP) else memcached_address(server)
    if address is None:
        return server
    routed = route(address, is_cache=True)
    if isinstance(routed, str):
        return routed
    match = _MEMCACHED.fullmatch(server)
    return f"{host_and_port(*routed)}{match['weight'] or '' if match else ''}"


def memcached_address(server: str) -> Address | None:
    """Return a memcached's address, or ``None`` if it uses neither TCP nor a Unix socket."""
    path = server.removeprefix("unix:")
    if path.startswith("/"):
        return path
    match = _MEMCACHED.fullmatch(server)
    return (match["host"].strip("[]"), int(match["port"] or MEMCACHED_PORT)) if match else None
