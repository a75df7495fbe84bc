"""The format ``customSmallerIsBetter``, from which services draw a curve of each figure.

github-action-benchmark defines the format: a JSON array of objects, each with a name, a unit and a
value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from zodbshootout.errors import UserError
from zodbshootout.model.parameters import PARAMETERS
from zodbshootout.model.quantities import TIME, TRIPS
from zodbshootout.model.specification import CrewShape, Parameters, exactly
from zodbshootout.model.units import significant
from zodbshootout.reports.elements import Report

_DEFAULTS = {one.key: one.written(Parameters(CrewShape(1))) for one in PARAMETERS}


def write(report: Report, console: Console) -> None:
    """Write the time and the round trips of each cell that was measured.

    :raises UserError: if the report has other figures, as those of ``compare`` have
    """
    if not all({TIME.key, TRIPS.key} <= record.keys() for record in report.records):
        raise UserError(
            "customSmallerIsBetter has times and round trips; to write it: zodbshootout show FILE "
            "--format customSmallerIsBetter"
        )
    curves = [curve for record in report.records for curve in _curves(record)]
    json.dump(curves, console.file, indent=1)
    console.file.write("\n")


def _curves(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    name, seconds, trips = _name(record), record[TIME.key], record[TRIPS.key]
    if seconds is not None:
        yield {"name": f"{name}: time", "unit": "ms", "value": 1000 * seconds, **_range(record)}
    if trips is not None:
        yield {"name": f"{name}: round trips", "unit": "round trips", "value": trips}


def _range(record: Mapping[str, Any]) -> dict[str, str]:
    low, high = record["interval_low_s"], record["interval_high_s"]
    if low is None:
        return {}
    return {"range": f"± {significant(50 * (high - low) / record[TIME.key])} %"}


def _name(record: Mapping[str, Any]) -> str:
    """Return a name that is the same in each run with the same parameters; leave out defaults."""
    words = [
        f"{key}={exactly(value) if isinstance(value, float) else value}"
        for key, default in _DEFAULTS.items()
        if (value := record.get(key)) and value != default
    ]
    file = f"{record['file']}: " if record["file"] else ""
    return " ".join([f"{file}{record['contender']}: {record['benchmark']}", *words])
