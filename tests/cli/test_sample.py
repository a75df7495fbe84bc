"""``zodbshootout sample``."""

from __future__ import annotations

import io

import pytest

from tests.commands import outcome
from zodbshootout.cli.main import command_in, main
from zodbshootout.cli.sample import TITLES
from zodbshootout.config.sample_files import samples, workloads

WIDTH_OF_TERMINAL = 80


def test_each_configuration_and_workload_is_listed_on_a_line() -> None:
    status, out, err = outcome("sample")
    assert (status, err) == (0, "")
    lines = {line.split()[0]: line for line in out.splitlines() if line.startswith("  ")}
    for name in [*samples(), *workloads()]:
        assert len(lines[name].split()) > 3
        assert len(lines[name]) <= WIDTH_OF_TERMINAL


@pytest.mark.parametrize("name", samples())
def test_the_title_of_a_configuration_is_the_first_line_of_its_comment(name: str) -> None:
    title, empty, *_ = samples()[name].read_text(encoding="utf-8").splitlines()
    assert title.startswith("# ")
    assert title.endswith(".")
    assert empty == "#"


def test_each_workload_has_a_title() -> None:
    assert TITLES.keys() == workloads().keys() != set()


def test_a_configuration_is_printed_as_it_is() -> None:
    for name, path in samples().items():
        assert outcome("sample", name) == (0, path.read_text(encoding="utf-8"), "")


def test_a_workload_is_printed_byte_by_byte() -> None:
    for name, path in workloads().items():
        printed = io.TextIOWrapper(io.BytesIO())
        assert main(["sample", name], printed) == 0
        assert printed.detach().getvalue() == path.read_bytes()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_workload_is_not_printed_on_a_terminal() -> None:
    terminal, errors = Terminal(), io.StringIO()
    assert main(["sample", "plone"], terminal, errors) == 2
    assert terminal.getvalue() == ""
    assert errors.getvalue() == (
        "zodbshootout: plone is not text; write it to a file: "
        "zodbshootout sample plone > plone.workload\n"
    )


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("pgg", "pg"), ("fs-sampel", "fs-sample"), ("Plone", "plone")],
)
def test_a_misspelt_name_is_refused_with_the_nearest_one(wrong: str, meant: str) -> None:
    status, out, err = outcome("sample", wrong)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith(f"zodbshootout: there is no sample {wrong!r}; did you mean {meant}")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["sample"], "sample"),
        (["sample", "sample"], "sample"),
        (["sample", "--help"], "sample"),
        (["sample", "-c", "2"], "run"),
        (["sample", "all"], "run"),
        (["sample", "update", "-c", "8"], "run"),
        (["-c", "2", "sample"], "run"),
    ],
)
def test_a_benchmark_or_an_option_after_sample_measures_the_sample_of_that_name(
    words: list[str], command: str
) -> None:
    assert command_in(words)[0] == command
