"""Functions that read and check the values of options.

argparse calls them, and reports their errors with the name of the option.

Commands that read results must not import ZODB, so modules that need it are imported in functions.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path, PurePath
from typing import TypeVar

import platformdirs

from zodbshootout.client.benchmarks import benchmarks
from zodbshootout.config.sample_files import workloads
from zodbshootout.errors import UserError, suggestion
from zodbshootout.model.quantities import MAX_PERCENTILE, QUANTITIES, Quantity, quantity_named
from zodbshootout.model.specification import LatencyLimit, round_trip_time
from zodbshootout.recording.recorded import Workload, WorkloadError

N = TypeVar("N", int, float)

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
MAX_CLIENTS = 1000
"""The maximum number of clients: more would exceed the limits of processes and open files."""
_SECONDS = {"s": 1, "m": 60, "h": 3600}
MAX_RANGE = 128
"""The maximum length of a range such as ``1..16``, whose numbers are all measured."""
PYTHON_TIMEOUT = 60.0
"""Seconds that another Python may take to import zodbshootout."""
MAX_LOG_SIZE = 2**20
"""The maximum size of a file that configures logging, in bytes."""
LAST = "last"
"""The word for the newest results."""
ASK, FORCE = "ask", "force"
"""Values of ``--zap`` besides names: ask about each contender (the default), or zap them all."""


def number(kind: Callable[[str], N], fits: Callable[[N], bool], noun: str) -> Callable[[str], N]:
    """Return an argparse type for numbers; *noun* describes the numbers that fit."""

    def parsed(text: str) -> N:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not fits(value):
            raise ArgumentTypeError(f"{text!r} is not {noun}")
        return value

    return parsed


def _of_percent(text: str) -> float:
    return float(text.strip().removesuffix("%")) / 100


def _duration(unit: float) -> Callable[[str], float]:
    """Return a function that reads the seconds of ``90``, ``30s`` or ``2min``.

    *unit* is the unit of a number without a letter, in seconds.
    """

    def read(text: str) -> float:
        match = re.fullmatch(r"(.*)(s|m|min|h)", text.lower().strip())
        return float(match[1]) * _SECONDS[match[2][0]] if match else float(text) * unit

    return read


def _multiple(kilo: int, unit: str = "") -> Callable[[str], int]:
    """Return a function that reads ``500`` or ``1.5M``; a k stands for *kilo*.

    After the number and the letter, the text has to match the pattern *unit*.
    """
    pattern = re.compile(rf"(\d+(?:\.\d+)?)\s*([kmg]?){unit}", re.IGNORECASE | re.ASCII)

    def read(text: str) -> int:
        match = pattern.fullmatch(text.strip())
        if match is None:
            raise ValueError(text)
        number = Fraction(match[1]) * kilo ** " kmg".index(match[2].lower() or " ")
        if number.denominator > 1:
            raise ValueError(text)
        return int(number)

    return read


_number = _multiple(1000)
_bytes = _multiple(1024, "(?:b|(?<=[kmg])ib)?")
"""A function that reads sizes; a k is 1024 bytes, as in ZConfig."""


def _listed(read: Callable[[str], N]) -> Callable[[str], list[N]]:
    """Return a function that reads a list, with commas between its numbers."""
    return lambda text: [read(piece.strip()) for piece in text.split(",")]


whole = number(int, lambda _: True, "a whole number")
count = number(_number, lambda n: n >= 1, "a positive number, such as 1000, 10k or 1M")
count_or_zero = number(_number, lambda n: n >= 0, "0 or a positive number")
counts_or_zeros = _listed(count_or_zero)
node_size = number(int, lambda n: n > 1, "enough: a node of a BTree holds at least 2")
fraction = number(float, lambda n: 0 <= n <= 1, "a number from 0 to 1")
share = number(_of_percent, lambda n: 0 <= n <= 1, "a percentage from 0% to 100%")
garbage = number(_of_percent, lambda n: 0 <= n < 1, "a percentage from 0% to less than 100%")
speed = number(float, lambda n: 0 < n <= 1e6, "a positive number")  # noqa: PLR2004
percentage = number(_of_percent, lambda n: 0 < n < math.inf, "a percentage, such as 2%")
limit = number(_of_percent, lambda n: 0 <= n < math.inf, "a percentage, such as 2% or 0")
_rate = number(float, lambda n: 0 < n < math.inf, "a number of iterations a second")
size = number(_bytes, lambda n: n >= 1, "a size in bytes, such as 300, 1k or 1MB")
seconds = number(_duration(1), lambda n: 0 < n < math.inf, "a duration, such as 90, 90s or 2m")
minutes = number(_duration(60), lambda n: 0 < n < math.inf, "a duration, such as 5, 30s or 2m")


def counts(text: str, read: Callable[[str], int] = count) -> Sequence[int]:
    """Return the numbers of a list such as ``1,2,8..16``; a range includes both of its ends."""
    numbers: list[int] = []
    for piece in text.split(","):
        first, dots, last = piece.partition("..")
        low, high = read(first), read(last if dots else first)
        if low > high:
            raise ArgumentTypeError(f"{piece}: there is no number from {low} to {high}")
        if high - low >= MAX_RANGE:
            raise ArgumentTypeError(
                f"{piece}: a range of {high - low + 1} numbers is too long; the maximum is "
                f"{MAX_RANGE}"
            )
        numbers += range(low, high + 1)
    return numbers


def rates(text: str) -> Sequence[float]:
    """Return the rates of a list such as ``5,20..200``; the range stands for 20,40,80,160,200."""
    numbers: list[float] = []
    for piece in text.split(","):
        first, dots, last = piece.partition("..")
        low, high = _rate(first), _rate(last if dots else first)
        if low > high:
            raise ArgumentTypeError(f"{piece}: {last} is less than {first}")
        while low < high:
            numbers.append(low)
            low *= 2
        numbers.append(high)
    return numbers


def latency_limit(text: str) -> LatencyLimit:
    """Return a limit such as ``p99=50ms``."""
    with suppress(ValueError):
        limit = LatencyLimit.parsed(text)
        if 0 < limit.percentile <= MAX_PERCENTILE and limit.seconds > 0:
            return limit
    raise ArgumentTypeError(
        f"{text!r} is not a percentile and a time in ms or s, such as p99=50ms; the highest "
        f"percentile is {MAX_PERCENTILE}"
    )


def quantity(text: str) -> Quantity:
    """Return the quantity that a user names, such as ``p99`` or ``trips``."""
    named = quantity_named(text)
    if named is None:
        raise ArgumentTypeError(f"no quantity {text!r}; {suggestion(text, list(QUANTITIES))}")
    return named


def _rtt(text: str) -> float:
    try:
        return round_trip_time(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


rtts = _listed(_rtt)
"""Return the round-trip times of a list such as ``0,0.5ms,2ms``, in seconds."""


def definition(text: str) -> tuple[str, Sequence[str]]:
    r"""Return a definition's name and values; the name is in lower case, as in ZConfig.

    Commas separate the values; ``\,`` is a comma in a value.
    """
    name, equals, listed = text.partition("=")
    if not equals or not re.fullmatch(r"[a-z_]\w*", name, re.IGNORECASE | re.ASCII):
        raise ArgumentTypeError("write NAME=VALUE, such as cache=10MB")
    pieces = re.split(r"(?<!\\),", listed)
    if len(pieces) > 1 and any(map(_opens_quote, pieces)):
        raise ArgumentTypeError(
            f"{name}: quotes do not protect a comma in a value; write the comma as \\,"
        )
    values = [piece.replace("\\,", ",").strip() for piece in pieces]
    for value in values:
        if not value or not value.isprintable() or re.search("[<>]", value):
            raise ArgumentTypeError(
                f"{value!r} is not a value: it has to be one line of text, without < and >"
            )
    if len(set(values)) < len(values):
        raise ArgumentTypeError(f"{name} has the same value twice")
    return name.lower(), values


def _opens_quote(text: str) -> bool:
    quote = text.strip()[:1]
    return quote in {"'", '"'} and bool(text.count(quote) % 2)


def crew_sizes(text: str) -> Sequence[int]:
    """Return numbers of clients."""
    sizes = counts(text)
    if max(sizes) > MAX_CLIENTS:
        raise ArgumentTypeError(f"{max(sizes)} clients are too many; the maximum is {MAX_CLIENTS}")
    return sizes


def record_sizes(text: str) -> Sequence[int]:
    """Return sizes of stored objects, in bytes."""
    from zodbshootout.client.data.objects import smallest_record

    sizes = counts(text, size)
    if min(sizes) < smallest_record():
        raise ArgumentTypeError(
            f"a stored object takes at least {smallest_record()} bytes, not {min(sizes)}"
        )
    return sizes


def words(text: str) -> Sequence[str]:
    """Return the words of a comma-separated list."""
    return [word.strip() for word in text.split(",") if word.strip()]


def result_file(text: str) -> Path | None:
    """Return the path of a result file, ``None`` for an empty name."""
    path = Path(text)
    if text and path.is_dir():
        raise ArgumentTypeError(f"{text} is a directory; name a file, such as {path / 'a.json'}")
    return path if text else None


def default_directory() -> Path:
    """Return the directory for the results of runs that users start in the current directory.

    :raises RuntimeError: if the user has no home directory
    """
    here = Path.cwd()
    digest = hashlib.sha256(os.fsencode(here)).hexdigest()[:8]
    data = Path(platformdirs.user_data_dir("zodbshootout", appauthor=False))
    return data / f"{here.name[:20]}-{digest}"


def result_to_read(text: str) -> Path:
    """Return the path of a result file; ``last`` stands for the newest result file.

    To find the newest file, look in the current directory and in its :func:`default_directory`.
    """
    if text != LAST or exists(text):
        return Path(text)
    with suppress(RuntimeError, OSError):
        listed = [
            path for place in (Path(), default_directory()) for path in place.glob("*.cells.jsonl")
        ]
        for path in sorted(listed, key=lambda path: path.stat().st_mtime_ns, reverse=True):
            stem = path.name.removesuffix(".cells.jsonl")
            for ending in (".json", ".json.gz", ""):
                result = path.with_name(f"{stem}{ending}")
                if result.is_file():
                    return result
    raise ArgumentTypeError("there are no results of runs started in this directory; name a file")


def is_last(path: PurePath) -> bool:
    """Return whether *path* is in the default directory and is the file that ``last`` means."""
    with suppress(RuntimeError, ArgumentTypeError):
        return path.parent == default_directory() and result_to_read(LAST) == path
    return False


def workload(text: str) -> Workload:
    """Return the workload in a directory or a file, or the installed workload that *text* names."""
    path = Path(text) if exists(text) else workloads().get(text, Path(text))
    try:
        return Workload(path)
    except FileNotFoundError:
        raise ArgumentTypeError(
            f"no such file: {text}; to list the installed workloads: zodbshootout sample"
        ) from None
    except OSError as error:
        raise ArgumentTypeError(f"cannot read {text}: {error.strerror}") from None
    except WorkloadError as error:
        raise ArgumentTypeError(str(error)) from None


def file_storage(text: str) -> tuple[Path, Path | None]:
    """Split ``Data.fs,blobs`` into the paths of a FileStorage and its blob directory, if any."""
    name, comma, blob_dir = text.rpartition(",")
    if not comma or exists(text):
        return Path(text), None
    return Path(name), Path(blob_dir)


def profile_directory(text: str) -> Path:
    """Return the absolute path of a directory that is empty or does not exist."""
    directory = Path(text)
    if directory.exists() and not directory.is_dir():
        raise ArgumentTypeError(f"{directory} is not a directory")
    if directory.is_dir() and any(directory.iterdir()):
        raise ArgumentTypeError(f"{directory} is not empty; name another directory")
    return directory.absolute()


def affinity(text: str) -> str:
    """Replace the ranges in a list of CPUs: ``0-2,6`` becomes ``0,1,2,6``."""
    highest = max(map(int, re.findall(r"\d+", text)), default=0)
    last = (os.cpu_count() or highest + 1) - 1
    if highest > last:  # checked first, as the list might be huge
        raise ArgumentTypeError(f"there is no CPU {highest}; the last one is {last}")
    try:
        return ",".join(map(str, _cpus(text)))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a list of CPUs, such as 0-3,6") from None


def _cpus(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        if not numbers:
            raise ValueError(part)
        yield from numbers


def python(text: str) -> str:
    """Return the path of a Python in which zodbshootout is installed."""
    path = shutil.which(os.path.expanduser(text))  # noqa: PTH111 - a Path would lose the ./
    if path is None:
        raise ArgumentTypeError(f"there is no program {text!r}")
    path = os.path.abspath(path)  # noqa: PTH100 - virtual environments are made of links
    if path != sys.executable and not _has_zodbshootout(path):
        raise ArgumentTypeError(
            f"zodbshootout is not installed for {path}; "
            f"install the checkout there: {path} -m pip install CHECKOUT"
        )
    return path


def _has_zodbshootout(path: str) -> bool:
    # A program that is not a Python might ignore the arguments and exit with 0, or never end.
    status = 42
    command = [path, "-c", f"import sys, zodbshootout; sys.exit({status})"]
    devnull = subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, check=False, timeout=PYTHON_TIMEOUT, stdin=devnull, stdout=devnull,
            stderr=devnull,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ArgumentTypeError(
            f"{path} did not answer for {PYTHON_TIMEOUT:g} s; it does not seem to be a Python"
        ) from None
    return done.returncode == status


def log(text: str) -> str:
    """Return the name of a level in upper case, or the absolute path of a logging file."""
    from zodbshootout.crews.logs import read_loggers

    if text.upper() in LEVELS:
        return text.upper()
    path = Path(text).absolute()
    if not path.is_file():
        raise ArgumentTypeError(f"{text!r} is neither a level ({', '.join(LEVELS)}) nor a file")
    if path.stat().st_size > MAX_LOG_SIZE:
        raise ArgumentTypeError(f"{text} is too large to configure logging")
    try:
        read_loggers(path)
    except UserError as error:
        raise ArgumentTypeError(str(error)) from error
    return str(path)


SHARINGS = ("shared", "unique")
MAPPINGS = ("IO", "OO")
SWITCHES = ("true", "yes", "on", "false", "no", "off")


def sharing(text: str) -> str:
    """Return how threads share a DB; refuse a number of threads."""
    if text.isdecimal():
        raise ArgumentTypeError(f"-c sets the number of clients; give -c {text} --threads")
    return text


def is_value_of_threads(word: str) -> bool:
    """Return whether a word after ``--threads`` is its value, which may be wrong."""
    return word in SHARINGS or word.isdecimal()


def is_value_of_zap(word: str) -> bool:
    """Return whether a word after ``--zap`` is its value, not a file or a benchmark."""
    from zodbshootout.config.uri import is_uri

    if word.startswith("-") or word in {"all", *benchmarks()}:
        return False
    return not (is_uri(word) or _is_file(word))


def is_value_of_log(word: str) -> bool:
    """Return whether a word after ``--log`` is its value, not a file or a benchmark."""
    if _is_file(word):
        with Path(word).open(encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_LOG_SIZE)
        return re.search(r"^\s*<(eventlog|logger)\b", text, re.MULTILINE) is not None
    return word.upper() in LEVELS


def exists(word: str) -> bool:
    """Return whether a word is the name of a file or a directory."""
    return os.path.exists(word)  # noqa: PTH110 - a Path raises an error for a long word


def _is_file(word: str) -> bool:
    return os.path.isfile(word)  # noqa: PTH113 - likewise
