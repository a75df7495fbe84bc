"""Commands that run in the process of a test."""

from __future__ import annotations

import io

from zodbshootout.cli.main import main


def outcome(*words: object) -> tuple[int, str, str]:
    """Run a command; return its status, its output and its errors."""
    out, err = io.StringIO(), io.StringIO()
    status = main(list(map(str, words)), out, err, io.StringIO())
    return status, out.getvalue(), err.getvalue()
