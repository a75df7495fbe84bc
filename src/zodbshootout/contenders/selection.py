"""The contenders that options such as ``--only`` and ``--zap`` name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from zodbshootout.contenders.contender import Contender
from zodbshootout.errors import UserError, suggestion
from zodbshootout.model.grouping import grouped
from zodbshootout.model.specification import Parameters
from zodbshootout.model.storage_facts import Sharing
from zodbshootout.model.titles import title_of


def named(option: str, words: Collection[str], names: Sequence[str]) -> list[str]:
    """Return the names of contenders in the *words* of an option.

    Commas separate names, unless the whole word is a name.

    :raises UserError: if a name is not among *names*
    """
    wanted = [name for word in words for name in ([word] if word in names else word.split(","))]
    for name in wanted:
        if name not in names:
            raise UserError(f"{option}: no contender {name!r}; {suggestion(name, names)}")
    return list(dict.fromkeys(wanted))


def baseline_among(measured: Sequence[Contender], baseline: str | None) -> str | None:
    """Find the ``--baseline`` column, ignoring case; return its title.

    :raises UserError: if it is not among the columns of the *measured* contenders
    """
    if baseline is None:
        return None
    columns = [title_of(contender.name, contender.variant) for contender in measured]
    names = {column.lower(): column for column in columns}
    if baseline.lower() not in names:
        advice = suggestion(baseline, list(names.values()))
        raise UserError(f"--baseline: {baseline!r} is not measured; {advice}")
    return names[baseline.lower()]


def shared_databases(contenders: Sequence[Contender]) -> list[str]:
    """Return a sentence for each database that several contenders share.

    A contender that has data in memory, such as the changes of a DemoStorage, shares nothing.
    """
    lasting = [
        contender for contender in contenders if contender.info.sharing is not Sharing.VOLATILE
    ]
    return [
        f"{' and '.join(_names(group))} use the same database: {', '.join(group[0].place)}"
        for group in _by_place(lasting)
        if len(group) > 1
    ]


def only_clients_in_environments(contenders: Iterable[Contender]) -> list[str]:
    """Return a sentence for each environment that has a ZEO server's clients but not the server."""
    names: dict[tuple[str, str], list[str]] = {}
    for contender in contenders:
        environment = contender.environment
        if environment is None or environment.is_ours:
            continue
        for server in contender.servers.values():
            others = contender.server_environments.get(server.name)
            if server.kind == "zeoserver" and others != environment:
                place = f"is in environment {others.name}" if others else "runs what is installed"
                where = environment.name, f"server {server.name} {place}"
                names.setdefault(where, []).append(contender.title)
    return [
        f"only the clients of {' and '.join(group)} are in environment {environment}; {server}"
        for (environment, server), group in names.items()
    ]


def not_moved(contenders: Iterable[Contender]) -> list[str]:
    """Return a sentence that names the contenders without a server, if there are any."""
    names = [one.title for one in contenders if one.server_line == "" and not one.connects]
    has, is_ = ("have", "are") if len(names) > 1 else ("has", "is")
    return [f"--rtt: {' and '.join(names)} {has} no server, and {is_} measured once"][: len(names)]


def refused_unless_alone(contenders: Sequence[Contender], parameters: Parameters) -> str | None:
    """Return why all contenders refuse *parameters*.

    Return ``None`` if a contender accepts them, or if all contenders refuse them even with one
    client.
    """
    alone = replace(parameters, crew=replace(parameters.crew, size=1))
    reasons = [contender.refusal(parameters) for contender in contenders]
    if None in reasons or all(contender.refusal(alone) for contender in contenders):
        return None
    return reasons[0]


def to_be_zapped(
    contenders: Sequence[Contender],
    words: Sequence[str],
    ask: Callable[[str], bool] | None,
    *,
    force: bool = False,
    unavailable: Collection[str] = (),
) -> frozenset[str]:
    """Return the titles of the contenders whose data ``--zap`` destroys.

    If there are *words*, they name the contenders.  Otherwise, the candidates are all contenders
    that can be zapped and are not *unavailable*.  Unless *force* is set, *ask* then lets the user
    decide about each database.  *ask* is ``None`` if nobody can answer.
    """
    names = _names(contenders)
    if force and "force" in names:
        raise UserError("--zap force: a contender has that name; rename it")
    if words:
        wanted = named("--zap", words, names)
        _check_can_be_zapped(wanted, contenders)
        return frozenset(wanted)
    candidates = [
        contender
        for contender in contenders
        if contender.zap_obstacle is None and contender.title not in unavailable
    ]
    if force:
        return frozenset(_names(candidates))
    if ask is None:
        raise UserError(
            "--zap asks before it destroys anything, but there is no terminal; "
            f"name the contenders, as in --zap {','.join(_names(candidates))}"
        )
    chosen = [group for group in _by_place(candidates) if ask(_question(group))]
    return frozenset(contender.title for group in chosen for contender in group)


def _names(contenders: Sequence[Contender]) -> list[str]:
    return [contender.title for contender in contenders]


def _check_can_be_zapped(names: Sequence[str], contenders: Sequence[Contender]) -> None:
    for group in _by_place(contenders):
        wanted = [contender for contender in group if contender.title in names]
        for contender in wanted:
            if contender.zap_obstacle is not None:
                raise UserError(
                    f"--zap: {contender.title} cannot be zapped: {contender.zap_obstacle}"
                )
        if wanted and len(wanted) < len(group):
            other = next(contender.title for contender in group if contender.title not in names)
            raise UserError(
                f"--zap: {wanted[0].title} and {other} use the same database; name both or neither"
            )


def _question(group: Sequence[Contender]) -> str:
    place = ", ".join(group[0].place)
    names = " and ".join(_names(group))
    storage = group[0].info.storage_name
    return f"Destroy all data of {names}, {f'{storage} ({place})' if place else storage}?"


def _by_place(contenders: Iterable[Contender]) -> list[list[Contender]]:
    """Return the contenders in groups; the contenders of a group use the same database."""
    places = grouped((one.place or (one.title,), one) for one in contenders)
    return list(places.values())
