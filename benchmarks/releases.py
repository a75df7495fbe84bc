"""Verdicts on a RelStorage that ``--against`` installs: the same release, and a slower copy.

The same is the installed release: no cell may be called faster or slower.  The copy is a wheel of
it in which ``StorageCache.load`` spins for another 10 % of its time.  ``hot`` calls that method for
each object, besides what ZODB does to load one.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import distribution
from pathlib import Path

from benchmarks.command import shoot_out
from benchmarks.contenders import IMPORTS, sqlite
from benchmarks.line import Line, at_least, at_most, info
from benchmarks.verdicts import called_different, compared
from zodbshootout.results.changes import Change
from zodbshootout.results.ratios import Verdict

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


def measure(*, quick: bool) -> Iterator[Line]:
    """Yield the verdicts on the same release, and on the slower copy."""
    installed = distribution("RelStorage").version
    effort = ["-p", "3", "-n", "4"] if quick else ["--precision", "5%", "--at-most", "10"]
    same = _changes(f"RelStorage=={installed}", *effort)
    yield info("releases: the same, benchmarks", len(same), "{:.0f}")
    yield at_most("releases: the same, called different", called_different(same), 0, "{:.0f}")
    unknown = sum(change.verdict is Verdict.UNDECIDED for change in same)
    yield info("releases: the same, too few values", unknown, "{:.0f}")
    with tempfile.TemporaryDirectory() as name:
        wheel = slower_copy(Path(name))
        effort = ["-p", "5"] if quick else ["--precision", "2%", "--at-most", "8"]
        (slower,) = _changes(str(wheel), "hot", "-c", "1", *effort)
    yield info("releases: slower copy, ratio", slower.ratio.value, "{:.3f}")
    yield info("releases: lower end of its interval", slower.ratio.interval[0], "{:.3f}")
    yield info("releases: upper end of its interval", slower.ratio.interval[1], "{:.3f}")
    is_slower = slower.verdict is Verdict.SLOWER
    yield at_least("releases: slower copy, called slower", is_slower, 1, "{:.0f}")


def slower_copy(directory: Path) -> Path:
    """Make a wheel of the installed RelStorage, with a slower method."""
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


def _changes(against: str, *words: str) -> Sequence[Change]:
    """Measure the installed release and another one; return the changes of their cells."""
    done = shoot_out(f"{IMPORTS}{sqlite('sqlite')}", *words, "--against", against)
    installed, other = dict.fromkeys(result.cell.title for result in done.results)
    return compared(done, (installed, other))
