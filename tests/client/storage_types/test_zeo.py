"""Facts that are recorded of ZEO's ClientStorage."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from zodbshootout.client.storage_types.zeo import ClientStorageType
from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.contenders.contender import contenders_of
from zodbshootout.servers.address import certificates


@pytest.mark.parametrize("installed", [{"ZEO"}, {"ZEO", "uvloop"}])
def test_versions_include_the_event_loop_if_it_is_installed(
    installed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {name: f"of {name}" for name in installed}
    monkeypatch.setattr("zodbshootout.versions._version", versions.get)
    assert ClientStorageType(None).versions() == versions


class Server:
    """A server that greets like ZEO's, with TLS if it has a context."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.context = context
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                connection, _ = self.socket.accept()
                with connection, suppress(OSError):
                    self._greet(connection)

    def _greet(self, connection: socket.socket) -> None:
        if self.context is None:
            connection.sendall(b"\0\0\0\2Z5")
            connection.recv(1000)
        else:
            with self.context.wrap_socket(connection, server_side=True) as encrypted:
                encrypted.sendall(b"\0\0\0\2Z5")
                encrypted.recv(1000)


def context_of(files: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files["authority"])
    context.load_cert_chain(files["certificate"], files["key"])
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def files_in(directory: Path) -> Mapping[str, str]:
    directory.mkdir()
    return certificates(directory)


@pytest.mark.parametrize(
    ("of_server", "of_client", "authority", "more", "reason"),
    [
        ("a", "a", "b", "check-hostname false", "certificate verify failed: "),
        ("a", "a", "a", "server-hostname other", "certificate verify failed: Hostname mismatch"),
        ("a", "b", "a", "check-hostname false", "alert unknown ca"),
        ("", "a", "a", "check-hostname false", "it does not encrypt"),
    ],
)
def test_a_failed_handshake_is_reported_at_once(
    of_server: str, of_client: str, authority: str, more: str, reason: str, tmp_path: Path
) -> None:
    files = {name: files_in(tmp_path / name) for name in ("a", "b")}
    server = Server(context_of(files[of_server]) if of_server else None)
    text = (
        "%import ZEO\n<zodb x>\n<clientstorage>\n"
        f"server {server.address}\n<ssl>\ncertificate {files[of_client]['certificate']}\n"
        f"key {files[of_client]['key']}\nauthenticate {files[authority]['authority']}\n{more}\n"
        "</ssl>\n</clientstorage>\n</zodb>\n"
    )
    (requirement,) = contenders_of(parse(Source(tmp_path / "x.conf", text), {}))[0].requirements
    began = time.monotonic()
    obstacle = requirement.obstacle()
    server.socket.close()
    assert time.monotonic() - began < 5
    assert obstacle is not None
    assert obstacle.startswith(f"the ZEO server at {server.address}: ")
    assert reason in obstacle
    assert "<ssl>" in obstacle
