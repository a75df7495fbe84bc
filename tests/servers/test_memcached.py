from __future__ import annotations

from tests.servers.conftest import MakeServer


def test_settings_become_long_options_after_those_of_the_run(
    make_server: MakeServer, programs: str
) -> None:
    server = make_server(
        f"<memcachedserver it>\nprograms {programs}\n<settings>\nmemory-limit 64\n"
        "disable-evictions\n</settings>\n</memcachedserver>\n"
    )
    assert server.command() == [
        f"{programs}/memcached",
        "--listen=127.0.0.1",
        f"--port={server.port}",
        "--udp-port=0",
        "--conn-limit=1024",
        "--memory-limit=64",
        "--disable-evictions",
    ]
