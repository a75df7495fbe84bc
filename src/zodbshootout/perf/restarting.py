"""How a worker has servers restarted, which are not its own: it asks whoever started it.

It prints one line, and reads one from its standard input when that is done.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from zodbshootout.servers.failure import ServerFailed

_REQUEST = "restart servers of: "
_DONE = "done"


class NotRestarted(Exception):  # noqa: N818
    """A server did not come up again."""


def ask_for_restart(contender: str) -> None:
    """Wait until the servers that a contender needs have been restarted.

    :raises NotRestarted: when one has not
    """
    # On a line of its own, whatever others have begun to print.
    print(f"\n{_REQUEST}{contender}", flush=True)  # noqa: T201
    answer = sys.stdin.readline().strip()
    if answer != _DONE:
        raise NotRestarted(answer or "nobody is there to restart the servers")


def answer_to(line: str, restart: Callable[[str], None]) -> str | None:
    """Do what a worker asks for in *line*; return the answer, or ``None`` if it asks for nothing.

    *restart* takes the name of a contender; whatever it raises becomes the answer, for the worker
    waits for one.
    """
    if not line.startswith(_REQUEST):
        return None
    try:
        restart(line.removeprefix(_REQUEST))
    except Exception as error:  # noqa: BLE001
        kind = "" if isinstance(error, ServerFailed) else f"{type(error).__name__}: "
        return f"{kind}{' '.join(str(error).split())}\n"
    return f"{_DONE}\n"
