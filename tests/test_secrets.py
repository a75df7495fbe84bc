"""A secret that a command reads leaves it nowhere, whatever way it takes to whatever place."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle, product
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.commands import outcome
from tests.runs import plan_of, run
from tests.secret_ways import IMPORT, PLACES, SPELLINGS, WAYS, Files, Way, leaks
from zodbshootout.cli.output import Streams, console_on
from zodbshootout.cli.parser import parse
from zodbshootout.cli.progress import Lines
from zodbshootout.config.secrets import of_argument
from zodbshootout.config.source import read_source
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.variants import read_variants
from zodbshootout.errors import BAD_USAGE
from zodbshootout.guardian import Guardian
from zodbshootout.model.outcome import Failure
from zodbshootout.reports import text
from zodbshootout.reports.cells import ResultSet
from zodbshootout.reports.sections import whole_report
from zodbshootout.results.files import ResultFiles, read_results, recorded
from zodbshootout.results.result import CellResult
from zodbshootout.scheduling.orders import Tasks


@pytest.fixture
def places() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def sent_out(files: Files, places: ExitStack) -> tuple[list[Contender], list[CellResult], str]:
    """Send all that is known of a configuration's contenders to each exit.

    Return the contenders, the results as they were written, and all text that left.
    """
    (files.directory / "x.conf").write_text(files.text)
    arguments = [str(files.directory / "x.conf"), "add", *files.options]
    printed = io.StringIO()
    streams = Streams(console_on(printed), console_on(printed), io.StringIO())
    for word in arguments:
        streams.mask.hide(of_argument(word))
    options = parse(arguments)
    variants = read_variants(
        [read_source(options.paths[0])], options, places, mock.Mock(spec=Guardian),
        streams.mask,
    )  # fmt: skip
    contenders = variants.contenders()
    tasks = Tasks(plan_of(contenders), options)
    results = []
    for contender, cell in zip(contenders, tasks.plan.rows[0], strict=True):
        known = f"{contender.text}\n{contender.settings}\n{contender.storage}"
        failure = Failure(f"cannot be opened: {known}", f"Traceback\n{known}")
        with_run = CellResult(cell).with_run(run(0.1, **dict[str, Any](tasks.metadata(cell))))
        results.append(with_run.failed(failure).crashed(known))
        for exit_ in (streams.say, streams.tell, streams.complain, streams.ask):
            exit_(known)
        Lines(streams, 1).cell_failed(results[-1])
    written = ResultFiles(files.directory / "a.json", mask=streams.mask)
    written.write(results)
    # The reports with other baselines are on a page, not in a text.
    with mock.patch("zodbshootout.reports.sections._alternatives", return_value=()):
        report = whole_report([ResultSet(recorded(results, written.mask))], None)
    text.write(report, streams.out)
    left = [path.read_text() for path in (written.combined, written.cells)]
    left += [path.name for path in written.directory.iterdir()]
    return contenders, read_results(written.combined), "\n".join([*left, printed.getvalue()])


@pytest.mark.parametrize(("way", "password"), [*product(WAYS, SPELLINGS)][::2])
def test_a_secret_leaves_nowhere(
    way: Way, password: str, tmp_path: Path,
    places: ExitStack, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    files = Files(tmp_path)
    for name, place in PLACES.items():
        way(files, name, place, place.spell(password).replace("$", "$$"))
    for name, value in files.variables.items():
        monkeypatch.setenv(name, value)
    contenders, results, left = sent_out(files, places)
    assert [contender.title for contender in contenders] == list(PLACES)
    assert leaks(password, left) == []
    settings = [result.settings for result in results]
    assert settings[0]["storage", "server"] == "localhost:1"  # what is beside a secret is kept
    assert settings[3]["storage", "adapter", "dsn"] == "host='h' password='***' dbname='x'"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "password"),
    [pytest.param(*pair, id=pair[0].__name__) for pair in zip(WAYS[:-1], cycle(SPELLINGS))],
)
def test_a_secret_in_a_file_that_a_uri_names_leaves_nowhere(
    way: Way, password: str, tmp_path: Path,
    places: ExitStack, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    named, files = Files(tmp_path, text=IMPORT), Files(tmp_path)
    for name, place in PLACES.items():
        if place.contender not in {"uri", "elsewhere", "sql"}:  # zodburi knows none of them
            way(named, name, place, place.spell(password).replace("$", "$$"))
            files.text += (
                f"<zodburi {name}>\nuri zconfig://{tmp_path}/named.conf#{name}\n</zodburi>\n"
            )
    (tmp_path / "named.conf").write_text(named.text)
    for name, value in named.variables.items():
        monkeypatch.setenv(name, value)
    contenders, _, left = sent_out(files, places)
    assert len(contenders) > 5
    assert leaks(password, left) == []


@pytest.mark.parametrize(("name", "password"), [*zip(PLACES, cycle(SPELLINGS))])
def test_variants_are_numbered_and_alike_if_their_values_are_secret(
    name: str, password: str, tmp_path: Path, places: ExitStack
) -> None:
    files, place = Files(tmp_path), PLACES[name]
    values = [place.spell(text).replace("$", "$$") for text in (password, f"{password}2")]
    files.options += ["--define", f"x={','.join(values)}"]
    files.add("a", place, "$x")
    contenders, results, left = sent_out(files, places)
    assert [contender.title for contender in contenders] == ["a [x=#1]", "a [x=#2]"]
    assert [contender.variant for contender in contenders] == [{"x": "#1"}, {"x": "#2"}]
    assert leaks(password, left) == []
    first, second = (result.metadata for result in results)
    assert "x=***,***" in first["command_line"]
    assert first["configuration_hash"] == second["configuration_hash"]
    assert json.loads(first["configuration_text"]) == json.loads(second["configuration_text"])


def test_the_password_of_a_private_server_leaves_nowhere(tmp_path: Path, places: ExitStack) -> None:
    files = Files(tmp_path, f"<postgresqlserver pg/>\n{IMPORT}")
    files.add("a", PLACES["quoted"], "$pg_password")
    (contender,), _, left = sent_out(files, places)
    assert leaks(contender.storage.names["pg_password"], left) == []


PG = "%import relstorage\n<zodb a>\n<relstorage>\n<postgresql>\n{}\n"
OURS = {
    "abc$topsecret": (
        "$*** is not defined; write '%define *** VALUE' above it, or a literal $ as $$"
    ),
    "abc${topsecret": (
        "invalid value; write a literal $ as $$; a reference is $name, ${name} or $(VARIABLE)"
    ),
}
"""What is said of each password in a file of ours."""
OF_URI = {
    "abc$topsecret": "line 3: write a literal $ in a value as $$, and define a name before $name",
    "abc${topsecret": "write a literal $ in a value as $$, and define a name before $name",
}
"""What is said of each password in a file that zodburi reads."""


@pytest.mark.parametrize("password", OURS)
@pytest.mark.parametrize(
    ("text", "place"),
    [
        (PG.format("dsn dbname='z' password='{}' host=$scratch"), "x.conf:5: dsn"),
        (PG.format("dsn host=$scratch password={}"), "x.conf:5: dsn"),
        (PG.format("dsn postgresql://u:{}@h/db"), "x.conf:5: dsn"),
        (PG.format("dsn postgresql://h/db?user=u&password={}"), "x.conf:5: dsn"),
        (PG.format("%include rest.conf"), "rest.conf:2: dsn"),
        (
            "%define my_password {}\n" + PG.format("dsn $my_password"),
            "x.conf:1: %define my_password",
        ),
        ("%define db dbname=z password='{}'\n" + PG.format("dsn $db"), "x.conf:1: %define db"),
        ("%define x {}\n" + PG.format("dsn dbname=z password='$x'"), "x.conf:1: %define x"),
        ("<zodburi a>\nuri zconfig://{here}/uri.conf\n</zodburi>", "x.conf:2: uri"),
    ],
)
def test_no_part_of_a_secret_is_in_an_error_about_a_dollar(
    text: str, place: str, password: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    unopened: None,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("zodbshootout.cli.run.Guardian", mock.MagicMock())  # a process for each
    Path("rest.conf").write_text(f"\ndsn dbname=z password='{password}'\n")
    Path("uri.conf").write_text(f"<zodb>\n<zeoclient>\npassword {password}\n</zeoclient>\n</zodb>")
    end = "</postgresql>\n</relstorage>\n</zodb>\n" if "<postgresql>" in text else ""
    Path("x.conf").write_text(f"{text.format(password, here=tmp_path)}{end}")
    said = (OF_URI if "<zodburi" in text else OURS)[password]
    assert outcome("x.conf", "add", "--list") == (BAD_USAGE, "", f"zodbshootout: {place}: {said}\n")
