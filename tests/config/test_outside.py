"""The text of sections that another Python reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from zodbshootout.config.configuration import Configuration, parse
from zodbshootout.config.source import Source, read_source
from zodbshootout.config.tree import Section
from zodbshootout.contenders.contender import contenders_of

ENVIRONMENT = "<environment old>\nrequirements RelStorage<3\nrequirements ZODB<6\n</environment>\n"
SECTION = (
    "<newtdb Far>\n  environment OLD\n  <zodb>\n    # $nothing\n    <relstorage>\n"
    "      dsn $base/x\n      password $main_password\n    </relstorage>\n  </zodb>\n</newtdb>\n"
)
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
HERE = "<zodb near>\n<mappingstorage/>\n</zodb>\n"
NAMES = {"scratch": "/tmp/x", "main": "127.0.0.1:7", "main_password": "top", "main_port": "7"}


def read(text: str) -> Configuration:
    return parse(Source(Path("x.conf"), text), NAMES)


def outside_of(configuration: Configuration) -> list[Section]:
    """Return the texts of the sections that another Python reads."""
    return [text for text, section in configuration.contenders if section is None]


def test_a_section_for_another_python_is_not_read_by_this_one() -> None:
    configuration = read(
        f"%import newt.db\n%define base $scratch/data\n{ENVIRONMENT}{SECTION}{HERE}"
    )
    (outside,) = outside_of(configuration)
    assert (outside.type, outside.name, outside.environment) == ("newtdb", "far", "old")
    assert outside.whole == (
        "%import newt.db\n<newtdb far>\n<zodb>\n<relstorage>\n"
        "dsn ${scratch}/data/x\npassword ${main_password}\n</relstorage>\n"
        "</zodb>\n</newtdb>\n"
    )
    assert outside.names == {"scratch", "main_password"}
    assert [text.name for text, _ in configuration.contenders] == ["far", "near"]
    assert configuration.environments["old"].requirements == ("RelStorage<3", "ZODB<6")


def test_imports_inside_a_section_for_another_python_are_among_its_imports() -> None:
    configuration = read(
        f"{ENVIRONMENT}"
        "<zodb one>\nenvironment old\n%import relstorage\n<relstorage>\n</relstorage>\n</zodb>\n"
        "<zodb_db two>\nenvironment old\nmount-point /\n<mappingstorage/>\n</zodb_db>\n"
    )
    one, two = outside_of(configuration)
    assert [item.line.text for item in one.all_imports] == ["%import relstorage"]
    assert [line.text for line in two.lines] == [
        "<zodb two>", "<mappingstorage>", "</mappingstorage>", "</zodb>",
    ]  # fmt: skip


def test_each_line_of_a_section_is_traced_to_its_line_in_the_file() -> None:
    (outside,) = outside_of(
        read(f"%import newt.db\n%define base $scratch/data\n{ENVIRONMENT}{SECTION}")
    )
    text = f"%import newt.db\n%define base $scratch/data\n{ENVIRONMENT}{SECTION}".splitlines()
    for number, line in enumerate(outside.whole.splitlines(), 1):
        place = outside.line(number)
        assert place.path == Path("x.conf")
        if "$" not in line:
            assert text[place.number - 1].strip().lower() == line


def test_a_section_of_an_included_file_is_traced_to_that_file(tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text(f"\n\n{SECTION}")
    (tmp_path / "x.conf").write_text(
        f"%define base $scratch\n{ENVIRONMENT}%include more.conf\n{HERE}"
    )
    configuration = parse(read_source(tmp_path / "x.conf"), NAMES)
    (outside,) = outside_of(configuration)
    assert str(outside.line(1)) == f"{tmp_path / 'more.conf'}:3"


def test_contenders_keep_the_order_and_the_settings_of_the_file() -> None:
    configuration = read(
        f"%define base $scratch\n{SECTION}{HERE}<zodb last>\nenvironment old\n<mappingstorage/>\n"
        f"</zodb>\n{ENVIRONMENT}"
    )
    far, near, last = contenders_of(configuration)
    assert (far.name, near.name, last.name) == ("far", "near", "last")
    assert (far.environment, near.environment) == (configuration.environments["old"], None)
    assert far.settings == {
        ("section",): "newtdb",
        ("zodb", "relstorage", "dsn"): "$scratch/x",
        ("zodb", "relstorage", "password"): "$main_password",
    }
    assert far.storage.names == {"scratch": "/tmp/x", "main_password": "top"}
    assert far.place == ("$scratch/x",)


def test_a_uri_can_be_opened_by_another_python() -> None:
    configuration = read(
        f"{ENVIRONMENT}<zodburi u>\nenvironment old\nuri memory://$$x\n</zodburi>\n"
    )
    (contender,) = contenders_of(configuration)
    assert contender.storage.section == "<zodburi u>\nuri memory://$$x\n</zodburi>\n"


@pytest.mark.parametrize(
    "before",
    [
        "<memcachedserver m/>\n",
        "<memcachedserver m />\n",
        "<zodb a>\n<mappingstorage/>\n</zodb >\n",
        "<zodb a>\n<demostorage>\n<mappingstorage base/>\n</demostorage>\n</ZODB>\n",
    ],
)
def test_a_section_ends_where_zconfig_says(before: str) -> None:
    configuration = read(f"%define base x\n{ENVIRONMENT}{before}{SECTION}{HERE}")
    assert [outside.name for outside in outside_of(configuration)] == ["far"]
    assert configuration.contenders[-1][1].name == "near"


def test_a_section_for_another_python_has_no_imports_of_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    configuration = read(
        f"%import webserver\n%import only_there\n{ENVIRONMENT}<webserver main/>\n"
        "<zodb far>\nenvironment old\n<there>\n</there>\n</zodb>\n"
    )
    (outside,) = outside_of(configuration)
    assert [item.line.text for item in outside.all_imports] == ["%import only_there"]


def test_a_section_can_define_names_and_refer_to_its_environment_by_a_name() -> None:
    configuration = read(
        f"{ENVIRONMENT}%define which old\n<zodb a>\n%define q $scratch/x\n\tenvironment\t$which\n"
        "<filestorage>\npath\t$q/y\n</filestorage>\n</zodb>\n"
    )
    (outside,) = outside_of(configuration)
    assert (outside.environment, set(outside.names)) == ("old", {"scratch"})
    (contender,) = contenders_of(configuration)
    assert contender.settings["filestorage", "path"] == "$scratch/x/y"


def test_an_environment_can_have_the_name_of_a_contender() -> None:
    configuration = read(
        f"<zodb old>\nenvironment old\n<mappingstorage/>\n</zodb>\n{HERE}{ENVIRONMENT}"
    )
    assert [contender.name for contender in contenders_of(configuration)] == ["old", "near"]
