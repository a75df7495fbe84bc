"""The report of a workload: what an application does with its storage."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from rich.filesize import decimal

from zodbshootout.model.units import significant
from zodbshootout.recording.chunks import Kind
from zodbshootout.recording.description import WINDOWS, Description, Distribution, Step
from zodbshootout.recording.mixture import MADE
from zodbshootout.recording.recorded import Workload
from zodbshootout.reports.elements import (
    Chart,
    ChartKind,
    Entry,
    Note,
    Point,
    Report,
    Row,
    Scale,
    Table,
)

PERCENTAGES = (50, 90, 99, 100)
_COLUMNS = ("p50", "p90", "p99", "max")
HEAT = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""The points of the chart of loads: 0.01 means the hottest 1 % of the loaded objects."""
_MICROSECOND = 1e-6
PROCESSOR_TIME = "processor time of a transaction"
"""The only quantity that is in microseconds."""
_NOTES = (
    "stores: of the transactions that store anything",
    "times: with the storage that was in use; threads also wait for each other in them",
)


def workload_report(name: str, workload: Workload, description: Description) -> Report:
    """Return the report of one workload, which is called *name*."""
    overview = list(_overview(workload, description))
    quantities = _quantities(description)
    tables = [
        _table("Overview", overview),
        _table("Conflicts and failures", list(_outcomes(description))),
        _distributions(quantities),
        *([] if workload.facts[0].get("storage") == MADE else [_steps(description)]),
        _table("Share of the loads", list(_heat(description))),
        _windows(description),
    ]
    return Report(
        tables=[table for table in tables if table.rows],
        notes=list(map(Note, _NOTES)),
        records=[
            {"workload": name, "figure": figure, "value": value}
            for figure, value in _figures(overview, quantities, description)
            if value is not None
        ],
        charts=[
            chart
            for chart in (_heat_chart(name, description), _windows_chart(name, description))
            if chart.points
        ],
        facts=[row.entries[0].text for row in _facts(workload)],
    )


def _facts(workload: Workload) -> Iterator[Row]:
    first = workload.facts[0]
    if first.get("storage") == MADE:
        yield _row("made by", "zodbshootout workload make")
        return
    began = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(int(first["time"]) / 1e9))
    yield _row("recorded", began)
    storage = str(first.get("storage", ""))
    package = storage.partition(".")[0]
    names = [storage.rpartition(".")[2]]
    names += [
        f"{name} {first[name]}"
        for name in ("ZODB", "ZEO", "RelStorage")
        if name in first and (name == "ZODB" or name.lower() == package.lower())
    ]
    yield _row("storage", ", ".join(filter(None, names)))


def _overview(workload: Workload, description: Description) -> Iterator[Row]:
    seconds = description.seconds or 1.0
    transactions = description.transactions or 1
    facts = workload.facts[0]
    yield from _facts(workload)
    yield _row("duration", _time(description.seconds), description.seconds)
    yield _count("processes", len(workload.files))
    yield _count("connections", len(description.connections))
    if facts.get("sample", 1.0) < 1:
        yield _share("recorded connections", facts["sample"])
    yield _count("transactions", description.transactions)
    rate = description.transactions / seconds
    yield _row("transactions per second", significant(rate), rate)
    yield _share("read-only transactions", description.read_only / transactions)
    yield _count("commits", description.count(Kind.FINISH))
    yield _count("loads", description.count(Kind.LOAD))
    yield _count("stores", description.stored_sizes().total())
    yield _count("new objects", description.new_objects)
    yield _count("objects loaded", len(description.loads_of))
    for name, unit in {"objects": _count, "bytes": _bytes}.items():
        if isinstance(facts.get(name), int):
            yield unit(f"{name} in the database", facts[name])
    for label, kind in {"prefetched": Kind.PREFETCH, "readCurrent": Kind.READ_CURRENT}.items():
        if description.count(kind):
            yield _count(label, description.count(kind))


def _outcomes(description: Description) -> Iterator[Row]:
    resolved = description.numbers[Kind.VOTE].sum()
    if resolved:
        yield _count("conflicts resolved", resolved)
    for kind, label in ((Kind.CONFLICT, "conflicts in"), (Kind.FAILURE, "other exceptions in")):
        for call, count in description.raised(kind).items():
            yield _count(f"{label} {call}", count)


def _quantities(description: Description) -> dict[str, Distribution]:
    """Return each distribution that is shown, by its title."""
    numbers = description.numbers
    return {
        "loads of a transaction": description.loads,
        "stores of a transaction": description.stores,
        "invalidations at a begin": numbers[Kind.BEGIN],
        "bytes of a load": numbers[Kind.LOAD],
        "bytes of a store": description.stored_sizes(),
        "bytes of a loaded blob": numbers[Kind.LOAD_BLOB],
        "bytes of a stored blob": numbers[Kind.STORE_BLOB],
        PROCESSOR_TIME: numbers[Kind.END],
    }


