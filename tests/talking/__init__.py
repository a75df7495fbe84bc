"""A storage that talks to a server whose protocol, answers and service time are known."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ZODB.config import BaseConfig

from zodbshootout.client.storage_types import StorageType

REQUEST, ANSWER = 64, 100
"""Bytes of a request, and of its answer."""
FOLLOWED = b"f"
"""The beginning of a request that is answered together with the next one, however late it comes."""


class TalkingSection(BaseConfig):  # type: ignore[misc]
    def open(self) -> Any:
        storage = self.config.base.open()
        vote, close = storage.tpc_vote, storage.close
        server = _connected(self.config.server)
        cache = self.config.cache and _connected(self.config.cache)
        other = self.config.other_server and _connected(self.config.other_server)

        def talking_vote(*arguments: Any) -> Any:
            if cache:
                cache.sendall(bytes(REQUEST))
                _receive(cache, ANSWER)
            for _ in range(self.config.requests):
                server.sendall(bytes(REQUEST))
                _receive(server, ANSWER)
            for left in reversed(range(self.config.pipelined)):
                server.sendall((FOLLOWED if left else b"").ljust(REQUEST, b"\0"))
            _receive(server, ANSWER * self.config.pipelined)
            return vote(*arguments)

        def close_all() -> None:
            for connection in filter(None, (server, cache, other)):
                connection.close()
            close()

        storage.tpc_vote, storage.close = talking_vote, close_all
        return storage


class TalkingType(StorageType):
    section_classes = ("tests.talking.TalkingSection",)

    @classmethod
    def server_line(cls, section: Any) -> str:
        return "server $db"


@contextmanager
def serving(seconds: float = 0.0) -> Iterator[tuple[str, int]]:
    """Answer every request after some *seconds*; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, seconds), daemon=True).start()
        try:
            yield listener.getsockname()
        finally:
            listener.shutdown(socket.SHUT_RDWR)  # accept() would go on with a closed one


def _accept(listener: socket.socket, seconds: float) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(connection, seconds), daemon=True).start()


def _answer(connection: socket.socket, seconds: float) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        answers = 0
        while request := _receive(connection, REQUEST):
            answers += 1
            if not request.startswith(FOLLOWED):
                time.sleep(seconds)
                connection.sendall(bytes(answers * ANSWER))
                answers = 0


def _connected(address: tuple[str, int]) -> socket.socket:
    connection = socket.create_connection(address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _receive(connection: socket.socket, size: int) -> bytes:
    """Return some bytes, or none if no more will come."""
    content = b""
    while len(content) < size:
        received = connection.recv(size - len(content))
        if not received:
            return b""
        content += received
    return content
