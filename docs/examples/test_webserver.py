from urllib.request import urlopen

from tests.servers.conftest import MakeServer


def test_the_web_server_starts_and_answers(make_server: MakeServer) -> None:
    server = make_server("<webserver web/>\n")
    server.start()
    with urlopen(f"http://{server.host}:{server.port}/index.html") as page:
        assert page.read() == b"It works.\n"
