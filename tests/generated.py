"""The amount of generated input: for a usual test run, or all of it with ``--full``."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

full = False
"""Whether all input is generated: ``--full``."""
EXAMPLES = 25
"""The number of examples in a usual run of a test that does not say it."""


def examples(few: int, many: int) -> settings:
    """Return the settings for *few* examples in a usual run, and *many* in a full one."""
    return settings(
        max_examples=many if full else few,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
