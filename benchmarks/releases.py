"""The verdicts of ``--against`` on the same RelStorage, and on one with a slower method.

The same is the release that is installed: no cell may be called faster or slower.  The other one is
a copy of it, in a wheel, in which ``StorageCache.load`` spins for 10 % of the time that it took.
``hot`` calls it for each object, in addition to what ZODB does to load one.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from benchmarks.command import Done, shoot_out
from benchmarks.contenders import IMPORTS, sqlite
from benchmarks.figure import Figure, at_least, at_most, info
from zodbshootout.results.comparison import Pair, Verdict, compare

NAME = "sqlite"
SLOWED = "relstorage/cache/storage_cache.py"
SPIN = """

def _spinning(load):
    from time import perf_counter

    def spin(self, *arguments):
        began = perf_counter()
        loaded = load(self, *arguments)
        end = perf_counter()
        end += 0.1 * (end - began)
        while perf_counter() < end:
            pass
        return loaded
    return spin


StorageCache.load = _spinning(StorageCache.load)
"""


def measure(*, quick: bool) -> Iterator[Figure]:
    """Yield what is said of the same release, and of the slower copy."""
    installed = distribution("RelStorage").version
    effort = ["-p", "3", "-n", "4"] if quick else ["--precision", "5%", "--at-most", "10"]
    same = _pairs(_against(f"RelStorage=={installed}", *effort))
    yield info("releases: the same, benchmarks", len(same), "{:.0f}")
    yield at_most("releases: the same, called different", _different(same), 0, "{:.0f}")
    unknown = sum(pair.verdict is Verdict.UNDECIDED for pair in same)
    yield info("releases: the same, too few values", unknown, "{:.0f}")
    with tempfile.TemporaryDirectory() as name:
        wheel = slower_copy(Path(name))
        effort = ["-p", "5"] if quick else ["--precision", "2%", "--at-most", "8"]
        (slower,) = _pairs(_against(str(wheel), "hot", "-c", "1", *effort))
    yield info("releases: slower copy, ratio", slower.speed.value, "{:.3f}")
    yield info("releases: lower end of its interval", slower.speed.interval[0], "{:.3f}")
    yield info("releases: upper end of its interval", slower.speed.interval[1], "{:.3f}")
    is_slower = slower.verdict is Verdict.SLOWER
    yield at_least("releases: slower copy, called slower", is_slower, 1, "{:.0f}")


def slower_copy(directory: Path) -> Path:
    """Make a wheel of the RelStorage that is installed, in which a method is slower."""
    original = distribution("RelStorage")
    lines = (original.read_text("WHEEL") or "").splitlines()
    tag = next(line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: "))
    wheel = directory / f"RelStorage-{original.version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in original.files or ():
            if ".." in path.parts or path.suffix == ".pyc":
                continue
            content = path.read_binary()
            archive.writestr(str(path), content + (SPIN.encode() if str(path) == SLOWED else b""))
    return wheel


def _against(what: str, *words: str) -> Done:
    return shoot_out(f"{IMPORTS}{sqlite(NAME)}", *words, "--against", what)


def _pairs(done: Done) -> list[Pair]:
    base = [result for result in done.results if result.cell.contender == NAME]
    new = [result for result in done.results if result.cell.contender != NAME]
    return list(compare(base, new, across=True).pairs)


def _different(pairs: list[Pair]) -> int:
    return sum(pair.verdict in {Verdict.FASTER, Verdict.SLOWER} for pair in pairs)
