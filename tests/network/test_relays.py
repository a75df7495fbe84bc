"""Relays between servers and clients that do what a test has written down, so counts are known."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.network.peers import answering, connected, listening, received, serving
from zodbshootout.network.calibration import Calibration, is_within
from zodbshootout.network.relay import WINDOW
from zodbshootout.network.relays import Address, Lateness, Relay, RelayError, Traffic

KERNEL_BUFFERS = 16 << 20
"""More than the buffers of one connection to the relay hold."""

ASKING = """
import socket, sys, time
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
client.sendall(b"?")
time.sleep(600)
"""


@pytest.fixture
def relay() -> Iterator[Relay]:
    with Relay.start() as relay:
        yield relay


def converse(address: Address, *exchanges: tuple[int, int]) -> None:
    """Send requests of given sizes, and read answers of given sizes to each."""
    with connected(address) as client:
        for size, answer in exchanges:
            client.sendall(bytes(size))
            assert len(received(client, answer)) == answer


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.01)


@pytest.mark.parametrize("rtt", [0.0, 0.002])
def test_trips_and_bytes_are_those_of_the_conversation(rtt: float, relay: Relay) -> None:
    exchanges = [(10, 1000), (20, 1), (300_000, 500_000)]
    with serving(answering(*exchanges)) as server:
        address = relay.route(server, rtt)
        converse(address, *exchanges)
        assert relay.counts() == {address: Traffic(1 + 3, 300_030, 501_001, 1)}


@pytest.mark.parametrize("rtt", [0.0, 0.002])
def test_requests_without_an_answer_between_them_are_one_trip(rtt: float, relay: Relay) -> None:
    with serving(answering((50, 50), (1, 1))) as server:
        address = relay.route(server, rtt)
        with connected(address) as client:
            for _ in range(5):
                client.sendall(bytes(10))
                relay.counts()  # so that the relay has read it apart from the next one
            received(client, 50)
            client.sendall(b"!")
            received(client, 1)
        assert relay.counts()[address] == Traffic(1 + 2, 51, 51, 1)


def test_a_client_that_only_connects_makes_one_trip(relay: Relay) -> None:
    with serving(lambda connection: connection.sendall(b"welcome")) as server:
        address = relay.route(server)
        with connected(address) as client:
            assert received(client, 8) == b"welcome"
        assert relay.counts()[address] == Traffic(1, 0, 7, 1)


def test_an_answer_to_a_server_that_speaks_first_is_a_trip(relay: Relay) -> None:
    def script(connection: socket.socket) -> None:
        connection.sendall(b"welcome")
        assert received(connection, 5) == b"hello"

    with serving(script) as server:
        address = relay.route(server)
        with connected(address) as client:
            received(client, 7)
            client.sendall(b"hello")
        wait_until(lambda: relay.counts()[address].sent == 5)
        assert relay.counts()[address] == Traffic(2, 5, 7, 1)


def test_a_client_that_has_sent_its_last_still_hears_the_answer(relay: Relay) -> None:
    def script(connection: socket.socket) -> None:
        request = received(connection, 1_000_000)
        connection.sendall(str(len(request)).encode())

    with serving(script) as server, connected(relay.route(server, 0.002)) as client:
        client.sendall(bytes(123_456))
        client.shutdown(socket.SHUT_WR)
        assert received(client, 100) == b"123456"


@pytest.mark.slow
def test_much_in_both_directions_at_once_arrives_whole(relay: Relay) -> None:
    upwards, downwards = (os.urandom(1 << 20) * 24 for _ in range(2))
    arrived = {}

    def exchange(name: str, connection: socket.socket, content: bytes) -> None:
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(connection.sendall, content)
            arrived[name] = hashlib.sha256(received(connection, len(content))).digest()
            sending.result()

    with serving(lambda connection: exchange("server", connection, downwards)) as server:
        address = relay.route(server, 0.001)
        with connected(address) as client:
            exchange("client", client, upwards)
    assert arrived["server"] == hashlib.sha256(upwards).digest()
    assert arrived["client"] == hashlib.sha256(downwards).digest()
    traffic = relay.counts()[address]
    assert (traffic.sent, traffic.received) == (len(upwards), len(downwards))


@pytest.mark.slow
def test_a_peer_that_does_not_read_fills_no_memory_and_stops_nobody_else(relay: Relay) -> None:
    offered = bytes(100 << 20)
    with listening(receive_buffer=1 << 16) as silent, ThreadPoolExecutor(1) as pool:
        stuck, other = relay.route(silent.getsockname()), relay.route(silent.getsockname())
        with connected(stuck) as client:
            sending = pool.submit(client.sendall, offered)
            server, _ = silent.accept()
            wait_until(lambda: relay.counts()[stuck].sent >= WINDOW)
            with serving(answering((10, 10))) as talkative:
                converse(relay.route(talkative), (10, 10))
            with connected(other) as second:
                second.sendall(b"heard")
                with silent.accept()[0] as heard:
                    assert received(heard, 5) == b"heard"
            assert relay.counts()[stuck].sent < WINDOW + KERNEL_BUFFERS
            assert psutil.Process(relay.process.pid).memory_info().rss < len(offered)
            with server:
                assert received(server, len(offered)) == offered
            sending.result()


def test_a_refusing_server_resets_its_client(relay: Relay) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # a port that nobody else gets, and on which nobody listens
        address = relay.route(closed.getsockname(), 0.002)
        # On a busy machine the reset arrives while the client still connects.
        with pytest.raises(ConnectionResetError), connected(address) as client:
            client.recv(1)
    assert relay.counts()[address] == Traffic(1, 0, 0, 1)


def test_an_unknown_host_is_an_error(relay: Relay) -> None:
    with pytest.raises(RelayError, match=r"^nowhere.invalid:5432: the relay cannot replace this"):
        relay.route(("nowhere.invalid", 5432))
    assert relay.counts() == {}


def test_a_socket_stands_in_for_a_unix_socket(relay: Relay, tmp_path: Path) -> None:
    directory = tmp_path / "relayed"
    directory.mkdir()
    server = str(tmp_path / ".s.PGSQL.5432")
    with serving(answering((10, 20)), server):
        address = relay.route(server, 0.002, directory=str(directory))
        assert address == str(directory / ".s.PGSQL.5432")
        converse(address, (10, 20))
        assert relay.counts() == {address: Traffic(2, 10, 20, 1)}
    relay.end()
    assert list(directory.iterdir()) == []


def test_a_name_that_the_directory_has_already_is_an_error(relay: Relay, tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with listening(path), pytest.raises(RelayError, match="Address already in use"):
        relay.route(path, directory=str(tmp_path))


@pytest.mark.slow
def test_many_connections_are_counted_together() -> None:
    number = 600  # more files than select() takes, and than a shell allows at first
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
    try:
        relay = Relay.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))
    with relay, listening() as server:
        address = relay.route(server.getsockname())
        clients = [connected(address) for _ in range(number)]
        for client in clients:
            client.sendall(b"?")
        for _ in clients:
            with server.accept()[0] as connection:
                connection.sendall(received(connection, 1))
        for client in clients:
            assert received(client, 2) == b"?"
            client.close()
        assert relay.counts()[address] == Traffic(2 * number, number, number, number)


def test_a_killed_client_ends_its_connection_alone(relay: Relay) -> None:
    with listening() as server:
        address = relay.route(server.getsockname(), 0.001)
        before = psutil.Process(relay.process.pid).num_fds()
        killed = subprocess.Popen([sys.executable, "-c", ASKING, str(address[1])])
        with server.accept()[0] as lost:
            assert received(lost, 1) == b"?"
            killed.kill()
            killed.wait()
            with pytest.raises(ConnectionError):
                while True:
                    lost.sendall(bytes(1 << 16))
        wait_until(lambda: psutil.Process(relay.process.pid).num_fds() == before)
        with connected(address) as client, server.accept()[0] as connection:
            client.sendall(b"?")
            assert received(connection, 1) == b"?"
    assert relay.counts()[address].connections == 2


def test_a_killed_owner_leaves_no_relay_and_no_socket(tmp_path: Path) -> None:
    (tmp_path / "relayed").mkdir()
    program = textwrap.dedent(
        f"""
        import os, signal
        from zodbshootout.network.relays import Relay
        relay = Relay.start()
        relay.route({str(tmp_path / "server")!r}, directory={str(tmp_path / "relayed")!r})
        relay.route(("127.0.0.1", 1))
        print(relay.process.pid, os.listdir({str(tmp_path / "relayed")!r}), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    owner = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False
    )
    assert owner.returncode == -signal.SIGKILL
    pid, made = owner.stdout.split(maxsplit=1)
    assert made.strip() == "['server']"
    wait_until(lambda: has_ended(int(pid)) and not (tmp_path / "relayed" / "server").exists())


