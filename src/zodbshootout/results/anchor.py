"""The files beside the points of a history: ``history.toml`` and ``accepted.toml``."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zodbshootout.errors import UserError
from zodbshootout.results.history import PointCell
from zodbshootout.results.replacement import replace_file

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ANCHOR_FILE, ACCEPTED_FILE = "history.toml", "accepted.toml"


@dataclass(frozen=True)
class Anchor:
    """The packages with which every point is compared."""

    word: str
    """The value of ``--against`` for the anchor; empty if the first candidate is the anchor."""
    requirements: Sequence[str]
    """The requirements by which uv installs the anchor again."""
    point: str
    """The first point that was compared with the anchor; empty if there is no point yet."""


@dataclass(frozen=True)
class Accepted:
    """A change that people have looked at and accepted."""

    benchmark: str
    """The benchmark whose cells have changed; empty if :attr:`cell` names one cell."""
    cell: str
    point: str
    reason: str

    def covers(self, cell: PointCell) -> bool:
        """Return whether *cell* belongs to the change.

        A name without a percentile stands for all percentiles of the cell.
        """
        name = cell.name.removesuffix(f" {cell.measure}") if cell.measure else cell.name
        return self.benchmark == cell.benchmark or self.cell in {cell.name, name}


def read_anchor(directory: Path) -> Anchor | None:
    """Return the anchor of the history in a directory, ``None`` if there is no anchor yet.

    :raises UserError: if the file cannot be read or is incomplete
    """
    path = directory / ANCHOR_FILE
    written = _read(path)
    if written is None:
        return None
    try:
        anchor = written["anchor"]
        return Anchor(str(anchor["word"]), list(map(str, anchor["requirements"])), anchor["point"])
    except (KeyError, TypeError) as error:
        raise UserError(f"{path}: [anchor] needs word, requirements and point") from error


def write_anchor(anchor: Anchor, directory: Path) -> None:
    """Write the anchor of the history in a directory.

    :raises UserError: if the file cannot be written
    """
    # By default, json.dumps would escape some characters as surrogates, which TOML forbids.
    written = functools.partial(json.dumps, ensure_ascii=False)
    text = (
        "# The packages with which this history is compared.  To replace them, name others:\n"
        "# zodbshootout FILE --history DIR --against WORD\n\n"
        "[anchor]\n"
        f"word = {written(anchor.word)}\n"
        f"requirements = {written(list(anchor.requirements))}\n"
        f"point = {written(anchor.point)}\n"
    )
    path = directory / ANCHOR_FILE
    try:
        replace_file(path, lambda place: place.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise UserError(f"--history: cannot write {path}: {error.strerror}") from error


def read_accepted(directory: Path) -> list[Accepted]:
    """Return the changes in ``accepted.toml``, none if there is no such file.

    :raises UserError: if the file cannot be read, or an entry is incomplete
    """
    path = directory / ACCEPTED_FILE
    changes = (_read(path) or {}).get("change", [])
    if not isinstance(changes, list) or not all(isinstance(change, dict) for change in changes):
        raise UserError(f"{path}: write [[change]] above each change")
    for number, change in enumerate(changes, 1):
        if not (
            change.get("point") and change.get("reason")
            and bool(change.get("benchmark")) != bool(change.get("cell"))
        ):  # fmt: skip
            raise UserError(
                f"{path}: [[change]] number {number} needs point, reason, and benchmark or cell"
            )
    return [
        Accepted(*(str(change.get(key, "")) for key in ("benchmark", "cell", "point", "reason")))
        for change in changes
    ]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
