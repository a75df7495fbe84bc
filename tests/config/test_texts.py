"""The text of a section, without the rest of its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from zodbshootout.client.database import prelude
from zodbshootout.config.configuration import Configuration, parse
from zodbshootout.config.source import Source, read_source
from zodbshootout.contenders.contender import contenders_of

NAMES = {"scratch": "/tmp", "main": "127.0.0.1:7", "main_port": "7"}


def read(text: str, **names: str) -> Configuration:
    return parse(Source(Path("x.conf"), text), {**NAMES, **names})


def whole(configuration: Configuration, number: int = 0) -> str:
    return configuration.contenders[number][0].whole


def test_names_of_the_file_are_substituted_but_names_of_the_run_are_not() -> None:
    configuration = read(
        "%define Base $scratch/base\n%define file ${base}.fs\n"
        "<zodb a>\n<filestorage>\npath $FILE\n</filestorage>\n</zodb>\n"
    )
    assert whole(configuration) == (
        "<zodb a>\n<filestorage>\npath ${scratch}/base.fs\n</filestorage>\n</zodb>\n"
    )
    assert configuration.contenders[0][0].names == {"scratch"}


def test_environment_variables_and_literal_dollars_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HERE", "not here")
    text = (
        "<zodb a>\n<mappingstorage>\nname $(HERE) $$main $$$main_port\n</mappingstorage>\n</zodb>"
    )
    configuration = read(text)
    assert "name $(HERE) $$main $$${main_port}\n" in whole(configuration)
    ((_, section),) = configuration.contenders
    assert configuration.text_of(section.config.storage).names == {"main_port"}
    (contender,) = contenders_of(configuration)
    assert contender.settings["storage", "name"] == "not here $main $$main_port"


def test_a_section_keeps_only_the_imports_that_it_needs() -> None:
    configuration = read(
        "%import zc.zlibstorage\n%import relstorage\n%import zodbshootout.mysql\n"
        "<zodb a>\n<mappingstorage/>\n</zodb>\n"
        "<zodb b>\n<zlibstorage>\n<relstorage>\n<mysql-or-mariadb/>\n</relstorage>\n"
        "</zlibstorage>\n</zodb>\n"
        "<zodb c>\n<relstorage>\n<mysql/>\n</relstorage>\n</zodb>\n"
    )
    imports = [
        [line for line in whole(configuration, number).splitlines() if line.startswith("%")]
        for number in range(3)
    ]
    assert imports == [
        [],
        ["%import zc.zlibstorage", "%import relstorage", "%import zodbshootout.mysql"],
        ["%import relstorage"],
    ]


def test_included_text_replaces_the_include_directive(tmp_path: Path) -> None:
    (tmp_path / "storage.conf").write_text("%define size $main_port\n<mappingstorage/>\n")
    (tmp_path / "x.conf").write_text("<zodb a>\n%include storage.conf\ncache-size $size\n</zodb>")
    configuration = parse(read_source(tmp_path / "x.conf"), NAMES)
    assert whole(configuration) == (
        "<zodb a>\n<mappingstorage>\n</mappingstorage>\ncache-size ${main_port}\n</zodb>\n"
    )


def test_values_are_identified_by_number_and_by_key() -> None:
    configuration = read(
        "<zodb a>\n<zeoclient>\nserver localhost:1\nserver $main\n</zeoclient>\n</zodb>\n"
        "<zeoserver main>\n<settings>\ncache-size 7\nport $main_port\n</settings>\n"
        "<mappingstorage/>\n</zeoserver>\n"
    )
    settings = contenders_of(configuration)[0].settings
    assert settings["storage", "server"] == "localhost:1"
    assert settings["storage", "server1"] == "$main"
    assert settings["server", "main", "settings", "values", "cache-size"] == "7"
    assert settings["server", "main", "settings", "values", "port"] == "$main_port"


def test_the_text_after_its_prelude_is_read_like_the_original_section() -> None:
    odd = {"odd": "a $main ${b} $$"}
    configuration = read(
        "<zodb a>\n<mappingstorage>\nname <$odd>\n</mappingstorage>\n</zodb>", **odd
    )
    again = parse(Source(Path("y.conf"), prelude(odd) + whole(configuration)), {})
    first, second = (parsed.contenders[0][1].config.storage for parsed in (configuration, again))
    assert first.config.name == second.config.name == "<a $main ${b} $$>"
