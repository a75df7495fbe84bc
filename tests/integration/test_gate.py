"""Gates of runs: of ``--against``, with a virtual environment as the change, and limits."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

from tests.integration.command import run

STORAGE = """
%import relstorage
<zodb sqlite>
    cache-size 5000
    <relstorage>
        keep-history false
        <sqlite3>
            data-dir $scratch/sqlite
        </sqlite3>
    </relstorage>
</zodb>
"""


def make_environment(directory: Path) -> None:
    """Create a virtual environment with the packages that are installed for the tests."""
    venv.create(directory, with_pip=False, symlinks=True)
    (packages,) = directory.glob("lib/*/site-packages")
    lines = (f"import site; site.addsitedir({path!r})\n" for path in sys.path if "site-p" in path)
    (packages / "tests.pth").write_text("".join(lines), encoding="utf-8")


QUICK = ("-c", "1", "-p", "6", "-n", "1", "--object-counts", "5", "--min-time", "0.001", "-q")


def test_a_run_is_a_gate_on_what_it_measures_against(place: Path) -> None:
    make_environment(place / "same")
    venv.create(place / "empty", with_pip=False, symlinks=True)
    (place / "benchmarks.conf").write_text(STORAGE, encoding="utf-8")
    words = ("benchmarks.conf", "add", *QUICK, "--fail-above", "10000%", "--against")
    same = run(place, *words, "./same")
    assert (same.status, same.err) == (0, "")
    empty = run(place, *words, "./empty")
    assert empty.status == 1
    assert "failed, but the base has a figure: sqlite@empty: add" in empty.complaint


def test_a_run_whose_limits_are_not_kept_ends_with_status_1(place: Path) -> None:
    (place / "benchmarks.conf").write_text(STORAGE, encoding="utf-8")
    words = ("benchmarks.conf", "add", *QUICK, "--require", "add objects > 0", "--require")
    done = run(place, *words, "sqlite: add max <= 100s")
    assert (done.status, done.err) == (0, "")
    assert done.out.count("kept: ") == 2
    done = run(place, *words, "add max <= 0.0001ms")
    assert (done.status, done.out.count("kept: ")) == (1, 1)
    assert done.complaint.startswith("zodbshootout: broken: add max <= 0.0001ms: ")
    refused = run(place, *words, "zeo: add max <= 1s")
    assert (refused.status, refused.out) == (2, "")
    assert "--require: no contender 'zeo'; there are sqlite" in refused.complaint
