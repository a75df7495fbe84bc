"""The relay's loop with a clock that the test sets; a round trip takes 200 of its seconds."""

from __future__ import annotations

import ast
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from selectors import SelectorKey

import pytest

import zodbshootout.network
from tests.network.peers import connected, listening, received
from zodbshootout.network.relay import CHUNK_SIZE, LONGEST_SPIN, Loop

RTT = 200.0


class SteppedLoop(Loop):
    """A loop that never waits, at an instant that is set."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(lambda: self.now)

    def _ready(self) -> list[tuple[SelectorKey, int]]:
        return self.selector.select(0)

    def at(self, instant: float) -> None:
        """Do everything that happens up to an instant."""
        self.now = instant
        for _ in range(10):
            self.step()


class Line:
    """A client that has connected through the relay at the instant 0, and its server."""

    def __init__(self, stack: ExitStack, early: float = 0.0) -> None:
        self.loop = SteppedLoop()
        stack.callback(self.loop.close)
        self.listener = stack.enter_context(listening())
        self.listener.setblocking(False)
        address = self.loop.add_route(self.listener.getsockname(), RTT, early, "")
        self.client = stack.enter_context(connected(address))
        self.client.setblocking(False)
        self.loop.at(0)

    def open(self) -> None:
        """Let the connection be established, which takes a round trip and a half."""
        self.loop.at(1.5 * RTT)
        self.server, _ = self.listener.accept()
        self.server.setblocking(False)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def line(stack: ExitStack) -> Line:
    line = Line(stack)
    line.open()
    stack.callback(line.server.close)
    return line


def arrived(connection: socket.socket) -> bytes | None:
    """Return what has arrived: ``None`` if nothing has, and nothing at the end."""
    try:
        return connection.recv(1000)
    except BlockingIOError:
        return None


def test_a_request_and_its_answer_take_half_a_round_trip_each(line: Line) -> None:
    line.client.sendall(b"request")
    line.loop.at(500)
    line.loop.at(599)
    assert arrived(line.server) is None
    line.loop.at(600)
    assert arrived(line.server) == b"request"
    line.server.sendall(b"answer")
    line.loop.at(700)
    line.loop.at(799)
    assert arrived(line.client) is None
    line.loop.at(800)
    assert arrived(line.client) == b"answer"


def test_the_correction_is_subtracted_in_each_direction(stack: ExitStack) -> None:
    line = Line(stack, early=30.0)
    line.open()
    stack.callback(line.server.close)
    for sender, receiver in ((line.client, line.server), (line.server, line.client)):
        start = line.loop.now
        sender.sendall(b"chunk")
        line.loop.at(start)
        line.loop.at(start + 69)
        assert arrived(receiver) is None
        line.loop.at(start + 70)
        assert arrived(receiver) == b"chunk"


def test_establishing_a_connection_takes_a_round_trip_and_a_half(stack: ExitStack) -> None:
    line = Line(stack)
    line.client.sendall(b"at once")
    line.loop.at(0)
    line.loop.at(295)
    with pytest.raises(BlockingIOError):
        line.listener.accept()
    line.open()
    stack.callback(line.server.close)
    line.loop.at(305)
    assert arrived(line.server) == b"at once"


def test_a_server_that_speaks_first_is_heard_after_two_round_trips(line: Line) -> None:
    line.server.sendall(b"welcome")
    line.loop.at(300)
    line.loop.at(395)
    assert arrived(line.client) is None
    line.loop.at(405)
    assert arrived(line.client) == b"welcome"


def test_chunks_and_the_end_come_in_order_each_at_its_time(line: Line) -> None:
    for instant, chunk in ((400, b"1"), (420, b"2"), (440, b"3")):
        line.client.sendall(chunk)
        line.loop.at(instant)
    line.client.shutdown(socket.SHUT_WR)
    line.loop.at(460)
    came = []
    for instant in (505, 525, 545, 555, 565):
        line.loop.at(instant)
        came.append(arrived(line.server))
    assert came == [b"1", b"2", b"3", None, b""]


def test_a_reset_connection_is_reset_at_the_other_end(line: Line) -> None:
    line.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    line.client.close()
    line.loop.at(400)
    line.loop.at(495)
    assert arrived(line.server) is None
    line.loop.at(505)
    with pytest.raises(ConnectionResetError):
        line.server.recv(1)


def test_the_last_words_of_a_server_that_takes_no_more_still_arrive(line: Line) -> None:
    line.client.sendall(b"request")
    line.loop.at(400)
    line.client.sendall(b"more")
    line.loop.at(410)
    line.server.sendall(b"go away")
    line.server.close()
    line.loop.at(480)
    line.loop.at(500)  # the server's host refuses the request
    line.loop.at(510)  # and what follows can no longer be sent
    line.loop.at(580)
    assert arrived(line.client) == b"go away"


def test_an_answer_makes_up_for_the_lateness_of_its_request(line: Line) -> None:
    line.client.sendall(b"request")
    line.loop.at(400)
    line.loop.at(560)  # due at 500
    line.server.sendall(b"answer")
    line.server.sendall(b"more")
    line.loop.at(560)
    line.loop.at(599)
    assert arrived(line.client) is None
    line.loop.at(600)
    assert arrived(line.client) == b"answermore"
    line.server.sendall(b"punctual again")
    line.loop.at(600)
    line.loop.at(699)
    assert arrived(line.client) is None


def test_the_lateness_of_a_round_trip_is_noted(line: Line) -> None:
    line.client.sendall(b"request")
    line.loop.at(400)
    line.loop.at(650)  # 150 late, of which the answer can make up for 100
    line.server.sendall(b"answer")
    line.loop.at(650)
    line.server.sendall(b"more")
    line.loop.at(650)
    line.loop.at(760)  # due at 750
    ((chunks, mean, median),) = line.loop.lateness()
    assert chunks == 2
    assert mean == pytest.approx((50 + 10) / 2, abs=0.1)
    assert median == pytest.approx(10, abs=0.1)


def test_counts_have_everything_that_has_arrived_before(line: Line) -> None:
    line.client.sendall(bytes(3 * CHUNK_SIZE))
    line.server.sendall(bytes(CHUNK_SIZE + 1))
    assert line.loop.counts() == [[2, 3 * CHUNK_SIZE, CHUNK_SIZE + 1, 1]]


def test_the_addresses_of_a_name_are_tried_in_turn(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening() as closed:
        refusing = closed.getsockname()
    server = stack.enter_context(listening())
    forbidden = ("255.255.255.255", 1)
    kind = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
    addresses = [(*kind, target) for target in (forbidden, refusing, server.getsockname())]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    loop = SteppedLoop()
    stack.callback(loop.close)
    client = stack.enter_context(connected(loop.add_route(("two.example", 1), 0.0, 0.0, "")))
    client.sendall(b"found")
    loop.at(0)
    with server.accept()[0] as connection:
        assert received(connection, 5) == b"found"


@pytest.mark.parametrize(("oversleep", "learned"), [(50e-6, 50e-6), (0.01, LONGEST_SPIN)])
def test_sleeps_end_earlier_by_what_they_took_too_long_at_most_for_a_limit(
    oversleep: float, learned: float, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = Loop(lambda: now)
    now = 0.0
    stack.callback(loop.close)
    server = stack.enter_context(listening())
    client = stack.enter_context(connected(loop.add_route(server.getsockname(), 0.1, 0.0, "")))

    def sleep(files: list[int], _: object, __: object, seconds: float = 0.0) -> object:
        nonlocal now
        now += seconds + oversleep
        return [], [], []

    monkeypatch.setattr(select, "select", sleep)
    for _ in range(600):
        client.sendall(b"chunk")
        loop.step()
    assert loop.oversleep == pytest.approx(learned, rel=0.1)


def test_the_package_needs_the_standard_library_of_python_3_9_alone() -> None:
    for path in Path(next(iter(zodbshootout.network.__path__))).glob("*.py"):
        tree = ast.parse(path.read_text(), feature_version=(3, 9))
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                is_ours = name.startswith("zodbshootout.network")
                assert is_ours or name.partition(".")[0] in sys.stdlib_module_names, path
