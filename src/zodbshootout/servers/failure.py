"""Why a server does not run."""

from __future__ import annotations


class ServerFailed(Exception):  # noqa: N818
    """A server did not come up.

    The message is a predicate, such as ``ended at once: ...``; whoever knows the name of the
    server puts it before.
    """
