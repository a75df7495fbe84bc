"""The file that keeps the steps of a search."""

from __future__ import annotations

from pathlib import Path

import pytest

from zodbshootout.errors import UserError
from zodbshootout.results.bisection import Finding, Step, read_steps, write_steps

QUESTION = {"good": "a", "bad": "b"}
STEPS = [
    Step("b", Finding.BAD, 0.01, "slower", "fs: add", "fs", "add", -0.05),
    Step("c", Finding.SKIPPED, 0.0, "it cannot be built"),
]


def test_steps_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x.json"
    assert read_steps(path, QUESTION) == []
    write_steps(path, QUESTION, STEPS)
    assert read_steps(path, QUESTION) == STEPS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "is not the file of a search; name another file with -o"),
        ('{"benchmarks": []}', "is not the file of a search"),
        ("{", "is damaged"),
        (
            '{"zodbshootout_bisection": 1, "question": {"good": "x"}}',
            "belongs to another search; name",
        ),
        (
            '{"zodbshootout_bisection": 1, "question": {"good": "a", "bad": "b"}, "steps": [1]}',
            "is damaged",
        ),
    ],
)
def test_a_file_with_something_else_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read_steps(path, QUESTION)
    assert str(caught.value).startswith(f"{path} {reason}")
