"""The steps of a search for a commit, and the file that keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from zodbshootout.errors import UserError
from zodbshootout.results.files import damage_of
from zodbshootout.results.replacement import replace_file

FORMAT = 1
"""The number of the format of the file."""


class Finding(Enum):
    """The outcome of a step, as git calls it."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skip"


@dataclass(frozen=True)
class Step:
    """The outcome of one commit's comparison with the commit that the user calls good."""

    commit: str
    finding: Finding
    error: float
    """The maximum probability that the finding is wrong."""
    sentence: str
    """The change of the figure, or the reason why the commit is skipped."""
    figure: str = ""
    """The name of the figure that decided; empty if no figure decided."""
    contender: str = ""
    benchmark: str = ""
    """The contender and the benchmark of the figure that decided."""
    boundary: float = 0.0
    """The logarithm of the ratio that divides good commits from bad ones."""


def read_steps(path: Path, question: Mapping[str, Any]) -> list[Step]:
    """Return the steps in the file of a search; none if there is no file.

    :raises UserError: if the file is damaged, or belongs to a search with another *question*
    """
    if not path.exists():
        return []
    with damage_of(path):
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or document.get("zodbshootout_bisection") != FORMAT:
            raise UserError(f"{path} is not the file of a search; name another file with -o")
        if document["question"] != question:
            raise UserError(f"{path} belongs to another search; name another file with -o")
        return [Step(**{**step, "finding": Finding(step["finding"])}) for step in document["steps"]]


def write_steps(path: Path, question: Mapping[str, Any], steps: Sequence[Step]) -> None:
    """Write all *steps* to the file of a search.

    :raises OSError: if the file cannot be written
    """
    document = {
        "zodbshootout_bisection": FORMAT,
        "question": question,
        "steps": [{**asdict(step), "finding": step.finding.value} for step in steps],
    }
    text = json.dumps(document, indent=1) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def step_at(steps: Iterable[Step], commit: str) -> Step | None:
    """Return the step that measured a commit, ``None`` if no step did."""
    return next((step for step in steps if step.commit == commit), None)
