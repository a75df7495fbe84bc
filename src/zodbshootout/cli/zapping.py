"""Whose data is destroyed: who is asked, and what counts as a yes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zodbshootout.cli.arguments import FORCE
from zodbshootout.cli.options import Zap
from zodbshootout.contenders.contender import Contender, by_place
from zodbshootout.errors import UserError, suggestion


def to_be_zapped(
    zap: Zap, contenders: Sequence[Contender], ask: Callable[[str], bool] | None
) -> frozenset[str]:
    """Return the names of the contenders whose data is to be destroyed, and ask where need be.

    *ask* is ``None`` where nobody can answer.

    :raises UserError: when a name is that of no contender, or of one that cannot be zapped, or
        nobody can be asked
    """
    names = [contender.name for contender in contenders]
    if zap.force and FORCE in names:
        raise UserError(f"--zap {FORCE}: a contender has that name; give it another one")
    for wanted in zap.names:
        if wanted not in names:
            raise UserError(f"--zap: no contender {wanted!r}; {suggestion(wanted, names)}")
    if not zap.asked_for:
        return frozenset()
    can_be = [each for each in contenders if each.zap_obstacle is None]
    if zap.names:
        _check_named(zap.names, contenders)
        return frozenset(zap.names)
    if zap.force:
        return frozenset(each.name for each in can_be)
    if ask is None:
        raise UserError(
            "--zap asks before it destroys anything, and there is no terminal to ask on; "
            f"name the contenders, as in --zap {','.join(each.name for each in can_be)}"
        )
    chosen = [same for same in by_place(can_be) if ask(_question(same))]
    return frozenset(each.name for same in chosen for each in same)


def _check_named(names: Sequence[str], contenders: Sequence[Contender]) -> None:
    for same in by_place(contenders):
        named = [each for each in same if each.name in names]
        for each in named:
            if each.zap_obstacle is not None:
                raise UserError(f"--zap: {each.name} cannot be zapped: {each.zap_obstacle}")
        if named and len(named) < len(same):
            other = next(each.name for each in same if each.name not in names)
            raise UserError(
                f"--zap: {named[0].name} and {other} are one database; name both or neither"
            )


def _question(same: Sequence[Contender]) -> str:
    place = ", ".join(same[0].place)
    names = " and ".join(each.name for each in same)
    what = f"{same[0].info.storage_name} ({place})" if place else same[0].info.storage_name
    return f"Destroy all data of {names}, {what}?"
