"""The fakes of a shootout have the methods of the classes for which they stand."""

from __future__ import annotations

from inspect import signature

import pytest

from tests.scheduling.faked_shootout import FakeWorker, Site
from zodbshootout.servers.running import RunningServers
from zodbshootout.workers.coordinator import ForkServer, Launcher, Worker


@pytest.mark.parametrize(
    ("fake", "real", "names"),
    [
        (Site, Launcher, "fork_server"),
        (Site, ForkServer, "is_usable import_modules inspect prepare count measure operate"),
        (Site, RunningServers, "halt_for resume_for how_ended usage memory"),
        (
            FakeWorker,
            Worker,
            "start wait call attempt begin spend finish abandon",
        ),
    ],
)
def test_a_fake_is_called_as_what_it_stands_for(fake: type, real: type, names: str) -> None:
    for name in names.split():
        ours, theirs = (signature(getattr(kind, name)).parameters for kind in (fake, real))
        assert [*map(str, ours.values())] == [*map(str, theirs.values())], name
