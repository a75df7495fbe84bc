from pathlib import Path
from urllib.request import urlopen

from webserver import WebServer

from zodbshootout.api.testing import started


def test_the_web_server_starts_and_answers(tmp_path: Path) -> None:
    with (
        started(WebServer, "%import webserver\n<webserver web/>\n", tmp_path) as server,
        urlopen(f"http://{server.host}:{server.port}/index.html") as page,
    ):
        assert page.read() == b"It works.\n"
