"""Notes on what numbers cannot show: durability, sharing and places of servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from zodbshootout.model.storage_facts import Durability, Place, Sharing
from zodbshootout.model.wording import listed
from zodbshootout.reports.cells import Columned

_USED_BY = {
    Sharing.CONCURRENT.value: "any number of processes at once",
    Sharing.EXCLUSIVE.value: "one process at a time",
    Sharing.VOLATILE.value: "one process, until it ends,",
}
_SERVED = {
    Place.PRIVATE.value: "on this machine, started by the run",
    Place.HERE.value: "on this machine",
    Place.ELSEWHERE.value: "elsewhere",
    "": "",
}
_Facts = Mapping[str, Mapping[str, Any]]
"""The metadata of contenders, by the titles of their columns."""


def promises(cells: Iterable[Columned]) -> list[str]:
    """Return lines about durability and sharing, if columns differ, and about servers, if any.

    Old results, whose metadata lack the durability, are left out.
    """
    measured = [(column, result.metadata) for column, result in cells if result.measured]
    facts = {column: keys for column, keys in measured if "durability" in keys}
    lines = [
        _durability(facts, is_complete=facts.keys() == dict(measured).keys()),
        _sharing(facts),
        _servers(facts),
        _encryption(facts),
    ]
    return [line for line in lines if line]


def _durability(facts: _Facts, *, is_complete: bool) -> str:
    """Return the line about durability; *is_complete* says whether *facts* have all columns."""
    columns = _grouped(facts, "durability", [kind.value for kind in Durability])
    synced = columns.pop(Durability.SYNCED.value, [])
    clauses = [
        clause
        for kind, names in columns.items()
        for clause in _clauses(kind, {name: facts[name] for name in names})
    ]
    if synced:
        names = "the others" if is_complete and len(synced) > 1 else listed(synced)
        clauses.append(f"{names} sync{_s(synced)} each commit, and lose{_s(synced)} none")
    return "; ".join(clauses) if len(clauses) > 1 else ""


def _clauses(kind: str, facts: _Facts) -> Iterator[str]:
    """Yield clauses on contenders whose durability is *kind*, one for each detail."""
    details = dict.fromkeys(str(keys.get("durability_detail", "")) for keys in facts.values())
    for detail, names in _grouped(facts, "durability_detail", details).items():
        those, because = listed(names), f" ({detail})" if detail else ""
        yield {
            Durability.MAY_LOSE.value: (
                f"{those} do{'' if len(names) > 1 else 'es'} not sync each commit{because}: a "
                "power cut may take the last ones"
            ),
            Durability.IN_MEMORY.value: (
                f"{those} keep{_s(names)} all data in memory{because}: a power cut takes all of it"
            ),
            Durability.UNKNOWN.value: (
                f"whether {those} sync{_s(names)} each commit is unknown{because}"
            ),
        }[kind]


def _sharing(facts: _Facts) -> str:
    columns = _grouped(facts, "sharing", _USED_BY)
    clauses = [f"by {_USED_BY[kind]} with {listed(names)}" for kind, names in columns.items()]
    return f"data can be used {'; '.join(clauses)}" if len(clauses) > 1 else ""


def _servers(facts: _Facts) -> str:
    columns = _grouped(facts, "server_place", _SERVED)
    clauses = [
        f"{listed(names)} {_SERVED[place]}" if place else f"none for {listed(names)}"
        for place, names in columns.items()
    ]
    return f"servers: {'; '.join(clauses)}" if any(columns) else ""


def _encryption(facts: _Facts) -> str:
    """Return a line if some contenders' connections are encrypted, and others' are not."""
    values = dict.fromkeys(str(keys.get("encryption", "")) for keys in facts.values())
    columns = _grouped(facts, "encryption", [value for value in values if value])
    plain = columns.pop("none", [])
    if not (plain and columns):
        return ""
    clauses = [f"those of {listed(names)} ({version})" for version, names in columns.items()]
    return f"connections that are encrypted: {'; '.join(clauses)}; not those of {listed(plain)}"


def _grouped(facts: _Facts, key: str, values: Iterable[str]) -> dict[str, list[str]]:
    """Return the columns by their value of *key*, in the order of *values*."""
    columns = {
        value: [column for column, keys in facts.items() if keys.get(key, "") == value]
        for value in values
    }
    return {value: names for value, names in columns.items() if names}


def _s(names: Sequence[str]) -> str:
    """Return the ending of a verb with *names* as its subject."""
    return "" if len(names) > 1 else "s"
