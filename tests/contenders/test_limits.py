"""The crews that a contender refuses, and the servers that must run before it is opened."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from ZEO.StorageServer import StorageServer
from ZODB.DemoStorage import DemoStorage
from ZODB.MappingStorage import MappingStorage

from zodbshootout.client.database import open_db
from zodbshootout.client.preparation import inspect
from zodbshootout.client.storage_types import promise_of
from zodbshootout.config.configuration import parse
from zodbshootout.config.source import Source
from zodbshootout.contenders.contender import Contender, contenders_of
from zodbshootout.model.outcome import describe
from zodbshootout.model.specification import ClientKind, CrewShape, Parameters, Storage
from zodbshootout.model.storage_facts import Durability, Limit, Sharing, StorageInfo

IMPORTS = "%import relstorage\n%import zc.zlibstorage\n"
FS = "<filestorage>\npath $scratch/x.fs\n</filestorage>\n"
READ_ONLY = FS.replace("</", "read-only true\n</")
MAPPING = "<mappingstorage/>\n"
CHANGES = "<filestorage changes>\npath $scratch/changes.fs\n</filestorage>\n"
SQLITE = "<relstorage>\n<sqlite3>\ndata-dir $scratch/s\n</sqlite3>\n</relstorage>\n"
PROCESSES = CrewShape(2)
SHARED = CrewShape(2, ClientKind.THREAD, shared=True)
GREENLETS = frozenset({ClientKind.GREENLET})


def contender(storage: str, place: Path) -> Contender:
    source = Source(place / "x.conf", f"{IMPORTS}<zodb x>\n{storage}</zodb>\n")
    (only_contender,) = contenders_of(parse(source, {"scratch": str(place)}))
    return only_contender


def opened(storage: str, place: Path) -> Contender:
    closed = contender(storage, place)
    return closed.opened(inspect(closed.storage))


def wrap(section: str, *inner: str) -> str:
    return f"<{section}>\n{''.join(inner)}</{section}>\n"


def blobs(inner: str) -> str:
    return wrap("blobstorage", "blob-dir $scratch/blobs\n", inner)


def refusal(candidate: Contender, shape: CrewShape) -> str | None:
    return candidate.refusal(Parameters(shape))


@pytest.mark.parametrize(
    ("limit", "limited", "free"),
    [
        (Limit("x"), [CrewShape(1), PROCESSES, SHARED], []),
        (
            Limit("x", client_kinds=GREENLETS),
            [CrewShape(1, ClientKind.GREENLET), CrewShape(3, ClientKind.GREENLET, shared=True)],
            [CrewShape(1), SHARED],
        ),
        (
            Limit("x", databases=2),
            [PROCESSES, CrewShape(2, ClientKind.THREAD)],
            [CrewShape(1), SHARED, CrewShape(1, ClientKind.THREAD)],
        ),
        (
            Limit("x", sharers=2),
            [SHARED, CrewShape(2, ClientKind.GREENLET, shared=True)],
            [CrewShape(1, ClientKind.THREAD, shared=True), PROCESSES],
        ),
        (
            Limit("x", client_kinds=GREENLETS, databases=2),
            [CrewShape(2, ClientKind.GREENLET)],
            [
                PROCESSES,
                CrewShape(1, ClientKind.GREENLET),
                CrewShape(2, ClientKind.GREENLET, shared=True),
            ],
        ),
    ],
)
def test_a_limit_applies_only_if_all_its_conditions_are_met(
    limit: Limit, limited: list[CrewShape], free: list[CrewShape]
) -> None:
    assert all(map(limit.applies_to, limited))
    assert not any(map(limit.applies_to, free))
    limited_contender = Contender("x", Storage(), limits=(limit,))
    assert {refusal(limited_contender, shape) for shape in limited} == {"x"}
    assert {refusal(limited_contender, shape) for shape in free} <= {None}


def test_a_contender_refuses_crews_that_its_storage_cannot_serve(tmp_path: Path) -> None:
    with zeo_server() as address:
        filestorage, memory, sqlite, zeo = contenders = [
            opened(storage, tmp_path) for storage in (FS, MAPPING, SQLITE, client_of(address))
        ]
    assert refusal(filestorage, PROCESSES) == (
        "FileStorage: only one DB at a time can open it; use --threads shared, or -c 1"
    )
    assert refusal(memory, PROCESSES) == (
        "MappingStorage: its data exists in one DB only; use --threads shared, or -c 1"
    )
    assert refusal(zeo, PROCESSES) is None
    assert refusal(sqlite, PROCESSES) is None
    assert "event loop" in str(refusal(zeo, CrewShape(2, ClientKind.GREENLET)))
    for any_contender in contenders:
        assert refusal(any_contender, CrewShape(1)) is None
        assert refusal(any_contender, CrewShape(9, ClientKind.GREENLET, shared=True)) is None


def test_opening_a_contender_can_reveal_reasons_to_refuse_parameters(tmp_path: Path) -> None:
    sqlite = contender(SQLITE, tmp_path)
    with_blobs = Parameters(CrewShape(1), blobs=True)
    assert sqlite.refusal(with_blobs) is None
    assert sqlite.opened(StorageInfo("X", stores_blobs=False)).refusal(with_blobs) == (
        "X stores no blobs as configured here; see blob-dir"
    )
    exclusive = sqlite.opened(StorageInfo("X", sharing=Sharing.EXCLUSIVE))
    assert str(refusal(exclusive, PROCESSES)).startswith(
        "X: only one DB at a time can open it; use"
    )


@pytest.mark.parametrize(
    ("keys", "setting"),
    [
        ("", ""),
        ("client c\nvar $scratch\n", "client"),
        ("cache-path $scratch/c\n", "cache-path"),
    ],
)
def test_a_persistent_zeo_cache_serves_only_one_db(keys: str, setting: str, tmp_path: Path) -> None:
    section = "zeoclient" if "var" in keys else "clientstorage"
    with zeo_server() as address:
        zeo = opened(f"%import ZEO\n{client_of(address, keys, section)}", tmp_path)
    assert zeo.info.persistent_cache == setting
    assert ("persistent cache file serves one DB" in str(refusal(zeo, PROCESSES))) == bool(setting)
    assert refusal(zeo, SHARED) is None


@pytest.mark.slow
def test_a_contender_whose_section_another_python_reads_has_the_limits_that_this_one_reports(
    tmp_path: Path,
) -> None:
    environment = "<environment other>\npython python3\n</environment>\n"
    section = f"{environment}<zodb x>\nenvironment other\n{FS}</zodb>\n"
    (candidate,) = contenders_of(parse(Source(tmp_path / "x.conf", section), {"scratch": "s"}))
    assert refusal(candidate, SHARED) is None
    limit = Limit("use -c 1", sharers=2)
    assert refusal(candidate.opened(StorageInfo(limits=(limit,))), SHARED) == "use -c 1"


def test_a_wrapper_of_a_storage_for_one_db_refuses_several_processes(
    tmp_path: Path,
) -> None:
    compressed = wrap("zlibstorage", blobs(FS.replace("x.fs", "z.fs")))
    assert refusal(opened(compressed, tmp_path), PROCESSES) == (
        "ZlibStorage over BlobStorage over FileStorage: only one DB at a time can open it; "
        "use --threads shared, or -c 1"
    )
    assert refusal(opened(wrap("demostorage", FS), tmp_path), PROCESSES) == (
        "DemoStorage: its data exists in one DB only; use --threads shared, or -c 1"
    )
    kept = opened(wrap("demostorage", FS, CHANGES), tmp_path)
    assert "one DB at a time" in str(refusal(kept, PROCESSES))
    assert refusal(opened(wrap("zlibstorage", SQLITE), tmp_path), PROCESSES) is None


def test_a_demostorage_over_relstorage_refuses_threads_that_share_a_db(tmp_path: Path) -> None:
    demo = opened(wrap("demostorage", wrap("zlibstorage", SQLITE)), tmp_path)
    assert "DemoStorage uses one RelStorage in all threads" in str(refusal(demo, SHARED))
    assert refusal(demo, CrewShape(1, ClientKind.THREAD, shared=True)) is None
    assert refusal(opened(wrap("demostorage", FS), tmp_path), SHARED) is None


def test_a_demostorage_cannot_keep_its_changes_in_relstorage_or_zeo(tmp_path: Path) -> None:
    demo = contender(wrap("demostorage", FS), tmp_path)
    with zeo_server() as address:
        for section in (SQLITE, client_of(address)):
            changes = open_db(contender(section, tmp_path).storage).storage
            with closing(changes), pytest.raises(AttributeError) as caught:
                DemoStorage(changes=changes)
            assert demo.advice_on(describe(caught.value)) == (
                "DemoStorage cannot keep its changes in this storage; use a <filestorage changes>"
            )


@pytest.mark.parametrize(
    ("storage", "obstacle"),
    [
        (FS, None),
        (MAPPING, "MappingStorage keeps its data in the memory of one process"),
        (wrap("demostorage", FS, CHANGES), "DemoStorage: its base stays as it is"),
        (READ_ONLY, "it is configured to be read-only"),
        (wrap("zlibstorage", READ_ONLY), "it is configured to be read-only"),
    ],
)
def test_a_contender_reports_the_obstacle_to_zapping_it(
    storage: str, obstacle: str | None, tmp_path: Path
) -> None:
    opened(FS, tmp_path)  # makes the file
    assert opened(storage, tmp_path).zap_obstacle == obstacle


@pytest.mark.parametrize(
    ("storage", "durability"),
    [
        (wrap("zlibstorage", wrap("demostorage", FS)), Durability.IN_MEMORY),
        (wrap("demostorage", FS, CHANGES), Durability.SYNCED),
        (SQLITE, Durability.UNKNOWN),
    ],
)
def test_a_section_says_how_durable_what_a_server_keeps_is(
    storage: str, durability: Durability, tmp_path: Path
) -> None:
    text = f"{IMPORTS}<zeoserver main>\n{storage}</zeoserver>\n"
    (server,) = parse(Source(tmp_path / "x.conf", text), {"scratch": str(tmp_path)}).servers
    assert promise_of(server.config.storage[0])[0] is durability


def with_memcached(place: Path, servers: str) -> Contender:
    return contender(SQLITE.replace("<sqlite3>", f"cache-servers {servers}\n<sqlite3>"), place)


def test_a_contender_reports_a_memcached_that_is_not_running(
    tmp_path: Path,
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        host, port = listener.getsockname()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        named = "{}:{}".format(*listener.getsockname())
        assert with_memcached(tmp_path, named).missing_server() is None
        assert with_memcached(tmp_path, f"{named} {host}:{port}").missing_server() == (
            f"no memcached at {host}:{port}; start one there: memcached -l {host} -p {port}"
        )
    assert with_memcached(tmp_path, f"unix:{tmp_path}/mc").missing_server() == (
        f"no memcached at {tmp_path}/mc; start one there: memcached -s {tmp_path}/mc"
    )


def test_a_server_on_another_host_comes_without_a_command_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr("zodbshootout.client.reachability.connect", refuse)
    assert with_memcached(tmp_path, "mc.invalid:11").missing_server() == (
        "no memcached at mc.invalid:11; start one there, or name another in cache-servers"
    )
    foreign = "server zeo1.invalid:8100\n"
    assert contender(wrap("zeoclient", foreign), tmp_path).missing_server() == (
        "no ZEO server at zeo1.invalid:8100; start one there, or name another"
    )
    for here in ("localhost", "127.0.1.1", socket.gethostname().lower()):
        zeo = contender(wrap("zeoclient", foreign, f"server {here}:8100\n"), tmp_path)
        assert str(zeo.missing_server()).endswith(
            f"or {here}:8100; start one there: runzeo -a {here}:8100 -f Data.fs"
        )


@contextmanager
def zeo_server(*, read_only: bool = False) -> Iterator[str]:
    """Run a ZEO server with a storage ``one`` in memory in a thread; yield its address."""
    server = StorageServer(("127.0.0.1", 0), {"one": MappingStorage()}, read_only=read_only)
    thread = threading.Thread(target=server.loop)
    thread.start()
    try:
        yield "{}:{}".format(*server.addr)
    finally:
        server.close()
        thread.join()


def client_of(address: str, keys: str = "", section: str = "zeoclient") -> str:
    end = section.partition(" ")[0]
    return f"<{section}>\nserver {address}\nstorage one\n{keys}</{end}>\n"


@pytest.mark.parametrize(
    ("read_only", "keys", "expected"),
    [
        (False, "storage one", None),
        (False, "storage 2", "has no storage '2'; write 'storage NAME' with a name from its"),
        (False, "", "has no storage '1'; write 'storage NAME' with a name from its configuration"),
        (False, "storage one\nread-only true", None),
        (
            True,
            "storage one",
            "is read-only; write 'read-only true' in its client's section",
        ),
        (True, "storage one\nread-only true", None),
        (True, "storage one\nread-only-fallback true", None),
        (True, "storage 2\nread-only true", "has no storage '2'"),
    ],
)
def test_a_zeo_server_is_asked_whether_it_would_refuse_the_client(
    read_only: bool, keys: str, expected: str | None, tmp_path: Path
) -> None:
    with zeo_server(read_only=read_only) as address:
        text = wrap("zeoclient", f"server {address}\n{keys}\n")
        answer = contender(text, tmp_path).missing_server()
        if expected is None:
            assert answer is None
        else:
            assert str(answer).startswith(f"the ZEO server at {address} {expected}")


def test_one_zeo_server_that_does_not_refuse_the_client_is_enough(tmp_path: Path) -> None:
    with zeo_server(read_only=True) as other, zeo_server() as address:
        servers = f"server {other}\nserver {address}\nstorage one\n"
        assert contender(wrap("zeoclient", servers), tmp_path).missing_server() is None


def test_a_server_that_is_not_zeos_refuses_nothing(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        zeo = contender(
            wrap("zeoclient", "server {}:{}\n".format(*listener.getsockname())), tmp_path
        )

        def serve() -> None:
            for greeting in (b"", b"SSH-2.0-x\r\n"):
                connection, _ = listener.accept()
                connection.sendall(greeting)
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        assert zeo.missing_server() is None
        thread.join()
    advice = zeo.advice_on("ClientDisconnected: timed out waiting for connection")
    assert "has a storage '1'" in str(advice)


def test_a_zeo_client_needs_a_server_at_only_one_of_its_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zodbshootout.client.reachability.TIMEOUT", 0.2)  # nothing answers
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        address = "{}:{}".format(*listener.getsockname())
        section = f"<zeoclient>\nserver {tmp_path}/no.sock\nserver {address}\n</zeoclient>\n"
        zeo = contender(section, tmp_path)
        assert zeo.missing_server() is None
    assert zeo.missing_server() == (
        f"no ZEO server at {tmp_path}/no.sock or {address}; start one there: "
        f"runzeo -a {tmp_path}/no.sock -f Data.fs"
    )


def test_a_limit_of_a_process_disregards_other_hosts_on_the_same_machine() -> None:
    shape = CrewShape(4, ClientKind.GREENLET, shared=True, hosts=2)
    assert Limit("x", databases=2).applies_to(shape, hosts_together=2)
    assert not Limit("x", databases=2, of_process=True).applies_to(shape, hosts_together=2)
