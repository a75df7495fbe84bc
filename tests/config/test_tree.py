"""The tree of a configuration and of the files that it includes."""

from __future__ import annotations

from pathlib import Path

import pytest

from zodbshootout.config.source import Source, read_source
from zodbshootout.config.tree import read_tree


def settings_of(source: Source) -> list[tuple[str, str]]:
    return [(key.name, key.value) for section in source.tree.root.walk() for key in section.keys]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a directory with files that include each other by every kind of path."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "auth.conf").write_text("user $(DB_USER)\n%include ${LEVEL}.conf\n")
    (tmp_path / "a" / "two.conf").write_text("host $pg_host\n<postgresqlserver pg />\n")
    return tmp_path


@pytest.mark.parametrize("path", ["a/auth.conf", "$here/auth.conf", "{url}/auth.conf"])
def test_an_included_file_is_read_whatever_its_path(path: str, tree: Path) -> None:
    included = path.format(url=(tree / "a").as_uri())
    (tree / "x.conf").write_text(
        f"%define here a\n%define level two\n<zodb a>\n%include {included}\n</zodb>\nlast 1\n"
    )
    source = read_source(tree / "x.conf")
    assert settings_of(source) == [
        ("last", "1"), ("user", "$(DB_USER)"), ("host", "${pg_host}"),
    ]  # fmt: skip
    assert source.environment_names == {"DB_USER"}
    assert [section.name for section in source.tree.root.walk()] == ["", "a", "pg"]
    assert {"pg_host", "level"} <= source.used_names


def test_a_path_may_depend_on_a_definition_of_the_command_line(tree: Path) -> None:
    text = "%define here nowhere\n%define level two\n%include $here/auth.conf\n"
    source = Source(tree / "x.conf", text, {"here": str(tree / "a")})
    assert [key for key, _ in settings_of(source)] == ["user", "host"]


def test_included_files_are_found_beside_a_link(tree: Path) -> None:
    (tree / "real").mkdir()
    (tree / "real" / "x.conf").write_text("%define level two\n%include a/auth.conf\n")
    (tree / "x.conf").symlink_to(tree / "real" / "x.conf")
    assert [section.name for section in read_source(tree / "x.conf").servers] == ["pg"]


def test_lines_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    text = (
        "<zodb\n%unknown x\n%include $nowhere/x.conf\n%include none.conf\n%include package:none:x\n"
        "%include x.conf\n%define\n%define broken a${b\n(\nkey $ 9\nlast $broken\n</zodb>\n"
    )
    (tmp_path / "x.conf").write_text(text)
    source = read_source(tmp_path / "x.conf")
    assert settings_of(source) == [("key", "$ 9"), ("last", "a${b")]
    assert "nowhere" in source.used_names


def test_comments_refer_to_nothing() -> None:
    source = Source(Path("x.conf"), "  # $name $(NAME)\n")
    assert (source.used_names, source.environment_names) == (frozenset(), frozenset())


def test_a_value_keeps_its_double_dollars() -> None:
    (definition, setting) = read_tree("%define a x$$y\nkey ${a} $$a", Path("x.conf")).keys
    assert definition.value == "x$$y"
    assert setting.value == "x$$y $$a"


def test_the_variables_of_files_that_uris_name_are_known(tmp_path: Path) -> None:
    (tmp_path / "db.conf").write_text("<zodb>\npath $(DB_PATH)\n</zodb>\n")
    text = f"%define file {tmp_path}/db.conf\n<zodburi a>\nuri zconfig://$file\n</zodburi>\n"
    assert Source(tmp_path / "x.conf", text).environment_names == {"DB_PATH"}


@pytest.mark.parametrize(
    ("wrong", "number"), [("listen", 3), ("listen ::1", 3), ("ssl", 1), ("", 1)]
)
def test_a_mistake_is_in_the_line_that_begins_with_the_wrong_words(wrong: str, number: int) -> None:
    text = "<zeoserver main>\nlisten-backlog 5\nListen ::1\n</zeoserver>\n"
    (section,) = read_tree(text, Path("/srv/x.conf")).root.sections
    assert str(section.mistake("a flaw", wrong)) == f"/srv/x.conf:{number}: a flaw"
