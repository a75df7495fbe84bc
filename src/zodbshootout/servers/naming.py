"""What a file can say of its servers: names for their addresses, passwords and certificates."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from zodbshootout.config.configuration import SCRATCH, ConfigurationError, Source
from zodbshootout.servers.address import HOST, reserved_port
from zodbshootout.servers.certificates import certificates

_LEGAL_NAME = re.compile(r"[a-z]\w*", re.ASCII)


@contextmanager
def given_names(source: Source, scratch: Path) -> Iterator[dict[str, str]]:
    """Give a value to every name that a configuration finds defined.

    The ports are kept free as long as the context lasts.

    :raises ConfigurationError: when a server has a name that it cannot have
    """
    _check_legal(source)
    own = scratch / "files"
    own.mkdir(mode=0o700, exist_ok=True)  # root lets other users into what is around it
    names = {SCRATCH: str(own)}
    with ExitStack() as stack:
        for server in dict.fromkeys(source.server_names):
            port = stack.enter_context(reserved_port())
            mine = {
                server: f"{HOST}:{port}",
                f"{server}_host": HOST,
                f"{server}_port": str(port),
                f"{server}_password": secrets.token_hex(16),
            }
            if _speaks_of_certificates(source, server):
                made = certificates(scratch / f"certificates-{server}")
                mine |= {f"{server}_{name}": path for name, path in made.items()}
            if clashes := sorted(names.keys() & mine.keys()):
                raise ConfigurationError(
                    f"{source.path}: ${clashes[0]} would belong to two servers; "
                    f"give server {server!r} another name"
                )
            names |= mine
        yield names


def _check_legal(source: Source) -> None:
    for name in source.server_names:
        if not _LEGAL_NAME.fullmatch(name) or name == SCRATCH:
            raise ConfigurationError(
                f"{source.path}: a server cannot be called {name!r}; use letters, digits and _, "
                f"begin with a letter, and leave {SCRATCH!r} to the run"
            )


def _speaks_of_certificates(source: Source, server: str) -> bool:
    name = rf"\$\{{?{re.escape(server)}_(certificate|key|authority)\b"
    return re.search(rf"^[^#\n]*{name}", source.whole, re.MULTILINE | re.IGNORECASE) is not None
