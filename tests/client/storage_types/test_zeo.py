"""Facts that are recorded of ZEO's ClientStorage."""

from __future__ import annotations

import pytest

from zodbshootout.client.storage_types.zeo import ClientStorageType


@pytest.mark.parametrize("installed", [{"ZEO"}, {"ZEO", "uvloop"}])
def test_versions_include_the_event_loop_if_it_is_installed(
    installed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {name: f"of {name}" for name in installed}
    monkeypatch.setattr("zodbshootout.versions._version", versions.get)
    assert ClientStorageType(None).versions() == versions
