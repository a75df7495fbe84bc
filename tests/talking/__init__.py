"""A storage that talks to a server whose protocol, answers and service time are known."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ZODB.config import BaseConfig

from zodbshootout.client.routes import Route
from zodbshootout.client.storage_types import StorageType

REQUEST, ANSWER = 64, 100
"""Bytes of a request, and of its answer."""


class TalkingSection(BaseConfig):  # type: ignore[misc]
    def open(self) -> Any:
        storage = self.config.base.open()
        vote, close = storage.tpc_vote, storage.close
        server = socket.create_connection(self.config.server)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connections = [server]
        if self.config.other_server is not None:
            connections.append(socket.create_connection(self.config.other_server))

        def talking_vote(*arguments: Any) -> Any:
            for _ in range(self.config.requests):
                server.sendall(bytes(REQUEST))
                _receive(server, ANSWER)
            for _ in range(self.config.pipelined):
                server.sendall(bytes(REQUEST))
            _receive(server, ANSWER * self.config.pipelined)
            return vote(*arguments)

        def close_all() -> None:
            for connection in connections:
                connection.close()
            close()

        storage.tpc_vote, storage.close = talking_vote, close_all
        return storage


class TalkingType(StorageType):
    section_classes = ("tests.talking.TalkingSection",)

    @classmethod
    def reroute(cls, section: Any, route: Route) -> None:
        section.config.server = route(section.config.server)


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
        while _receive(connection, REQUEST):
            time.sleep(seconds)
            connection.sendall(bytes(ANSWER))


def _receive(connection: socket.socket, size: int) -> bool:
    """Receive some bytes; return whether they came."""
    while size:
        received = connection.recv(size)
        if not received:
            return False
        size -= len(received)
    return True
