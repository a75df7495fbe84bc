"""Errors that end the command: one line for the user, and an exit status."""

from __future__ import annotations

BAD_USAGE = 2


class UserError(Exception):
    """A mistake in the command line or the configuration.

    The message is one line: what is wrong, where, and what to type instead.
    """

    status = BAD_USAGE
