"""Certificates for servers and clients that talk over TLS."""

from __future__ import annotations

from pathlib import Path

from zodbshootout.errors import UserError
from zodbshootout.servers.address import HOST


def certificates(directory: Path, host: str = HOST) -> dict[str, str]:
    """Make a certificate for this *host* in *directory*; return the paths of its files by name.

    Servers and clients alike identify themselves with ``certificate`` and ``key``; ``authority`` is
    the certificate of the authority that has signed it.

    :raises UserError: when trustme is not installed
    """
    try:
        import trustme
    except ImportError:
        raise UserError(
            "certificates for ssl need trustme; install it: pip install trustme"
        ) from None
    directory.mkdir(mode=0o700, exist_ok=True)
    names = {name: directory / f"{name}.pem" for name in ("certificate", "key", "authority")}
    authority = trustme.CA()
    issued = authority.issue_cert(*dict.fromkeys(["localhost", HOST, host]))
    issued.cert_chain_pems[0].write_to_path(str(names["certificate"]))
    issued.private_key_pem.write_to_path(str(names["key"]))
    authority.cert_pem.write_to_path(str(names["authority"]))
    return {name: str(path) for name, path in names.items()}
