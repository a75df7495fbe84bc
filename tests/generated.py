"""How much input is generated: as much as a test run can bear, or all that is wanted."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

full = False
"""Whether it is all that is wanted, ``--full``."""


def examples(few: int, many: int) -> settings:
    """Return how many examples there are, in a short run and in a full one."""
    return settings(
        max_examples=many if full else few,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
