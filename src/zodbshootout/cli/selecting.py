"""Which contenders a run is about, and which of them may be written to in any case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from zodbshootout.cli.options import Options
from zodbshootout.client.storage_info import Sharing
from zodbshootout.contenders.contender import Contender, by_place
from zodbshootout.errors import UserError, suggestion


def selected(contenders: Sequence[Contender], options: Options) -> Sequence[Contender]:
    """Return the contenders that ``--only`` names, or all.

    :raises UserError: when there is none
    :raises UserError: when a name is that of no contender
    """
    names = [contender.name for contender in contenders]
    if not names:
        raise UserError(
            f"{options.path}: no contender; each is a section <zodb NAME> with a storage in it"
        )
    only = _named("--only", options.only, names)
    return [each for each in contenders if each.name in (only or names)]


def check_baseline(contenders: Sequence[Contender], options: Options) -> None:
    """Check that the contender that others are compared with is one of those that are measured.

    :raises UserError: when it is not
    """
    measured = [each.name for each in contenders]
    if options.run.baseline is not None and options.run.baseline not in measured:
        raise UserError(
            f"--baseline: {options.run.baseline!r} is not measured; "
            f"{suggestion(options.run.baseline, measured)}"
        )


def may_write(contenders: Iterable[Contender], options: Options) -> Sequence[str]:
    """Return the names of the contenders that ``--may-write`` names.

    :raises UserError: when a name is that of no contender
    """
    return _named("--may-write", options.run.may_write, [each.name for each in contenders])


def shared_databases(contenders: Sequence[Contender]) -> list[str]:
    """Say of each database which contenders it is, where it is several.

    What a contender keeps in its memory, such as the changes of a DemoStorage, is its own.
    """
    lasting = [each for each in contenders if each.info.sharing is not Sharing.VOLATILE]
    return [
        f"{' and '.join(each.name for each in same)} are one database: {', '.join(same[0].place)}"
        for same in by_place(lasting)
        if len(same) > 1
    ]


def _named(option: str, words: Collection[str], names: Sequence[str]) -> list[str]:
    """Return the names in *words*, where commas separate them unless the whole is a name."""
    found = [name for word in words for name in ([word] if word in names else word.split(","))]
    for name in found:
        if name not in names:
            raise UserError(f"{option}: no contender {name!r}; {suggestion(name, names)}")
    return found
