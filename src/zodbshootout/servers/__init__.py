"""Private servers, which a run starts and stops for its contenders."""

from __future__ import annotations


class ServerFailed(Exception):  # noqa: N818
    """A server did not start, so the contenders that need it cannot be measured."""
