"""Facts that are recorded of ZEO's ClientStorage."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from zodbshootout.client.storage_types.zeo import ClientStorageType


@pytest.mark.parametrize("installed", [{"ZEO"}, {"ZEO", "uvloop"}])
def test_versions_include_the_event_loop_if_it_is_installed(
    installed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {name: f"of {name}" for name in installed}
    monkeypatch.setattr("zodbshootout.versions._version", versions.get)
    assert ClientStorageType(None).versions() == versions


@pytest.mark.parametrize(("given", "verified"), [(None, "db"), ("other", "other")])
def test_the_name_in_a_certificate_is_that_of_the_server_itself(
    given: str | None, verified: str
) -> None:
    server = SimpleNamespace(address=("db", 8100))
    config = SimpleNamespace(server=[server], ssl=("context", given))
    ClientStorageType.reroute(SimpleNamespace(config=config), lambda *_, **__: ("::1", 7))
    assert (server.address, config.ssl) == (("::1", 7), ("context", verified))
