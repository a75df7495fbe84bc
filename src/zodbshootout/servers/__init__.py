"""Private servers: those that a run starts for its contenders, and stops."""

from __future__ import annotations


class ServerFailed(Exception):  # noqa: N818
    """A server did not come up, so its contenders cannot be measured; the others can."""
