"""The words of a command line: which of them is a file, a benchmark or the value of an option.

``-cold`` is not ``-c old``, and ``--threads FILE`` is not ``--threads=FILE``.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from zodbshootout.cli.arguments import ASK, LEVELS, OPTIONAL_VALUES
from zodbshootout.client.benchmarks import DEFAULT, benchmarks
from zodbshootout.client.masking import Mask
from zodbshootout.config.configuration import EMBEDDED
from zodbshootout.config.secrets import of_uri
from zodbshootout.config.uri import is_uri, scheme_of
from zodbshootout.errors import UserError, close_to, suggestion

_LONELY_EXCLUSION = re.compile(r"-[a-z][a-zA-Z_]{2,}")
_LIKE_A_FILE = re.compile(r"[./\\]")
"""What is found in the name of a file, and in no value of an option that has a few."""


def separated(arguments: Sequence[str]) -> list[str]:
    """Rewrite the arguments that argparse would take for something else.

    :raises UserError: when a benchmark that is to be left out is misspelt
    """
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        following = rest[0] if rest else None
        if word in OPTIONAL_VALUES:
            default = OPTIONAL_VALUES[word][1]
            words.append(f"{word}={rest.pop(0) if _is_a_value(following) else default}")
        elif word == "--zap":
            words.append(f"--zap={rest.pop(0) if _belongs_to_zap(following) else ASK}")
        elif word == "--log":
            words.append(f"--log={rest.pop(0) if _belongs_to_log(following) else 'INFO'}")
        elif word[1:] in benchmarks() and word.startswith("-"):
            words.append(f"--exclude={word[1:]}")
        else:
            _reject_misspelt_exclusion(word)
            words.append(word)
    return words


def uri_among(words: Sequence[str]) -> str | None:
    """Return the URI that stands in place of a file, if it is not the name of one."""
    if not words or _exists(words[0]):
        return None
    return words[0].strip() if is_uri(words[0]) else None


def file_and_benchmarks(words: Sequence[str], uri: str | None) -> tuple[Path, Sequence[str]]:
    """Return the configuration file, or what results of a *uri* are named for; and what follows.

    :raises UserError: when the first word is a misspelt benchmark
    """
    if not words:
        return EMBEDDED, ()
    if uri is not None:
        return Path(scheme_of(uri)), words[1:]
    first = words[0]
    if first in {"all", *benchmarks()} and not _exists(first):
        return EMBEDDED, words
    if close_to(first, benchmarks()) and not _exists(first):
        raise UserError(
            f"no such file or benchmark: {first!r}; {suggestion(first, list(benchmarks()))}"
        )
    return Path(first), words[1:]


def chosen_benchmarks(names: Sequence[str], excluded: Sequence[str]) -> list[str]:
    """Return the benchmarks of these *names*, or those of the default, without the *excluded* ones.

    :raises UserError: when one is unknown, or none is left
    """
    for name in names:
        _check_is_benchmark(name)
    wanted = set(benchmarks()) if "all" in names else set(names or DEFAULT)
    chosen = [name for name in benchmarks() if name in wanted and name not in excluded]
    if not chosen:
        raise UserError("no benchmark is left to measure; name one")
    return chosen


def _check_is_benchmark(name: str) -> None:
    if name == "all" or name in benchmarks():
        return
    if is_uri(name):
        raise UserError(
            f"{Mask(of_uri(name))(name)}: give one URI, before the benchmarks; to compare "
            "several, list them in a file as <zodburi NAME> sections"
        )
    if _exists(name) or name.endswith(".conf"):
        raise UserError(f"{name}: give one FILE, before the benchmarks")
    raise UserError(f"unknown benchmark {name!r}; {suggestion(name, ['all', *benchmarks()])}")


def _exists(word: str) -> bool:
    return os.path.exists(word)  # noqa: PTH110 - a Path raises where it is too long


def _is_file(word: str) -> bool:
    return os.path.isfile(word)  # noqa: PTH113 - as above


def _is_a_value(word: str | None) -> bool:
    """Say whether an argument after an option is its value, right or wrong."""
    if word is None or word.startswith("-") or word == "all":
        return False
    if difflib.get_close_matches(word, benchmarks()):  # as they are written, unlike LO and TRACE
        return False
    return not (is_uri(word) or _exists(word) or _LIKE_A_FILE.search(word))


def _belongs_to_zap(word: str | None) -> bool:
    """Say whether an argument after ``--zap`` is its value, and no file, URI or benchmark."""
    if word is None or word.startswith("-") or word in {"all", *benchmarks()}:
        return False
    return not (is_uri(word) or _is_file(word))


def _belongs_to_log(word: str | None) -> bool:
    """Say whether an argument after ``--log`` is its value: a level or a logging file."""
    if word is None:
        return False
    if _is_file(word):
        return _configures_logging(Path(word))
    return word.upper() in LEVELS or _is_a_value(word)


def _configures_logging(path: Path) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace")
    return re.search(r"^\s*<(eventlog|logger)\b", text, re.MULTILINE) is not None


def _reject_misspelt_exclusion(word: str) -> None:
    if not _LONELY_EXCLUSION.fullmatch(word):
        return
    close = difflib.get_close_matches(word[1:], benchmarks())
    if close:
        meant = " or ".join(f"-{name}" for name in close)
        raise UserError(f"unknown benchmark {word[1:]!r} in {word!r}; did you mean {meant}?")
