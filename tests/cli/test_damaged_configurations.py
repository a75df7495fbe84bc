"""A damaged configuration is listed, or refused in one line with the line that is to blame.

``pytest tests/cli/test_damaged_configurations.py --full`` tries every damage of every line.
"""

from __future__ import annotations

import random
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest

from tests import instances
from tests.commands import outcome
from tests.instances import SECRET, VARIABLES, placed
from tests.watching import watched
from zodbshootout.config.sample_files import samples
from zodbshootout.errors import ALL_MEASURED, BAD_USAGE

SAMPLES = [f"etc/{path.name}" for path in samples().values()]
PART_OF_SECRET = SECRET[:4]
"""As much of a password as may be left in a line that is cut off within it."""
SECONDS = 5
"""The longest processor time for one listing, which takes a fraction of a second."""
VALUES = (
    "", "0", "-1", "1.5", "nan", "1e999", "9" * 30, "0x10", "2%", "1,,2", "yes", "maybe", "30GB",
    "none", "a", "a" * 300, "/nonexistent/x", ".", "zeo://h:1", "localhost:65536", "[::1", "$",
    "$$", "$x", "${x", "${}", "$(HOME", "$(NOWHERE)", "$(HOME)", "$INSTANCE", "%", "%define x",
    "<", "<a>", "</a>", "# comment", "1 # comment", "'", '"', "'a", "x=", "=1", "\ufeff",
    "\u2028x", "\N{SNOWMAN}", "\x1b[31m", "a\\", "dbname='x", "postgresql://u:p@[h/x", "${a:b}",
)  # fmt: skip
"""Values like those of ``test_generated_input``, and mistakes of syntax."""
AROUND_SECRETS = (
    "{}$x", "{}${{x", "{}$", "{} # no", "{}'", "{}\\", "{}@", "{}$(X)", "${}", "'{}", "= {}",
    '"{}', "$x{}", "{} {}",
)  # fmt: skip
"""The text around a value that holds a password."""
LINES = (
    "%", "%define", "%define x", "%define 1 2", "%define x $y", "%import", "%import os",
    "%import nowhere.at.all", "%import relstorage", "%import ZODB.component", "%include",
    "%include nowhere.conf", "%include .", "%include $x", "%other x", "<", "<>", "</>", "<a b c>",
    "<zodb>", "</zodb>", "<zodb main", "<relstorage", "<mappingstorage/>", "</filestorage>",
    "<environment x>", "<zeoserver>", "<settings>", "key", "passwd $x", "=", "[main]", "{",
    "<?xml?>", "- a: b",
)  # fmt: skip
"""Lines that are put in front of another."""
KINDS = {
    "cut off after": 2, "cut off within": 2, "dropped": 2, "doubled": 1, "in front": 2, "value": 2,
    "secret": 2,
}  # fmt: skip
"""The number of damages of each kind that are tried of each file in a usual run."""
WITHOUT_LINE = ("no contender",)
"""Messages that are about no line."""
ASKS_A_PYTHON = "platform.python_implementation"
"""A part of the program with which an environment's Python is asked about itself."""


class Damage(NamedTuple):
    """A change of a configuration."""

    kind: str
    line: int
    """The number of the line, from 1."""
    text: str
    """The configuration after the change."""
    new: str = ""


def damages(text: str) -> Iterator[Damage]:
    """Yield every damage of a configuration."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        before, after = lines[: number - 1], lines[number:]
        yield _damage("cut off after", number, [*before, line, ""])
        yield _damage("cut off within", number, [*before, line[: len(line) // 2 + 1]])
        yield _damage("dropped", number, [*before, *after])
        yield _damage("doubled", number, [*before, line, line, *after])
        for new in LINES:
            yield _damage("in front", number, [*before, new, line, *after], new)
        for kind, new in _replacements(line):
            yield _damage(kind, number, [*before, new, *after], new)


def _damage(kind: str, line: int, lines: list[str], new: str = "") -> Damage:
    return Damage(kind, line, "\n".join(lines), new)


def _replacements(line: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each line that replaces a line with a value."""
    match = re.fullmatch(r"(?P<key>\s*(%define\s+)?[^\s#<]\S*)\s+(?P<value>\S.*)", line)
    if match is None:
        return
    for value in VALUES:
        yield "value", f"{match['key']} {value}"
    if SECRET in line:
        for form in AROUND_SECRETS:
            yield "secret", f"{match['key']} {form.format(match['value'], match['value'])}"


