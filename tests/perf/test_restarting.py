from __future__ import annotations

import io

import pytest

from zodbshootout.perf.restarting import NotRestarted, answer_to, ask_for_restart
from zodbshootout.servers.failure import ServerFailed


def test_a_worker_asks_and_goes_on_when_it_is_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    restarted: list[str] = []
    monkeypatch.setattr("sys.stdin", io.StringIO("done\n"))
    ask_for_restart("pg hf")
    request = capsys.readouterr().out.strip("\n")
    assert answer_to(request, restarted.append) == "done\n"
    assert restarted == ["pg hf"]


def test_other_lines_ask_for_nothing() -> None:
    assert answer_to("restart: the day", pytest.fail) is None


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("server pg ended at once: no disk / no memory\n", "server pg ended at once: no disk"),
        ("", "nobody is there to restart the servers"),
    ],
)
def test_a_server_that_does_not_come_up_again_ends_the_work(
    answer: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    with pytest.raises(NotRestarted, match=message):
        ask_for_restart("a")


def test_whatever_goes_wrong_is_an_answer() -> None:
    def fail(contender: str) -> None:
        raise OSError("no space")

    assert answer_to("restart servers of: a", fail) == "OSError: no space\n"


def test_the_reason_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(contender: str) -> None:
        raise ServerFailed("server pg\nended")

    assert answer_to("restart servers of: a", fail) == "server pg ended\n"
