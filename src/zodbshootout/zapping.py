"""Whose data is destroyed: who is asked, and what counts as a yes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zodbshootout.arguments import UsageError
from zodbshootout.config.explanation import suggestion
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.layer import Sharing
from zodbshootout.options import Zap

_PLACES = ("path", "data_dir", "dsn", "db", "server")
"""Settings that tell a user which database it is."""


def to_be_zapped(
    zap: Zap, contenders: Sequence[Contender], ask: Callable[[str], bool]
) -> frozenset[str]:
    """Return the names of the contenders whose data is to be destroyed, and ask where need be.

    :raises UsageError: when a name is that of no contender
    """
    names = [contender.name for contender in contenders]
    for wanted in zap.names:
        if wanted not in names:
            raise UsageError(f"--zap: no contender {wanted!r}; {suggestion(wanted, names)}")
    if not zap.asked_for:
        return frozenset()
    if zap.names:
        return frozenset(zap.names)
    # What lives in memory is empty whenever it is opened.
    lasting = [each for each in contenders if each.sharing is not Sharing.VOLATILE]
    return frozenset(each.name for each in lasting if zap.force or ask(_question(each)))


def _question(contender: Contender) -> str:
    where = [
        value for key, value in contender.settings.items() if key.rpartition(".")[2] in _PLACES
    ]
    place = f" ({', '.join(where)})" if where else ""
    return f"Destroy all data of {contender.name}, {contender.storage_name}{place}?"
