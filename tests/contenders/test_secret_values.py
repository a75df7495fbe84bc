"""A secret is in nothing that is kept of a contender, whatever way it takes to whatever place."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from unittest import mock

import pytest

from tests.runs import plan_of
from tests.secret_ways import IMPORT, PLACES, SPELLINGS, WAYS, Files, Way, leaks
from zodbshootout.cli.options import parse
from zodbshootout.client.masking import Mask
from zodbshootout.config.secrets import of_argument
from zodbshootout.config.source import read_source
from zodbshootout.contenders.contender import Contender
from zodbshootout.contenders.variants import read_variants
from zodbshootout.guardian import Guardian
from zodbshootout.scheduling.orders import Tasks


@pytest.fixture
def places() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def kept_of(files: Files, places: ExitStack) -> tuple[list[Contender], str]:
    """Return the contenders of a configuration, and everything that results say of them."""
    (files.directory / "x.conf").write_text(files.text)
    arguments = [str(files.directory / "x.conf"), "add", *files.options]
    mask = Mask(secret for word in arguments for secret in of_argument(word))
    options = parse(arguments)
    guardian = mock.Mock(spec=Guardian)
    variants = read_variants(
        [read_source(options.paths[0])], options.variants, places, guardian, mask
    )
    contenders = variants.contenders()
    tasks = Tasks(plan_of(contenders), options.run, mask=mask)
    kept = [tasks.metadata(cell) for row in tasks.plan.rows for cell in row]
    own = [(one.title, one.reading, one.place, one.variant) for one in contenders]
    return contenders, json.dumps([kept, [repr(texts) for texts in own]])


FEW = [*SPELLINGS[:2], *(pytest.param(one, marks=pytest.mark.slow) for one in SPELLINGS[2:])]
"""All spellings, of which two suffice for a try without what takes long."""


@pytest.mark.parametrize("password", FEW)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_secret_is_not_kept(
    way: Way, password: str, tmp_path: Path,
    places: ExitStack, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    files = Files(tmp_path)
    for name, place in PLACES.items():
        way(files, name, place, place.spell(password).replace("$", "$$"))
    for name, value in files.variables.items():
        monkeypatch.setenv(name, value)
    contenders, kept = kept_of(files, places)
    assert [contender.name for contender in contenders] == list(PLACES)
    assert leaks(password, kept) == []
    settings = [contender.settings for contender in contenders]
    assert settings[0]["storage.server"] == "localhost:1"  # what is beside a secret is kept
    assert settings[3]["storage.adapter.dsn"] == "host='h' password='***' dbname='x'"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "password"),
    [pytest.param(*pair, id=pair[0].__name__) for pair in zip(WAYS[:-1], cycle(SPELLINGS))],
)
def test_a_secret_in_a_file_that_a_uri_names_is_not_kept(
    way: Way, password: str, tmp_path: Path,
    places: ExitStack, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    named, files = Files(tmp_path, text=IMPORT), Files(tmp_path)
    for name, place in PLACES.items():
        if place.contender not in {"uri", "elsewhere"}:  # zodburi knows neither
            way(named, name, place, place.spell(password).replace("$", "$$"))
            files.text += (
                f"<zodburi {name}>\nuri zconfig://{tmp_path}/named.conf#{name}\n</zodburi>\n"
            )
    (tmp_path / "named.conf").write_text(named.text)
    for name, value in named.variables.items():
        monkeypatch.setenv(name, value)
    contenders, kept = kept_of(files, places)
    assert len(contenders) > 5
    assert leaks(password, kept) == []


@pytest.mark.parametrize("password", FEW)
@pytest.mark.parametrize("name", PLACES)
def test_variants_are_numbered_if_their_values_are_secret(
    name: str, password: str, tmp_path: Path, places: ExitStack
) -> None:
    files, place = Files(tmp_path), PLACES[name]
    values = [place.spell(text).replace("$", "$$") for text in (password, f"{password}2")]
    files.options += ["--define", f"x={','.join(values)}"]
    files.add("a", place, "$x")
    contenders, kept = kept_of(files, places)
    assert [contender.title for contender in contenders] == ["a [x=#1]", "a [x=#2]"]
    assert [contender.variant for contender in contenders] == [{"x": "#1"}, {"x": "#2"}]
    assert leaks(password, kept) == []
    assert shlex.quote("x=***,***") in json.loads(kept)[0][0]["command_line"]
    first, second = contenders
    assert first.fingerprint() == second.fingerprint()