def _distributions(quantities: Mapping[str, Distribution]) -> Table:
    rows = [
        Row(name, [Entry(_amount(name, value), float(value)) for value in values])
        for name, distribution in quantities.items()
        if any(values := distribution.percentiles(PERCENTAGES))
    ]
    return Table("Distributions", _COLUMNS, rows, title="Quantity")


def _steps(description: Description) -> Table:
    total = sum(map(description.seconds_of, Step)) or 1.0
    rows = []
    for step in Step:
        seconds = description.seconds_of(step)
        calls = description.ticks[step].total()
        if not calls:
            continue
        entries = [
            Entry(_plain(calls), float(calls)),
            Entry(_time(seconds), seconds),
            Entry(f"{seconds / total:.0%}", seconds / total),
        ]
        entries += [
            Entry(_time(value), value) for value in description.percentiles_of(step, (50, 99, 100))
        ]
        rows.append(Row(step.value, entries))
    columns = ["calls", "time", "share", "p50", "p99", "max"]
    return Table("Time in the storage", columns, rows, title="Step")


def _heat(description: Description) -> Iterator[Row]:
    if description.loads_of:
        for share, loads in zip((0.01, 0.1), description.heat((0.01, 0.1)), strict=True):
            yield _share(f"of the hottest {share:.0%} of the objects", loads)


def _windows(description: Description) -> Table:
    width = description.seconds / WINDOWS
    seen = description.distinct()
    rows = [
        Row(
            _time((number + 1) * width),
            [Entry(_plain(len(used)), float(len(used))), Entry(_plain(all_), float(all_))],
        )
        for number, (used, all_) in enumerate(zip(description.windows, seen, strict=True))
    ]
    columns = ["in that tenth", "so far"]
    return Table("Distinct objects", columns, rows if seen[-1] else [], title="Until")


def _figures(
    overview: Sequence[Row],
    quantities: Mapping[str, Distribution],
    description: Description,
) -> Iterator[tuple[str, float | None]]:
    """Yield the name and the value of each figure, with sizes in bytes and times in seconds."""
    for row in [*overview, *_outcomes(description)]:
        yield row.title, row.entries[0].value
    for name, distribution in quantities.items():
        unit = _MICROSECOND if name == PROCESSOR_TIME else 1
        values = distribution.percentiles(PERCENTAGES)
        for column, value in zip(_COLUMNS, values, strict=True):
            yield f"{name}, {column}", value * unit
    for step in Step:
        yield f"{step.value}, seconds", description.seconds_of(step)
        values_of = description.percentiles_of(step, (50, 99))
        for column, seconds in zip(("p50", "p99"), values_of, strict=True):
            yield f"{step.value}, {column}", seconds
    for row in _heat(description):
        yield row.title, row.entries[0].value
    for number, count in enumerate(description.distinct(), 1):
        yield f"distinct objects, {number} of {WINDOWS}", count


def _heat_chart(name: str, description: Description) -> Chart:
    loads = description.heat(HEAT) if description.loads_of else []
    points = [
        Point(name, 100 * share, 100 * part, f"{part:.0%}")
        for share, part in zip(HEAT, loads, strict=False)
    ]
    return Chart(
        ChartKind.LINES, "Loads of the hottest objects", "hottest first",
        Scale("percentage of the objects", logarithmic=True), Scale("percentage of the loads"),
        points, [name],
    )  # fmt: skip


def _windows_chart(name: str, description: Description) -> Chart:
    width = description.seconds / WINDOWS
    points = [
        Point(name, (number + 1) * width, count, _plain(count))
        for number, count in enumerate(description.distinct())
        if width
    ]
    return Chart(
        ChartKind.LINES, "Working set", "objects that were loaded or stored so far",
        Scale("seconds"), Scale("distinct objects"), points, [name],
    )  # fmt: skip


def _table(caption: str, rows: Sequence[Row]) -> Table:
    return Table(caption, ["value"], rows, title="Figure")


def _row(title: str, text: str, value: float | None = None) -> Row:
    """Return a row with one figure; *value* is ``None`` if the text is not a number."""
    return Row(title, [Entry(text, value)])


def _count(name: str, number: int) -> Row:
    return _row(name, _plain(number), number)


def _share(name: str, share: float) -> Row:
    return _row(name, f"{share:.0%}", share)


def _bytes(name: str, number: int) -> Row:
    return _row(name, decimal(number), number)


def _plain(number: float) -> str:
    return f"{number:,.0f}"


def _amount(name: str, number: int) -> str:
    return _time(number * _MICROSECOND) if name == PROCESSOR_TIME else _plain(number)


def _time(seconds: float) -> str:
    for unit, name in ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / _MICROSECOND:.3g} µs"