def has_ended(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_relay_that_has_ended_is_an_error(number: int, relay: Relay) -> None:
    relay.process.send_signal(number)
    relay.process.wait()
    with pytest.raises(RelayError, match="has ended"):
        relay.counts()


def test_a_terminated_relay_leaves_no_socket(relay: Relay, tmp_path: Path) -> None:
    relay.route("/nowhere/server", directory=str(tmp_path))
    relay.process.terminate()
    relay.process.wait()
    assert list(tmp_path.iterdir()) == []


def test_a_relay_that_does_not_answer_is_an_error(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zodbshootout.network.relays.ANSWER_TIMEOUT", 0.1)
    relay.process.send_signal(signal.SIGSTOP)
    with pytest.raises(RelayError, match="does not answer"):
        relay.counts()
    relay.end()
    assert relay.process.returncode == -signal.SIGKILL


def test_a_relay_that_was_stopped_has_delivered_something_else(relay: Relay) -> None:
    rtt, stopped = 0.001, 0.3
    calibrated = Calibration(rtt, 0.0, rtt, rtt, Lateness(0, 0.0, 0.0))
    with serving(answering(*[(1, 1)] * 20)) as server:
        address = relay.route(server, rtt)
        with connected(address) as client:
            for number in range(20):
                if number == 10:
                    relay.process.send_signal(signal.SIGSTOP)
                client.sendall(b"?")
                if number == 10:
                    time.sleep(stopped)
                    relay.process.send_signal(signal.SIGCONT)
                received(client, 1)
    lateness = relay.lateness()[address]
    assert lateness.chunks * lateness.mean > 0.9 * stopped
    assert not is_within(calibrated.delivered([lateness]), rtt)


def test_traffic_adds_up() -> None:
    first, second = Traffic(1, 20, 300, 4), Traffic(1, 1, 1, 1)
    assert first + second == Traffic(2, 21, 301, 5)
    assert first + second - second == first
