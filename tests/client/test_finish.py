"""The finish of a stretch, which all clients of a crew see."""

from __future__ import annotations

import pytest

from zodbshootout.client.finish import Finish, Memory


@pytest.mark.parametrize("memory", [Finish.among_threads(3), Finish.among_processes(3)])
def test_all_have_arrived_when_the_last_client_has_in_each_of_many_stretches(
    memory: Memory,
) -> None:
    clients = [Finish(memory, own) for own in range(3)]
    for stretch in range(600):  # the numbers begin again at 0
        last, *others = clients[stretch % 3 :] + clients[: stretch % 3]
        for client in others:
            client.arrive()
            assert not client.all_arrived()
        last.arrive()
        assert all(client.all_arrived() for client in clients)