def sampled(name: str, text: str, full: bool) -> Iterator[Damage]:
    """Yield the damages to try: in a usual run a few of each kind, always the same ones."""
    everything = list(damages(text))
    if full:
        yield from everything
        return
    choice = random.Random(name)
    for kind, number in KINDS.items():
        candidates = [damage for damage in everything if damage.kind == kind]
        yield from choice.sample(candidates, min(number, len(candidates)))


@pytest.fixture(autouse=True)
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unopened: None) -> None:
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.chdir(site)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name, value in {**VARIABLES, "SHOOTOUT_PASSWORD": f"{SECRET}-sample"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("zodbshootout.cli.run.Guardian", mock.MagicMock())  # a process for each


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raise :exc:`TimeoutError` in the main thread after *seconds* of this process's CPU time."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def listed(name: str) -> tuple[int, str, str]:
    """Return the outcome of ``--list``, after a check that nothing was touched or shown."""
    site = Path.cwd()
    files = sorted(site.rglob("*"))
    with watched(site) as done, within(SECONDS):
        status, out, err = outcome(name, "add", "--list", "-c", "1")
    assert [event for event in done if ASKS_A_PYTHON not in event] == []
    assert sorted(site.rglob("*")) == files
    assert PART_OF_SECRET not in out + err
    return status, out, err


def blamed(name: str, complaint: str) -> int:
    """Return the number of the line that an error names, in the file as it was given."""
    match = re.match(rf"zodbshootout: {re.escape(name)}:(\d+): .", complaint)
    assert match is not None, complaint
    return int(match[1])


def check_damages(name: str, damaged: Path, full: bool) -> None:
    """List the configuration *name* after each damage of a file that belongs to it."""
    for damage in sampled("/".join(damaged.parts[-2:]), damaged.read_text(), full):
        damaged.write_text(damage.text)
        status, out, err = listed(name)
        seen = (damage._replace(text=""), status, err)
        assert status in {ALL_MEASURED, BAD_USAGE}, seen
        if status == ALL_MEASURED:
            assert out, seen
            continue
        (complaint,) = err.splitlines()
        if not any(message in complaint for message in WITHOUT_LINE):
            assert 1 <= blamed(str(damaged), complaint) <= len(damage.text.splitlines()), seen


@pytest.mark.slow
@pytest.mark.parametrize("name", [*instances.names(), *SAMPLES])
def test_a_damaged_configuration_is_listed_or_refused_with_a_line(name: str, full: bool) -> None:
    if name in SAMPLES:
        Path("etc").mkdir()
        shutil.copy(samples()[Path(name).stem], name)
    else:
        placed(name, Path.cwd())
    check_damages(name, Path(name), full)


@pytest.mark.slow
@pytest.mark.parametrize("included", ["main.conf", "session.conf"])
def test_a_damaged_file_that_is_included_is_the_one_to_blame(included: str, full: bool) -> None:
    name = "zenoss/zope.conf"
    placed(name, Path.cwd())
    damaged = Path(name).parent / "databases" / included
    check_damages(name, damaged, full)


@pytest.mark.parametrize("form", [*AROUND_SECRETS, "postgresql://u:{}@[h/x", "{}=x"])
@pytest.mark.parametrize("password", [f"{SECRET}-env", f"host=h password={SECRET}-env"])
def test_a_variable_with_a_damaged_dsn_is_not_shown(
    form: str, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "plone-backend/relstorage.conf"
    placed(name, Path.cwd())
    monkeypatch.setenv("RELSTORAGE_DSN", form.format(password, password))
    status, _, err = listed(name)
    assert status in {ALL_MEASURED, BAD_USAGE}, err


PUZZLING = (
    "no matching section", "too many instances", "zodb.storage", "unclosed sections",
    "no values for", "invalid literal", "does not refer to a package",
    "error opening schema component", "relstorage is not installed",
)  # fmt: skip
"""ZConfig's words for mistakes, with which a user cannot tell what to change."""
ENVIRONMENT = (
    "<environment e>\n{}\n</environment>\n<zodb a>\n<mappingstorage/>\nenvironment {}\n</zodb>\n"
)
ZLIB = "%import zc.zlibstorage\n"
STORAGE = "<mappingstorage/>\n"
RELSTORAGE = "%import relstorage\n<zodb a>\n<relstorage>\n"
MISTAKES = {
    "RelStorage without a database": (f"{RELSTORAGE}</relstorage>\n</zodb>\n", 3),
    "two storages": (f"<zodb a>\n{STORAGE}{STORAGE}</zodb>\n", 3),
    "two storages in Zope's": (f"<zodb_db a>\n{STORAGE}mount-point /\n{STORAGE}</zodb_db>\n", 4),
    "two storages in a wrapper": (
        f"{ZLIB}<zodb a>\n<zlibstorage>\n{STORAGE}{STORAGE}</zlibstorage>\n</zodb>\n",
        5,
    ),
    "no storage": (f"<zodb a>\n{STORAGE}</zodb>\n<zodb b>\n</zodb>\n", 4),
    "a database in another": (f"<zodb a>\n<zodb b>\n{STORAGE}</zodb>\n</zodb>\n", 2),
    "a storage that is not closed": ("<zodb a>\n<mappingstorage>\n</zodb>\n", 3),
    "a database that is not closed": (f"<zodb a>\n{STORAGE}", 1),
    "a database that is closed twice": (f"<zodb a>\n{STORAGE}</zodb>\n</zodb>\n", 4),
    "a beginning without its end": (f"<zodb a\n{STORAGE}</zodb>\n", 1),
    "three words in a beginning": (f"<zodb a b>\n{STORAGE}</zodb>\n", 1),
    "a missing key": ("<zodb a>\n<filestorage>\nblob-dir b\n</filestorage>\n</zodb>\n", 2),
    "an unknown environment": (f"<zodb a>\n{STORAGE}environment none\n</zodb>\n", 3),
    "an environment of a name": (ENVIRONMENT.format("python python3", "$x"), 6),
    "an unknown driver": (
        f"{RELSTORAGE}<sqlite3>\ndata-dir .\ndriver none\n</sqlite3>\n</relstorage>\n</zodb>\n",
        6,
    ),
    "an import of two": (f"%import relstorage zc.zlibstorage\n<zodb a>\n{STORAGE}</zodb>\n", 1),
    "an import of a module": (f"%import os\n<zodb a>\n{STORAGE}</zodb>\n", 1),
    "an import of half a name": (f"%import zc.\n<zodb a>\n{STORAGE}</zodb>\n", 1),
    "an import without a schema": (f"%import pyperf\n<zodb a>\n{STORAGE}</zodb>\n", 1),
    "a quote in a number": (f"<zodb a>\ncache-size '1\n{STORAGE}</zodb>\n", 2),
    "a directory that is not a project": (ENVIRONMENT.format("requirements .", "e"), 2),
}
"""Configurations with one mistake, and the line that is to blame."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_in_plain_words_with_its_line(mistake: str) -> None:
    text, line = MISTAKES[mistake]
    Path("x.conf").write_text(text)
    status, _, err = listed("x.conf")
    assert status == BAD_USAGE, err
    (complaint,) = err.splitlines()
    assert blamed("x.conf", complaint) == line, complaint
    assert not any(words in complaint for words in PUZZLING), complaint


def test_a_package_that_is_missing_hides_no_other_mistake() -> None:
    Path("x.conf").write_text(
        f"%import zc.beforestorage\n<zodb_db a>\ncache-size many\n{STORAGE}</zodb_db>\n"
    )
    _, _, err = listed("x.conf")
    assert "x.conf:3: cache-size" in err


def test_a_cut_off_configuration_of_zope_is_known_to_be_one() -> None:
    name = "zope2instance/filestorage.conf"
    path = placed(name, Path.cwd())
    path.write_text(path.read_text().partition("<zodb_db")[0])
    status, _, err = listed(name)
    assert status == BAD_USAGE
    assert "zodb_db" in err
